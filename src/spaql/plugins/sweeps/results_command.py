"""`spaql study results`: a summary of the finished runs of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.command import command
from spaql.cli.report import Report, fitted
from spaql.formatting import counted

if TYPE_CHECKING:
    from spaql.plugins.sweeps.table import Results

_MEASURED = {
    "fresh_return": "fresh return",
    "best_return": "best seen",
    "arms": "arms",
    "leaves": "leaves",
    "interactions": "interactions",
}


@command("the summary", short_help="Summarise the runs of a study, and export them as a table.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="write a row for every run")
@click.option("--digest", is_flag=True, help="hash all finished runs: equal studies have equal digests")
def results(folder: Path, csv_file: Path | None, digest: bool) -> Report:
    """Summarise the finished runs in FOLDER, while a sweep goes on or after it.

    Runs that differ in their seed alone are one line: mean ± 95 % interval over the seeds.

    \b
    Examples:
      spaql study results studies/first
      spaql study results studies/first --csv runs.csv
    """
    from spaql.plugins.sweeps.store import RunStore
    from spaql.plugins.sweeps.table import results as read_results

    table = read_results(folder)
    store = RunStore(folder)
    if csv_file is not None:
        table.to_csv(csv_file)
    groups = summarise(table)
    data: dict[str, Any] = {"finished": table.runs, "running": len(store.running()), "groups": groups}
    if digest:
        data["digest"] = store.digest()
    lines = [_table(groups)] if groups else []
    lines.append(f"{counted(data['finished'], 'run')} finished, {data['running']:,} under way")
    if digest:
        lines.append(f"digest {data['digest']}")
    return Report(data, "\n".join(lines))


def summarise(table: Results) -> list[dict[str, Any]]:
    """Return the groups of runs that differ only in their seed, with the means of their results."""
    import numpy as np

    from spaql.plugins.sweeps.run import BUDGETS
    from spaql.stats import mean_ci95

    names = list(table)
    last = max((names.index(name) for name in BUDGETS if name in names), default=-1)
    keys = [name for name in names[: last + 1] if name != "seed"] if table.runs else []
    rows: dict[tuple[Any, ...], list[int]] = {}
    columns = [["" if value != value else value for value in table[key].tolist()] for key in keys]
    for index, values in enumerate(zip(*columns, strict=True)):
        rows.setdefault(values, []).append(index)
    return [
        {
            **dict(zip(keys, values, strict=True)),
            "runs": len(members),
            **{
                name: dict(zip(("mean", "ci95"), mean_ci95(table[name][members]), strict=True))
                for name in _MEASURED
                if name in table and name not in keys and np.isfinite(table[name][members]).all()
            },
        }
        for values, members in rows.items()
    ]


def _table(groups: list[dict[str, Any]]) -> str:
    """Return what all groups have in common, then a line for each with what differs and its results."""
    keys = list(groups[0])[: list(groups[0]).index("runs")]
    different = [key for key in keys if len({str(group[key]) for group in groups}) > 1]
    common = ", ".join(f"{key} {_shown(groups[0][key])}" for key in keys if key not in different)
    rows = [
        {key: _shown(group[key]) for key in different}
        | {"runs": f"{group['runs']:,}"}
        | {
            text: _interval(name, group[name]) if name in group else ""
            for name, text in _MEASURED.items()
            if name not in keys
        }
        for group in groups
    ]
    return f"{common}\n\n{fitted(rows)}\n"


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _interval(name: str, value: dict[str, float]) -> str:
    """Return a mean with its interval; of large counts, the mean alone."""
    from spaql.plugins.sweeps.table import interval

    mean = value["mean"]
    half = value["ci95"]
    if abs(mean) >= 100_000 and not name.endswith("return"):
        return f"{mean:,.0f}"
    return interval(mean, half)
