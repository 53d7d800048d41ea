"""Finished runs as a tidy table: a row for each run, in a fixed order."""

from __future__ import annotations

import csv
import io
import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import write_atomically
from spaql.errors import SettingError
from spaql.formatting import number, places, with_interval
from spaql.plugins.sweeps.run import BUDGETS
from spaql.plugins.sweeps.store import RunStore


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
