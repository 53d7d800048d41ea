"""Options that the commands of studies share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spaql.languages import on_terminal

if TYPE_CHECKING:
    from spaql.plugins.sweeps.sweeps import Summary

workers_option = click.option(
    "--workers", type=int, help="processes on this machine  [default: one for every core]"
)
ray_option = click.option("--ray", metavar="ADDRESS", help="a Ray cluster instead: HOST:PORT, auto, or local")


def refuse_failed(summary: Summary) -> None:
    """End the command with the first of the errors if runs of a study failed."""
    if summary.failed:
        run_id, error = next(iter(summary.failed.items()))
        raise click.ClickException(
            on_terminal(f"{len(summary.failed)} runs failed, {run_id} for one: {error}")
        )
