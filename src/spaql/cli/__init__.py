"""The command line; the module of each command is loaded when it is used."""

from __future__ import annotations

import os
import sys

import click

from spaql.cli.group import LazyGroup

_SECTIONS = {
    "Make a controller": {
        "new": "Create a project for a plant of your own.",
        "train": "Learn a controller for an environment or a plant.",
        "design": "",
        "fit": "Fit a controller to a log of the plant, without a simulator.",
        "distil": "Turn a network or a function into a small tree.",
        "zoo": "List the trained controllers that ship with spaql, or save one.",
    },
    "Read it": {
        "show": "Print the controller as if-then rules.",
        "draw": "Draw the tree, maps, phase portraits and responses.",
        "page": "",
        "model": "Print the learned plant, and how accurate it is.",
    },
    "Test it": {
        "evaluate": "Play fresh episodes, and compare with PID and LQR.",
        "stress": "Find starts and changes of the plant that it cannot handle.",
        "verify": "Prove or refute a statement about the closed loop.",
    },
    "Change it": {
        "improve": "Improve it on the simulator.",
        "simplify": "Find a smaller tree with nearly the same return.",
        "edit": "Change a leaf or a rule by hand.",
    },
    "Use it": {
        "export": "Write it as C, ONNX, PLC code and more, checked to be the same.",
    },
    "Run studies": {"study": "", "paper": ""},
    "Check and prepare": {
        "check": "Check an environment or an algorithm of your own.",
        "warm-up": "Compile in advance what trainings need.",
    },
}
"""The commands by what they are for; those without a summary are declared by plugins."""
_COMMON = ("new", "train", "design", "show", "draw", "page", "evaluate", "stress", "verify", "export")


@click.group(
    cls=LazyGroup,
    sections=_SECTIONS,
    common=_COMMON,
    invoke_without_command=True,
    subcommand_metavar="COMMAND ...",
    options_metavar="",
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
@click.version_option(package_name="spaql", prog_name="spaql", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Small, readable controllers from a simulator, equations or a log.

    \b
    Getting started:
      spaql train Pendulum-v1 --seed 1 --out runs/swing-up
      spaql show runs/swing-up --digits 3
      spaql evaluate runs/swing-up
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    # `module:id` may name a file in this folder, as with `python -m`; it comes last, to shadow no package.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
