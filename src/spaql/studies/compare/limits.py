"""The highest possible returns of the comparison's problems, nearly, and the gaps to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.evaluation import Limit, limit
from spaql.experiments.curve import fresh_starts
from spaql.problems import make_problem
from spaql.studies.compare.ranking import Standing, Standings
from spaql.studies.compare.study import PROBLEMS

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ProblemLimit:
    """The limit of a problem from the starts of all runs on it."""

    limit: Limit
    means: Mapping[tuple[int, int], float]
    """Mean returns, by the seed and the number of the starts."""

    def gaps(self, standing: Standing) -> Floats:
        """Return the mean return of each run less that of the limit from the same starts."""
        best = np.array([self.means[starts] for starts in standing.starts])
        return np.asarray(standing.returns - best)


Limits = Mapping[str, ProblemLimit | str]
"""By problem; the reason where there is none."""


def compute_limits(found: Standings, steps: int) -> dict[str, ProblemLimit | str]:
    """Compute the limit of every problem with finished runs, from the starts of their episodes."""
    limits: dict[str, ProblemLimit | str] = {}
    for problem in PROBLEMS:
        lines = [line for (name, _), line in found.items() if name == problem]
        starts = sorted({one for line in lines for standing in line for one in standing.starts})
        if starts:
            try:
                limits[problem] = limit_from(problem, starts, steps)
            except SettingError as error:
                limits[problem] = str(error)
    return limits


def limit_from(problem: str, starts: list[tuple[int, int]], steps: int) -> ProblemLimit:
    """Return the limit of a problem from starts that are given by their seeds and numbers."""
    made = make_problem(problem)
    states = [fresh_starts(made, episodes, seed) for seed, episodes in starts]
    best = limit(made, np.concatenate(states), steps=steps)
    parts = np.split(best.returns, np.cumsum([len(rows) for rows in states])[:-1])
    return ProblemLimit(best, {one: float(part.mean()) for one, part in zip(starts, parts, strict=True)})
