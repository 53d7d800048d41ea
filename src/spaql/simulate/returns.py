"""Records of episodes: step by step, the returns of many with their statistics, and counts of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.entry_points import Pictured
from spaql.formatting import counted, number, places, short, with_interval
from spaql.problems.stage_cost import Constraint
from spaql.stats import mean_ci95
from spaql.values import whole_number


class Phase(StrEnum):
    """The purpose of steps."""

    TRAINING = "training"
    """Training steps."""
    OWN_PLAY = "own play"
    """Episodes of a learner's own controllers, to choose among them."""
    EVALUATION = "evaluation"
    """Episodes of the evaluation of an iteration."""
    SEARCH = "search"
    """Episodes of a search over controllers."""
    EXPERT = "expert"
    """Episodes of a policy that is imitated."""


class Interactions:
    """The number of steps in each phase.

    Examples
    --------
    >>> account = Interactions()
    >>> account.add(Phase.TRAINING, 200)
    >>> account.add(Phase.EVALUATION, 4000)
    >>> account[Phase.TRAINING], account.total
    (200, 4200)
    """

    def __init__(self) -> None:
        self._steps = dict.fromkeys(Phase, 0)

    def __getitem__(self, phase: Phase) -> int:
        return self._steps[phase]

    def add(self, phase: Phase, steps: int) -> None:
        """Add steps to a phase."""
        self._steps[phase] += int(steps)

    @property
    def learned_from(self) -> int:
        """Steps of all phases but evaluation."""
        return self.total - self._steps[Phase.EVALUATION]

    @property
    def total(self) -> int:
        """Steps of all phases."""
        return sum(self._steps.values())


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Episode:
    """The observations, actions and rewards of an episode.

    Examples
    --------
    >>> Episode(np.zeros((3, 2)), np.array([0, 1]), np.array([-1.0, -2.0]), terminated=True)
    Episode(2 steps from [0, 0], return -3.0, terminated)
    """

    observations: Floats
    """Before each action and after the last, one per row."""
    actions: NDArray[Any]
    """As the environment took them, one per row."""
    rewards: Floats
    terminated: bool
    """Whether the episode terminated, and was not truncated by the horizon."""
    state: Floats | None = None
    """The initial state of the plant, if it was chosen."""

    def __repr__(self) -> str:
        steps = counted(self.length, "step")
        ended = ", terminated" if self.terminated else ""
        total = number(self.total, places(self.total))
        return f"Episode({steps} from {short(self.start)}, return {total}{ended})"

    @property
    def start(self) -> Floats:
        """The initial state of the plant if it was chosen, otherwise the first observation."""
        return self.observations[0] if self.state is None else self.state

    @property
    def length(self) -> int:
        """Number of steps."""
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return; rewards are added in order, so that it is the same for every version of NumPy."""
        return float(sum(self.rewards.tolist()))

    @property
    def action_rows(self) -> Floats:
        """The actions as floats, one row per step."""
        return np.asarray(self.actions, np.float64).reshape(self.length, -1)


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
