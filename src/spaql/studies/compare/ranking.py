"""Where the algorithms of the comparison stand: the points of all finished runs, brought together by seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.experiments.curve import CURVE
from spaql.experiments.store import TIMING, RunStore, read_columns
from spaql.stats import WelchTest, welch
from spaql.studies.compare.study import ALGORITHMS, PROBLEMS

_BEYOND = 1.1
"""A point counts for a number of interactions if it took this many times as many at most."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """What an algorithm came to on a problem with so many interactions; arrays have a number a seed."""

    problem: str
    algorithm: str
    at: int
    """Interactions as they were asked for."""
    interactions: Floats
    """As they were: the batch or episode that is begun is finished."""
    returns: Floats
    worst_start: Floats
    chattering: Floats
    size: Floats
    wall: Floats
    cpu: Floats

    @property
    def seeds(self) -> int:
        """How many runs it is of."""
        return len(self.returns)


Standings = Mapping[tuple[str, str], Sequence[Standing]]
"""By problem and algorithm, in the order of interactions."""


def standings(store: RunStore) -> dict[tuple[str, str], list[Standing]]:
    """Bring together all runs of the comparison that are finished in a store."""
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
    """Read the columns of a run's learning curve, with the time of training before each point."""
    folder = store.root / run_id
    timing: dict[str, Any] = json.loads((folder / TIMING).read_text("utf-8"))
    return read_columns(folder / CURVE) | {name: np.array(timing[name]) for name in ("wall", "cpu")}


def _of_group(
    problem: str, algorithm: str, budget: int, points: Sequence[int], runs: Sequence[Mapping[str, Floats]]
) -> list[Standing]:
    found, before = [], None
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
    """Give the last standing with at most so many interactions."""
    reached = [standing for standing in line if standing.at <= interactions]
    return reached[-1] if reached else None


@dataclass(frozen=True)
class Duel:
    """PlanTree and a rival that was given as many interactions at most."""

    ours: Standing
    theirs: Standing
    test: WelchTest | None
    """Of ours less theirs; None with too few seeds, or where no return differs among them."""

    @property
    def difference(self) -> float:
        """How much higher our mean return is."""
        return float(self.ours.returns.mean() - self.theirs.returns.mean())

    @property
    def verdict(self) -> str:
        """Ahead, behind, or neither can be told."""
        if self.test is None or self.test.p >= 0.05:
            return "cannot tell"
        return "ahead" if self.difference > 0 else "behind"


def duels(found: Standings) -> list[Duel]:
    """Hold PlanTree against every other algorithm, at each of its budgets."""
    pairs = [
        (ours, theirs)
        for (problem, algorithm), line in found.items()
        if algorithm == "plantree"
        for ours in line
        for rival in ALGORITHMS[1:]
        if (theirs := standing_at(found.get((problem, rival), ()), ours.at)) is not None
    ]
    return [Duel(ours, theirs, _test(ours.returns, theirs.returns)) for ours, theirs in pairs]


def _test(ours: Floats, theirs: Floats) -> WelchTest | None:
    if min(len(ours), len(theirs)) < 2 or ours.std() + theirs.std() == 0.0:
        return None
    return welch(ours, theirs)
