"""`spaql zoo`: trained controllers that ship with the package."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from spaql.cli.report import Report, reports
from spaql.formatting import counted, number, places, with_interval

if TYPE_CHECKING:
    from spaql.zoo import Beside, Entry


@click.group()
def zoo() -> None:
    """List the trained controllers that ship with spaql, and write one to a file.

    \b
    Examples:
      spaql zoo list
      spaql zoo get oven-treesearch --out oven.spaql
      spaql show oven.spaql --digits 3
    """


@zoo.command("list")
@reports("the controllers with all figures")
def list_controllers() -> Report:
    """List the controllers, with returns in fresh episodes and sizes.

    Seeds were not selected: all are 0. "beside" is the best classical controller that was tuned for the
    problem, in the same episodes; --json has networks and bounds as well.

    \b
    Examples:
      spaql zoo list
      spaql zoo list --json | jq '.controllers[] | select(.problem == "spaql/Oven-v0")'
    """
    from spaql.tables import aligned
    from spaql.zoo import entries

    found = entries()
    data = {"controllers": [dataclasses.asdict(one) for one in found]}
    return Report(data, lambda: aligned([_cells(one) for one in found]))


def _cells(one: Entry) -> dict[str, str]:
    classical = [other for other in one.beside if other.kind == "classical"]
    best = max(classical, key=lambda other: other.mean, default=None)
    return {
        "name": one.name,
        "problem": one.problem,
        "return": with_interval(one.mean, one.ci95),
        "worst": number(one.worst, places(one.mean, one.ci95)),
        "leaves": f"{one.leaves}",
        "numbers": f"{one.numbers}",
        "interactions": f"{one.interactions:,}",
        "flash": f"{one.flash:,} B" if one.flash is not None else "",
        "beside": _beside(best, one) if best is not None else "",
    }


def _beside(other: Beside, one: Entry) -> str:
    return f"{other.name} {number(other.mean, places(one.mean, one.ci95))}"


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from spaql.zoo import entries

    return [
        CompletionItem(one.name, help=f"{one.problem}, {one.algorithm}")
        for one in entries()
        if one.name.startswith(incomplete)
    ]


@zoo.command()
@click.argument("name", shell_complete=_complete)
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="file to write, such as oven.spaql"
)
@reports("the name of the file, and what is known of the controller")
def get(name: str, out: Path) -> Report:
    """Write the controller NAME to a file that every command takes as RUN.

    \b
    Examples:
      spaql zoo get oven-treesearch --out oven.spaql
      spaql evaluate oven.spaql --beside pid,lqr
      spaql export oven.spaql --to c --out firmware
    """
    from spaql.archive import write_atomically
    from spaql.zoo import content, entry

    one = entry(name)
    write_atomically(out, content(name))
    measured = f"{with_interval(one.mean, one.ci95)} in {counted(one.episodes, 'fresh episode')}"
    lines = [
        f"wrote   {out}",
        f"what    {one.problem}, {one.algorithm}, seed {one.seed}, {one.interactions:,} interactions",
        f"return  {measured}; {counted(one.leaves, 'leaf')}, {counted(one.numbers, 'number')}",
    ]
    return Report({"file": str(out), **dataclasses.asdict(one)}, "\n".join(lines))
