"""The paper's two tables, with our results next to the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from spaql.figures.style import NAMES
from spaql.plugins.paper.study import (
    SOLVED,
    VARIANTS,
    Size,
    published_random_returns,
    random_returns,
    trpo_runs,
)
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.table import Results, interval, results
from spaql.stats import mean_ci95

Interval = tuple[float, float]
"""A mean and the half-width of its 95 % interval."""

PUBLISHED: Mapping[tuple[str, str], tuple[Interval, Interval | None]] = MappingProxyType(
    {
        ("pendulum", "aql"): ((-1287.31, 5.79), (195032.75, 575.81)),
        ("pendulum", "spaql"): ((-835.99, 26.91), (1277.50, 168.74)),
        ("pendulum", "spaql-ts"): ((-873.40, 39.94), (1082.50, 91.42)),
        ("pendulum", "random-published"): ((-1340.43, 6.24), None),
        ("pendulum", "trpo"): ((-176.76, 15.79), None),
        ("cartpole200", "aql"): ((22.40, 0.60), (32988.9, 186.61)),
        ("cartpole200", "spaql"): ((192.57, 0.94), (557.75, 55.10)),
        ("cartpole200", "spaql-ts"): ((198.53, 1.55), (1289.75, 151.22)),
        ("cartpole200", "random"): ((22.15, 0.64), None),
        ("cartpole200", "trpo"): ((197.27, 3.17), None),
    }
)
"""Return and arms at the end of training, from the paper's two tables."""

PUBLISHED_SOLVED = MappingProxyType({"spaql": 1, "spaql-ts": 17})
"""The number of agents, of 20, that solved CartPole."""


@dataclass(frozen=True)
class Line:
    """The results of all agents of one algorithm on one problem."""

    problem: str
    algorithm: str
    fresh: NDArray[np.float64]
    """The mean return of every agent over new episodes."""
    reported: NDArray[np.float64] | None = None
    """The paper's measure: the best evaluation, or the last one of AQL and TRPO."""
    arms: NDArray[np.float64] | None = None
    interactions: float = 0.0

    @property
    def solved(self) -> int | None:
        """The number of agents that solved CartPole; None on other problems."""
        return int((self.fresh >= SOLVED).sum()) if self.problem == "cartpole200" else None


def measure(long: RunStore, size: Size) -> dict[tuple[str, str], Line]:
    """Return a line for every problem and algorithm of the long runs, and for the random policies.

    TRPO is left out of a problem until all its runs are finished.
    """
    table = results(long.root)
    unfinished = {run.problem for run in long.missing(trpo_runs(size))}
    lines = {}
    for problem in ("pendulum", "pendulum5", "cartpole200"):
        for algorithm in ("aql", "spaql", "spaql-ts", "trpo"):
            mine = (table["problem"] == problem) & (table["algorithm"] == algorithm)
            if mine.any() and not (algorithm == "trpo" and problem in unfinished):
                lines[problem, algorithm] = _line(problem, algorithm, table, mine)
        lines[problem, "random"] = Line(problem, "random", random_returns(problem, size))
        if problem == "pendulum":
            half = published_random_returns(size)
            lines[problem, "random-published"] = Line(problem, "random-published", half)
    return lines


def _line(problem: str, algorithm: str, table: Results, mine: NDArray[np.bool_]) -> Line:
    return Line(
        problem,
        algorithm,
        fresh=table["fresh_return"][mine],
        reported=table["best_return" if algorithm in VARIANTS else "mean_return"][mine],
        arms=None if algorithm == "trpo" else table["arms"][mine],
        interactions=float(table["interactions"][mine].mean()),
    )


def rows(lines: Mapping[tuple[str, str], Line], rules: str = "authors") -> list[dict[str, str]]:
    """Return the lines as cells; rules that are not the default have a column."""
    return [
        {
            **({} if rules == "authors" else {"rules": rules if line.arms is not None else ""}),
            "problem": NAMES[line.problem],
            "algorithm": NAMES[line.algorithm],
            "published return": _interval(_published(line, 0)),
            "best or last seen": "" if line.reported is None else _interval(mean_ci95(line.reported)),
            "fresh return": _interval(mean_ci95(line.fresh)),
            "published arms": _interval(_published(line, 1)),
            "arms": "" if line.arms is None else _interval(mean_ci95(line.arms)),
            "solved": "" if line.solved is None else f"{line.solved} of {len(line.fresh)}",
            "published solved": _published_solved(line),
            "interactions": f"{line.interactions:,.0f}" if line.interactions else "",
        }
        for line in lines.values()
    ]


def _published(line: Line, which: int) -> Interval | None:
    return PUBLISHED.get((line.problem, line.algorithm), (None, None))[which]


def _published_solved(line: Line) -> str:
    solved = PUBLISHED_SOLVED.get(line.algorithm)
    return f"{solved} of 20" if line.problem == "cartpole200" and solved is not None else ""


def _interval(value: Interval | None) -> str:
    if value is None:
        return ""
    return interval(*value)
