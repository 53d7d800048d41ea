"""Several tries, which differ only in their seed: their results, and the selection of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.formatting import counted, with_interval
from spaql.stats import mean_ci95
from spaql.tables import comma_separated

_CRITICAL_VALUE = 1.96
"""Standard errors beyond which a difference from the best try is significant."""
SELECTION_EPISODES = 100
"""Default number of episodes by which a try is picked."""


@dataclass(frozen=True)
class Try:
    """One training of several."""

    seed: int
    returns: NDArray[np.float64]
    """Returns of the selection episodes, whose starts are the same for all tries."""
    selection_steps: int
    """Steps in the selection episodes."""
    size: int | None
    """Leaves of a tree, arms of a partition; None for a policy of another kind."""
    unit: str
    """What the size counts: `leaf` or `arm`."""
    training_steps: int
    """Steps from which the try learned."""
    interactions: int
    """All steps of the training, including evaluations."""

    @property
    def mean(self) -> float:
        """The mean return of the selection episodes."""
        return mean_ci95(self.returns)[0]

    @property
    def ci95(self) -> float:
        """Half-width of its 95 % interval; NaN for a single episode."""
        return mean_ci95(self.returns)[1]

    @property
    def shown_size(self) -> str:
        """The size as text; empty for a policy without one."""
        return "" if self.size is None else counted(self.size, self.unit)


@dataclass(frozen=True, repr=False)
class Tries:
    """The results of several tries, and which one was picked.

    The selection mean of the picked try is biased upwards, because the try was picked for it: evaluate it by
    `spaql.evaluate`, whose episodes were not used to pick.

    Examples
    --------
    >>> first = Try(7, np.array([1.0, 3.0]), 20, 4, "leaf", 600, 600)
    >>> tried = [first, Try(8, np.array([2.0, 1.0]), 20, 2, "leaf", 600, 600)]
    >>> Tries(tuple(tried), pick(tried), measured=0)
    Tries(2 tries, means 1.5 to 2; picked seed 8 of 2 leaves, 1.5 in 2 selection episodes, biased upwards)
    """

    tries: tuple[Try, ...]
    """The tries, in the order of their seeds."""
    picked_index: int
    measured: int
    """Steps spent on measuring unbounded observations, once for all tries (each counts them)."""

    @property
    def picked(self) -> Try:
        """The try that was picked."""
        return self.tries[self.picked_index]

    @property
    def worst(self) -> Try:
        """The try with the lowest selection mean."""
        return min(self.tries, key=lambda result: result.mean)

    @property
    def means(self) -> NDArray[np.float64]:
        """The selection means of the tries, in their order."""
        return np.array([result.mean for result in self.tries])

    @property
    def alike(self) -> int:
        """Number of tries that do not differ significantly from the best, itself included."""
        return len(alike(self.tries))

    @property
    def training_steps(self) -> int:
        """Steps from which all tries together learned."""
        return sum(result.training_steps for result in self.tries)

    @property
    def training_interactions(self) -> int:
        """All steps of the trainings."""
        return sum(result.interactions for result in self.tries) - (len(self.tries) - 1) * self.measured

    @property
    def selection_steps(self) -> int:
        """Steps of all selection episodes."""
        return sum(result.selection_steps for result in self.tries)

    @property
    def interactions(self) -> int:
        """All steps taken to train the tries and to pick one."""
        return self.training_interactions + self.selection_steps

    def __repr__(self) -> str:
        picked = self.picked
        means = self.means
        size = f" of {picked.shown_size}" if picked.size is not None else ""
        episodes = counted(len(picked.returns), "selection episode")
        return (
            f"Tries({len(self.tries)} tries, means {means.min():.4g} to {means.max():.4g}; picked seed "
            f"{picked.seed}{size}, {picked.mean:.4g} in {episodes}, biased upwards)"
        )


def pick(tries: Sequence[Try]) -> int:
    """Return the index of the policy to keep among the tries that do not differ significantly from the best.

    The best one has the highest selection mean. Another does not differ significantly from it under two
    conditions: the mean difference between the two, episode by episode, is at most 1.96 of its standard
    errors; and its mean is at most one standard error of the best one's mean below that. The first alone
    would accept a policy that fails occasionally, because its failures widen the standard error. Among these,
    the smallest is picked; then the one with the higher mean; then the earlier try.

    Examples
    --------
    >>> rows = {1: [5.0, 7.0, 6.0], 2: [5.0, 6.0, 7.0], 3: [1.0, 2.0, 1.0]}
    >>> pick([Try(seed, np.array(row), 30, 9 - seed, "leaf", 1, 1) for seed, row in rows.items()])
    1
    """

    def order(index: int) -> tuple[float, float, int]:
        result = tries[index]
        return (math.inf if result.size is None else result.size, -result.mean, index)

    return min(alike(tries), key=order)


def alike(tries: Sequence[Try]) -> list[int]:
    """Return the indices of the tries that do not differ significantly from the best one."""
    best = max(tries, key=lambda result: result.mean)
    indices = []
    for index, result in enumerate(tries):
        differences = best.returns - result.returns
        if differences.mean() <= min(_threshold(differences), _threshold(best.returns) / _CRITICAL_VALUE):
            indices.append(index)
    return indices


def _threshold(values: NDArray[np.float64]) -> float:
    return _CRITICAL_VALUE * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def shown_try(index: int, tries: int, result: Try) -> str:
    """Return the line that reports a try."""
    played = counted(len(result.returns), "selection episode")
    size = f", {result.shown_size}" if result.shown_size else ""
    returned = with_interval(result.mean, result.ci95)
    return f"try {index + 1} of {tries}: seed {result.seed}, {returned} in {played}{size}"


def tries_csv(seeds: Sequence[int], tries: Sequence[Try | None], picked: int | None) -> str:
    """Return a CSV table with a row for each try; an unfinished try has only a seed."""
    names = (
        "selection_mean",
        "selection_ci95",
        "selection_episodes",
        "selection_steps",
        "size",
        "training_steps",
        "interactions",
    )
    rows = []
    for index, (seed, result) in enumerate(zip(seeds, tries, strict=True)):
        chosen = "" if picked is None else str(index == picked).lower()
        cells = {"try": str(index), "seed": str(seed), "picked": chosen}
        values: tuple[float | int | None, ...] = (None,) * len(names)
        if result is not None:
            steps = (result.selection_steps, result.size, result.training_steps, result.interactions)
            values = (result.mean, result.ci95, len(result.returns), *steps)
        shown = ("" if value is None or math.isnan(value) else repr(value) for value in values)
        rows.append({**cells, **dict(zip(names, shown, strict=True))})
    return comma_separated(rows)
