"""The results of the comparison: the points of all finished runs, grouped over seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.plugins.compare.study import ALGORITHMS, PROBLEMS
from spaql.plugins.sweeps.curve import CURVE
from spaql.plugins.sweeps.store import TIMING, RunStore, read_columns
from spaql.stats import WelchTest, welch

_BEYOND = 1.1
"""A point counts for a number of interactions if it took at most this many times as many."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """The results of an algorithm on a problem after a number of interactions; arrays are over seeds."""

    problem: str
    algorithm: str
    at: int
    """The interactions of the budget or point."""
    interactions: Floats
    """The interactions that were taken: a started batch or episode is finished."""
    returns: Floats
    worst_start: Floats
    chattering: Floats
    size: Floats
    wall: Floats
    cpu: Floats

    @property
    def seeds(self) -> int:
        """The number of runs."""
        return len(self.returns)


Standings = Mapping[tuple[str, str], Sequence[Standing]]
"""By problem and algorithm, in the order of interactions."""


def standings(store: RunStore) -> dict[tuple[str, str], list[Standing]]:
    """Return the results of all finished runs of the comparison in a store."""
    groups: dict[tuple[str, str, int], list[str]] = {}
    points: dict[tuple[str, str, int], list[int]] = {}
    for run_id in store.finished():
        run = store.result(run_id)["run"]
        if "evaluate_at" not in run or run.get("total_interactions") is None:
            raise SettingError(
                f"{store.root / run_id} is no run of this version's comparison: name another folder."
            )
        key = run["problem"], run["algorithm"], run["total_interactions"]
        groups.setdefault(key, []).append(run_id)
        points[key] = run["evaluate_at"]
    found: dict[tuple[str, str], list[Standing]] = {}
    for problem in PROBLEMS:
        for algorithm in ALGORITHMS:
            for key in sorted(key for key in groups if key[:2] == (problem, algorithm)):
                curves = [_curve(store, run_id) for run_id in groups[key]]
                found.setdefault((problem, algorithm), []).extend(_of_group(*key, points[key], curves))
    return found


def _curve(store: RunStore, run_id: str) -> dict[str, Floats]:
    """Return the columns of a run's learning curve, with the training time before each point."""
    folder = store.root / run_id
    timing: dict[str, Any] = json.loads((folder / TIMING).read_text("utf-8"))
    return read_columns(folder / CURVE) | {name: np.array(timing[name]) for name in ("wall", "cpu")}


def _of_group(
    problem: str,
    algorithm: str,
    budget: int,
    points: Sequence[int],
    runs: Sequence[Mapping[str, Floats]],
) -> list[Standing]:
    found = []
    before = None
    for at in points:
        reach = np.inf if at == budget else _BEYOND * at
        rows = [int((run["interactions"] <= reach).sum()) - 1 for run in runs]
        if min(rows) >= 0 and rows != before:
            columns = {
                name: np.array([run[name][row] for run, row in zip(runs, rows, strict=True)])
                for name in runs[0]
            }
            returns = columns.pop("mean_return")
            found.append(Standing(problem, algorithm, at, returns=returns, **columns))
        before = rows
    return found


def standing_at(line: Sequence[Standing], interactions: int) -> Standing | None:
    """Return the last standing with at most this many interactions, or None."""
    reached = [standing for standing in line if standing.at <= interactions]
    return reached[-1] if reached else None


@dataclass(frozen=True)
class PairComparison:
    """PlanTree and another algorithm with at most as many interactions."""

    ours: Standing
    theirs: Standing
    test: WelchTest | None
    """Of ours less theirs; None with too few seeds, or if all returns of each are equal."""

    @property
    def difference(self) -> float:
        """Our mean return less theirs."""
        return float(self.ours.returns.mean() - self.theirs.returns.mean())

    @property
    def verdict(self) -> str:
        """`ahead`, `behind`, or `cannot tell` if the difference is not significant."""
        if self.test is None or self.test.p >= 0.05:
            return "cannot tell"
        return "ahead" if self.difference > 0 else "behind"


def comparisons(found: Standings) -> list[PairComparison]:
    """Compare PlanTree with every other algorithm, at each of its budgets."""
    pairs = [
        (ours, theirs)
        for (problem, algorithm), line in found.items()
        if algorithm == "plantree"
        for ours in line
        for other in ALGORITHMS[1:]
        if (theirs := standing_at(found.get((problem, other), ()), ours.at)) is not None
    ]
    return [PairComparison(ours, theirs, _test(ours.returns, theirs.returns)) for ours, theirs in pairs]


def _test(ours: Floats, theirs: Floats) -> WelchTest | None:
    if min(len(ours), len(theirs)) < 2 or ours.std() + theirs.std() == 0.0:
        return None
    return welch(ours, theirs)
