"""`spaql zoo`: trained controllers that ship with the package."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spaql.cli.command import command
from spaql.cli.report import PATH, Report, fitted
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.zoo import Beside, Entry


def _complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from spaql.zoo import names

    return [name for name in names() if name.startswith(incomplete)]


def _cells(controller: Entry) -> dict[str, str]:
    classical = [other for other in controller.beside if other.kind == "classical"]
    best = max(classical, key=lambda other: other.mean, default=None)
    return {
        "name": controller.name,
        "problem": controller.problem,
        "return": with_interval(controller.mean, controller.ci95),
        "worst": number(controller.worst, places(controller.mean, controller.ci95)),
        "leaves": f"{controller.leaves}",
        "parameters": f"{controller.numbers}",
        "interactions": f"{controller.interactions:,}",
        "flash": f"{controller.flash:,} B" if controller.flash is not None else "",
        "compared with": _beside(best, controller) if best is not None else "",
    }


def _beside(other: Beside, controller: Entry) -> str:
    return f"{other.name} {number(other.mean, places(controller.mean, controller.ci95))}"


@command("the controllers with all results, or the file and the results of one")
@click.argument("name", required=False, shell_complete=_complete_name)
@click.option("--out", type=PATH, help="file to write  [default: NAME.spaql]")
def zoo(name: str | None, out: Path | None) -> Report:
    """List the trained controllers that ship with spaql, or save the one called NAME to a file.

    The list has returns in fresh episodes, and sizes. Seeds were not selected: all are 0. "compared with" is
    the best classical controller tuned for the problem, in the same episodes; --json also has networks and
    bounds. A file that is saved is a RUN for every command.

    \b
    Examples:
      spaql zoo
      spaql zoo oven-treesearch --out oven.spaql
      spaql evaluate oven.spaql --beside pid,lqr
      spaql zoo --json | jq '.controllers[] | select(.problem == "spaql/Oven-v0")'
    """
    from spaql.archive import write_atomically
    from spaql.zoo import content, entries, entry

    if name is None:
        controllers = entries()
        data = {"controllers": [dataclasses.asdict(controller) for controller in controllers]}
        return Report(data, lambda: fitted([_cells(controller) for controller in controllers]))
    controller = entry(name)
    out = out or Path(f"{name}.spaql")
    write_atomically(out, content(name))
    episodes = counted(controller.episodes, "fresh episode")
    measured = f"{with_interval(controller.mean, controller.ci95)} in {episodes}"
    trained = f"seed {controller.seed}, {controller.interactions:,} interactions"
    size = f"{counted(controller.leaves, 'leaf')}, {counted(controller.numbers, 'parameter')}"
    lines = [
        f"wrote   {out}",
        f"what    {controller.problem}, {controller.algorithm}, {trained}",
        f"return  {measured}; {size}",
    ]
    return Report({"file": str(out), **dataclasses.asdict(controller)}, "\n".join(lines))
