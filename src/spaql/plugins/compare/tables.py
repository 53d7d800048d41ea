"""The tables of the comparison, as cells."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from spaql.figures.style import NAMES
from spaql.formatting import counted
from spaql.plugins.compare.baselines import NETWORKS, ZOO
from spaql.plugins.compare.ranking import PairComparison, Standing, Standings, standing_at
from spaql.plugins.compare.study import ALGORITHMS, PROBLEMS
from spaql.plugins.sweeps.table import interval, number_cell
from spaql.stats import mean_ci95

COLUMNS = (3_000, 5_000, 10_000, 20_000, 50_000)
"""Interactions of the table of returns."""

Cells = list[dict[str, str]]


def returns_table(found: Standings, problem: str) -> Cells:
    """Return a row for each algorithm, with a column for each number of interactions."""
    rows = []
    for algorithm in ALGORITHMS:
        line = found.get((problem, algorithm), ())
        cells = {"algorithm": NAMES[algorithm]}
        for at in COLUMNS:
            standing = standing_at(line, at)
            exact = standing is not None and (standing.at == at or algorithm == "classical")
            cells[f"{at:,}"] = _returned(standing) if standing is not None and exact else ""
        last = line[-1] if line else None
        cells["last"] = "" if last is None else _returned(last)
        cells["with"] = "" if last is None else f"{last.interactions.mean():,.0f}"
        cells["seeds"] = "" if last is None else _seeds(line)
        if line:
            rows.append(cells)
    return rows


def details_table(found: Standings, problem: str, *, every_point: bool = False) -> Cells:
    """Return a row for each algorithm and number of interactions, with all measurements."""
    return [
        {
            "problem": problem,
            "algorithm": NAMES[standing.algorithm],
            "interactions": f"{standing.interactions.mean():,.0f}",
            "seeds": str(standing.seeds),
            "return": _returned(standing),
            "worst seed": number_cell(standing.returns.min()),
            "worst start": number_cell(standing.worst_start.mean()),
            "worst of all": number_cell(standing.worst_start.min()),
            "change": f"{standing.chattering.mean():.3f}",
            "size": _size(standing),
            "cpu s": f"{np.median(standing.cpu):,.0f}",
            "s": f"{np.median(standing.wall):,.0f}",
        }
        for algorithm in ALGORITHMS
        for line in [found.get((problem, algorithm), ())]
        for standing in line
        if every_point or algorithm == "plantree" or standing is line[-1] or standing.at in COLUMNS
    ]


def comparisons_table(pairs: Sequence[PairComparison]) -> Cells:
    """Return a row for each other algorithm, budget and problem."""
    return [
        {
            "problem": pair.ours.problem,
            "interactions": f"{pair.ours.at:,}",
            "PlanTree": _returned(pair.ours),
            "rival": NAMES[pair.theirs.algorithm],
            "its interactions": f"{pair.theirs.interactions.mean():,.0f}",
            "its return": _returned(pair.theirs),
            "PlanTree less rival": _difference(pair),
            "PlanTree is": pair.verdict,
        }
        for pair in pairs
    ]


def hyperparameters_table() -> Cells:
    """Return a row for each network and problem."""
    return [
        {
            "problem": problem,
            "algorithm": NAMES[algorithm],
            "published for": f"{ZOO[algorithm, problem]['n_timesteps']:,}",
            "hyperparameters": ", ".join(
                f"{name} {json.dumps(value)}".replace('"', "")
                for name, value in ZOO[algorithm, problem].items()
                if name != "n_timesteps"
            ),
        }
        for problem in PROBLEMS
        for algorithm in NETWORKS
        if (algorithm, problem) in ZOO
    ]


def _returned(standing: Standing) -> str:
    return interval(*mean_ci95(standing.returns))


def _seeds(line: Sequence[Standing]) -> str:
    counts = sorted({standing.seeds for standing in line})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _size(standing: Standing) -> str:
    units = {"plantree": "leaf", "spaql": "ball", "spaql-ts": "ball"}
    mean = float(standing.size.mean())
    digits = 0 if mean.is_integer() or mean >= 100 else 1
    return counted(mean, units.get(standing.algorithm, "parameter"), digits)


def _difference(pair: PairComparison) -> str:
    if pair.test is None:
        return number_cell(pair.difference)
    low = number_cell(pair.test.low)
    high = number_cell(pair.test.high)
    return f"{number_cell(pair.difference)} ({low} to {high})"
