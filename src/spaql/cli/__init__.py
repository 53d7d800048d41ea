"""The command line; the module of each command is loaded when it is used."""

from __future__ import annotations

import os
import sys

import click

from spaql.cli.group import STUDIES, LazyGroup

_SECTIONS = {
    "Make a controller": {
        "new": "Begin a project for a plant of your own.",
        "train": "Learn a policy for an environment.",
        "distil": "Turn a network or a function into a small tree, and improve it.",
        "fit": "Learn a policy from a log of the plant, without a simulator.",
        "improve": "Improve an existing controller on the simulator.",
        "simplify": "Find a smaller tree that controls as well, or nearly.",
        "edit": "Change the action of a leaf by hand.",
        "zoo": "List trained controllers that ship with spaql, and take one.",
    },
    "Understand it": {
        "show": "Print a learned policy as if-then rules.",
        "model": "Print the learned plant, and how accurate it is.",
        "draw": "Draw a learned policy: its tree, maps, phase portrait and more.",
        "evaluate": "Run fresh episodes of a learned policy.",
        "stress": "Look for the worst: starts, changed plants, noise, delay.",
        "verify": "Prove or refute what it does on a plant given as equations.",
    },
    "Use it": {
        "export": "Write a learned policy as C, ONNX and more, checked to be equal.",
    },
    STUDIES: {},
    "Help": {
        "check": "Check whether an environment or an algorithm keeps its promises.",
        "warm-up": "Compile now what would be compiled in the first training.",
    },
}


@click.group(
    cls=LazyGroup,
    sections=_SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="""\b
Exit codes:
  0    done
  1    a check failed, or what was asked for could not be done
  2    the command line was not understood
  130  interrupted by Ctrl-C
  141  the program that reads the output has ended (spaql show RUN | head)

Every command that reports takes --json. `spaql COMMAND --help` has examples.
""",
)
@click.version_option(package_name="spaql", prog_name="spaql")
def main() -> None:
    """Readable controllers from a simulator.

    Give spaql a Gymnasium environment, or a plant's equations: it learns a controller that a person can read,
    a decision tree over the observations, to be drawn, stress-tested, edited by hand and exported.

    \b
    A first minute:
      spaql train Pendulum-v1 --steps 5000 --seed 1 --out runs/swing-up
      spaql show runs/swing-up --digits 3
      spaql evaluate runs/swing-up --episodes 500
    """
    # `module:id` may name a file of this folder, as with `python -m`; it comes last, to shadow no package.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
