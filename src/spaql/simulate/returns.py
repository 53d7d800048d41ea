"""Returns of episodes, and their statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.entry_points import Pictured
from spaql.formatting import counted, number, places, short, with_interval
from spaql.problems.stage_cost import Constraint
from spaql.stats import mean_ci95
from spaql.values import whole_number

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class EpisodeSummary:
    """Start, length and return of one episode."""

    start: tuple[float, ...]
    length: int
    total: float


def worst_episodes(
    returns: NDArray[np.float64], lengths: NDArray[np.int64], starts: NDArray[np.float64], k: int
) -> list[EpisodeSummary]:
    """Return the k episodes with the lowest returns, the worst first."""
    order = np.argsort(returns, kind="stable")[: whole_number("The number of worst episodes", k, least=0)]
    return [
        EpisodeSummary(tuple(float(x) for x in starts[i]), int(lengths[i]), float(returns[i])) for i in order
    ]


def quantiles_of(returns: NDArray[np.float64]) -> dict[float, float]:
    """Return the 5, 25, 50, 75 and 95 % quantiles."""
    return {q: float(np.quantile(returns, q)) for q in _QUANTILES}


@dataclass(frozen=True, repr=False)
class Evaluation(Pictured):
    """Returns, lengths and starts of fresh episodes, in the order in which they were run.

    Examples
    --------
    >>> Evaluation(np.array([-3.0, -1.0]), np.array([200, 200]), np.array([[0.5, 1.0], [0.0, 0.25]]))
    Evaluation(return -2.0 ± 12.7 of 2 episodes, worst -3.0 from [0.5, 1])
    """

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    starts: NDArray[np.float64]
    """First observation of each episode, in raw units."""
    constraints: tuple[Constraint, ...] = ()
    broken: NDArray[np.bool_] | None = None
    """Which episodes break which constraint, if any are declared: a row for each episode."""
    cut: bool = False
    """Whether the end of the budget cut an episode: its return is that of a part."""

    @property
    def mean(self) -> float:
        """Mean return."""
        with np.errstate(over="ignore"):
            mean = float(self.returns.mean())
        return mean if math.isfinite(mean) else float((self.returns / len(self.returns)).sum())

    @property
    def ci95(self) -> float:
        """Half-width of Student's 95 % interval of the mean, `mean` ± `ci95`; NaN for a single episode."""
        return mean_ci95(self.returns)[1]

    @property
    def quantiles(self) -> dict[float, float]:
        """Quantiles of the returns: 5, 25, 50, 75 and 95 %."""
        return quantiles_of(self.returns)

    @property
    def worst(self) -> list[EpisodeSummary]:
        """The five worst episodes, the worst first."""
        return worst_episodes(self.returns, self.lengths, self.starts, 5)

    @property
    def violations(self) -> dict[str, int]:
        """Number of episodes that break each constraint, by its expression."""
        if self.broken is None:
            return {}
        counts = self.broken.sum(axis=0).tolist()
        return {constraint.text: count for constraint, count in zip(self.constraints, counts, strict=True)}

    @property
    def steps(self) -> int:
        """Number of environment steps."""
        return int(self.lengths.sum())

    def __repr__(self) -> str:
        worst = self.worst[0]
        played = counted(len(self.returns), "episode")
        returned = with_interval(self.mean, self.ci95)
        total = number(worst.total, places(self.mean, self.ci95))
        return f"Evaluation(return {returned} of {played}, worst {total} from {short(worst.start)})"
