"""Finished runs as a tidy table, a row for each run in a fixed order; and the parts of reports on them."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import write_atomically
from spaql.errors import SettingError
from spaql.formatting import number, places, with_interval
from spaql.plugins.sweeps.run import BUDGETS
from spaql.plugins.sweeps.store import RunStore
from spaql.tables import comma_separated, latex, markdown

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.5rem }
table { border-collapse: collapse; font-size: 0.85rem; display: block; overflow-x: auto }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top }
th { border-bottom: 2px solid #888 } figure { margin: 2rem 0 } svg { max-width: 100%; height: auto }
code { background: #f3f3f3; padding: 0 0.2rem }
"""


class Results(dict[str, NDArray[Any]]):
    """Columns of all finished runs of a store: the run, then its results; `pandas.DataFrame` takes it.

    Examples
    --------
    >>> table = Results({"seed": np.array([0, 1]), "fresh_return": np.array([199.0, 200.0])})
    >>> table["fresh_return"].mean()
    np.float64(199.5)
    """

    @property
    def runs(self) -> int:
        """The number of runs, which is the length of every column."""
        return len(next(iter(self.values()), ()))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file, every number in full precision; equal studies have equal files."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self)
        writer.writerows(zip(*(column.tolist() for column in self.values()), strict=True))
        write_atomically(path, text.getvalue().encode())


def results(store: str | os.PathLike[str]) -> Results:
    """Read the finished runs under a folder as a table.

    The columns are `problem`, `algorithm`, the settings of the runs, `seed`, the budget (`iterations`,
    `total_timesteps` or `total_interactions`, those that some run has), then the return of fresh episodes
    with its interval and the last row of the run's history. What is both a setting and in the history, as
    PlanTree's `leaves`, is called `final_leaves` there.
    """
    folder = RunStore(store)
    if not folder.root.is_dir():
        raise SettingError(f"There is no folder {folder.root}.")
    rows = [folder.result(run_id) for run_id in folder.finished()]
    settings = sorted({name for row in rows for name in row["run"]["settings"]})
    measured = list(dict.fromkeys(name for row in rows for name in row["result"]))

    def run(name: str) -> NDArray[Any]:
        return _column([row["run"].get(name) for row in rows])

    given = [name for name in BUDGETS if any(row["run"].get(name) is not None for row in rows)]

    return Results(
        {
            "problem": run("problem"),
            "algorithm": run("algorithm"),
            **{name: _column([row["run"]["settings"].get(name) for row in rows]) for name in settings},
            "seed": run("seed"),
            **{name: run(name) for name in given or BUDGETS[:1]},
            **{
                f"final_{name}" if name in settings else name: _column(
                    [row["result"].get(name) for row in rows]
                )
                for name in measured
            },
        }
    )


def interval(mean: float, half: float) -> str:
    """Return a mean with its interval for a table; from a thousand on without decimals.

    Without a half-width (NaN, of a single value), only the mean is written.

    Examples
    --------
    >>> interval(-835.99, 26.91), interval(195032.75, 575.81)
    ('-836.0 ± 26.9', '195,033 ± 576')
    >>> interval(-1231.4, math.nan)
    '-1,231'
    """
    if math.isnan(half):
        return number_cell(mean)
    if 1000 <= abs(mean) < 1e6 and (half >= 0.5 or half == 0):
        return f"{mean:,.0f} ± {half:,.0f}"
    return with_interval(mean, half)


def number_cell(value: float) -> str:
    """Return a number for a table; from a thousand on without decimals."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else number(value, places(value))


def _column(values: list[Any]) -> NDArray[Any]:
    """Return a column of numbers, NaN where one is missing, or of texts."""
    present = [value for value in values if value is not None]
    if all(isinstance(value, int | float) for value in present):
        if len(present) == len(values):
            return np.array(values)
        return np.array([np.nan if value is None else value for value in values])
    return np.array(["" if value is None else str(value) for value in values])


def write_table(cells: Sequence[dict[str, str]], folder: Path, name: str) -> None:
    """Write rows as Markdown, CSV and LaTeX."""
    for suffix, form in (("md", markdown), ("csv", comma_separated), ("tex", latex)):
        write_atomically(folder / f"{name}.{suffix}", form(cells).encode())


def as_html(title: str, text: str, out: Path) -> str:
    """Return a report as HTML with its figures, which are read from `out`, embedded."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)

    def inlined(match: re.Match[str]) -> str:
        drawing = (out / match[1]).read_text(encoding="utf-8")
        return "<figure>" + drawing[drawing.index("<svg") :] + "</figure>"

    body = re.sub(r'<img src="([^"]+)"[^>]*>', inlined, body).replace(" ± ", "&nbsp;±&nbsp;")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )
