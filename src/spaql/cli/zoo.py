"""`spaql zoo`: trained controllers that ship with the package."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spaql.cli.report import PATH, Report, reports
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.zoo import Beside, Entry


@click.group()
def zoo() -> None:
    """List the trained controllers that ship with spaql, or save one to a file.

    \b
    Examples:
      spaql zoo list
      spaql zoo get oven-treesearch --out oven.spaql
      spaql show oven.spaql --digits 3
    """


@zoo.command("list")
@reports("the controllers with all results")
def list_controllers() -> Report:
    """List the controllers with their returns in fresh episodes and their sizes.

    Seeds were not selected: all are 0. "compared with" is the best classical controller tuned for the
    problem, in the same episodes; --json also has networks and bounds.

    \b
    Examples:
      spaql zoo list
      spaql zoo list --json | jq '.controllers[] | select(.problem == "spaql/Oven-v0")'
    """
    from spaql.tables import aligned
    from spaql.zoo import entries

    controllers = entries()
    data = {"controllers": [dataclasses.asdict(controller) for controller in controllers]}
    return Report(data, lambda: aligned([_cells(controller) for controller in controllers]))


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


@zoo.command()
@click.argument("name")
@click.option("--out", type=PATH, required=True, help="file to write, such as oven.spaql")
@reports("the file name and the results of the controller")
def get(name: str, out: Path) -> Report:
    """Save the controller NAME to a file that every command takes as RUN.

    \b
    Examples:
      spaql zoo get oven-treesearch --out oven.spaql
      spaql evaluate oven.spaql --beside pid,lqr
      spaql export oven.spaql --to c --out firmware
    """
    from spaql.archive import write_atomically
    from spaql.zoo import content, entry

    controller = entry(name)
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
