"""What the studies here share: options, seeds in processes, lines that are kept, and tables.

A study is a function of a case, a dictionary such as `{"env": "Pendulum-v1", "seed": 3}`, that returns what
was found of it. In more processes than one, every case has a fresh interpreter.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from spaql.formatting import number, places, with_interval
from spaql.stats import mean_ci95
from spaql.tables import markdown

Row = dict[str, Any]
TESTS = str(Path(__file__).parents[1] / "tests")
"""The folder whose helpers some scripts import."""


def parser(text: str | None, seeds: str | None = None) -> argparse.ArgumentParser:
    """Return a parser; with seeds by default, it has the options of a study."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    if seeds is not None:
        made.add_argument("--seeds", type=seeds_of, default=seeds, help="one seed, or the first and the last")
        made.add_argument("--processes", type=int, default=1)
        made.add_argument(
            "--out", type=Path, help="a line of JSON for each run; those in it are not run again"
        )
    return made


def seeds_of(text: str) -> range:
    """Return the seeds of `A-B`, both included."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def run(study: Callable[[Row], Row], cases: Sequence[Row], given: argparse.Namespace) -> list[Row]:
    """Return a row for each case, which is the case and what was found of it."""
    kept = lines_of(given.out)
    known = {_key(case): row for case in cases for row in kept if case.items() <= row.items()}
    todo = [case for case in cases if _key(case) not in known]
    for case, found in zip(todo, _found(study, todo, given.processes), strict=True):
        known[_key(case)] = case | found
        keep(given.out, known[_key(case)])
    return [known[_key(case)] for case in cases]


def _key(case: Row) -> str:
    return json.dumps(case, sort_keys=True)


def _found(study: Callable[[Row], Row], cases: Sequence[Row], processes: int) -> Iterator[Row]:
    if processes == 1:
        yield from map(study, cases)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), max_tasks_per_child=1) as pool:
        yield from pool.map(study, cases)


def lines_of(path: Path | None) -> list[Row]:
    """Return the lines of a file, if it is there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []


def keep(path: Path | None, row: Row) -> None:
    """Tell of a row, and add it to a file."""
    line = json.dumps(row)
    print(line, file=sys.stderr, flush=True)
    if path is not None:
        with path.open("a") as file:
            file.write(line + "\n")


def groups(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by what they have in common."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def column(rows: Iterable[Row], name: str) -> np.ndarray:
    """Return the numbers of a name."""
    return np.array([row[name] for row in rows], np.float64)


def spread(values: np.ndarray) -> dict[str, str]:
    """Return mean, median and worst of the numbers of some seeds, as cells of a table."""
    mean, half = mean_ci95(values)
    digits = places(mean, half)
    worst = {"median seed": np.median(values), "worst seed": values.min()}
    return {
        "mean": with_interval(mean, half),
        **{name: number(float(x), digits) for name, x in worst.items()},
    }


def show(rows: Sequence[Row]) -> None:
    """Print a table."""
    print(markdown([{name: _text(cell) for name, cell in row.items()} for row in rows]), flush=True)


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 1e4 else f"{cell:,.0f}"
    return f"{cell:,}" if type(cell) is int else str(cell)
