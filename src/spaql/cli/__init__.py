"""The command line; the module of each command is loaded when it is used."""

from __future__ import annotations

import os
import sys

import click

from spaql.cli.group import STUDIES, LazyGroup

_SECTIONS = {
    "Make a controller": {
        "new": "Create a project for your own plant.",
        "train": "Learn a policy for an environment.",
        "distil": "Turn a network or a function into a small tree, and improve it.",
        "fit": "Learn a policy from a log of the plant, without a simulator.",
        "improve": "Improve an existing controller on the simulator.",
        "simplify": "Find a smaller tree with nearly the same return.",
        "edit": "Change the action of a leaf by hand.",
        "zoo": "List the trained controllers that ship with spaql, or save one.",
    },
    "Understand it": {
        "show": "Print a learned policy as if-then rules.",
        "model": "Print the learned plant, and how accurate it is.",
        "draw": "Draw a learned policy: tree, maps, phase portrait and more.",
        "evaluate": "Evaluate a learned policy in fresh episodes.",
        "stress": "Test against difficult starts, changed plants, noise and delay.",
        "verify": "Prove or refute a statement about the closed loop.",
    },
    "Use it": {
        "export": "Export a learned policy to C, ONNX and more, checked for equality.",
    },
    STUDIES: {},
    "Help": {
        "check": "Check whether an environment or an algorithm meets its contract.",
        "warm-up": "Compile the kernels before the first training.",
    },
}


@click.group(
    cls=LazyGroup,
    sections=_SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="""\b
Exit codes:
  0    done
  1    a check failed, or the command could not be carried out
  2    the command line is invalid
  130  interrupted by Ctrl-C
  141  the reader of the output closed the pipe (spaql show RUN | head)

Every command that prints a report takes --json. `spaql COMMAND --help` has examples.
""",
)
@click.version_option(package_name="spaql", prog_name="spaql")
def main() -> None:
    """Readable controllers from a simulator.

    From a Gymnasium environment or a plant's equations, spaql learns a controller that a person can read:
    a decision tree over the observations, which can be drawn, stress-tested, edited by hand and exported.

    \b
    Getting started:
      spaql train Pendulum-v1 --steps 5000 --seed 1 --out runs/swing-up
      spaql show runs/swing-up --digits 3
      spaql evaluate runs/swing-up --episodes 500
    """
    # `module:id` may name a file in this folder, as with `python -m`; it comes last, to shadow no package.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
