"""The command line; each command is a file that is loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

_COMMANDS = {
    "train": "Learn a policy for an environment.",
    "evaluate": "Run fresh episodes of a learned policy.",
    "stress": "Look for the worst: starts, changed plants, noise, delay.",
    "show": "Print a learned policy as if-then rules.",
    "simplify": "Find a smaller tree that controls as well, or nearly.",
    "edit": "Change the action of a leaf by hand.",
    "draw": "Draw a learned policy: its tree, maps, phase portrait and more.",
    "export": "Write a learned policy as C, ONNX and more, proven equal.",
    "check": "Try whether an environment or an algorithm keeps its promises.",
    "sweep": "Execute the runs of a study, here or on a Ray cluster.",
    "paper": "Reproduce the paper: every study, table and figure, and a report.",
    "compare": "Compare returns and interactions with those of other algorithms.",
    "results": "Summarise the runs of a study, and export them as a table.",
}


class _LazyGroup(click.Group):
    """Commands by name: `--help` and completion need not import what a command needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"spaql.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        from spaql.errors import SpaqlError

        try:
            return super().invoke(ctx)
        except SpaqlError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spaql", prog_name="spaql")
def main() -> None:
    """Readable controllers from a simulator.

    Learn a controller for a Gymnasium environment by adaptive partitioning of its state-action space
    (AQL, SPAQL, SPAQL-TS): a table that a person can read.

    \b
    A first minute:
      spaql train cartpole200 --algo spaql-ts --iterations 500 --seed 1 --out runs/cartpole
      spaql evaluate runs/cartpole --episodes 500
      spaql show runs/cartpole
    """
