"""Observations beyond their declared range: which, how far, and in how many episodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spaql.formatting import counted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Excursion:
    """An observation that left its declared range.

    Examples
    --------
    >>> Excursion("temperature [°C]", 0.0, 40.0, episodes=3, farthest=52.16).text(100)
    '3 of 100 episodes left the declared range of temperature [°C]: 52.16 of 0 to 40'
    """

    name: str
    low: float
    high: float
    episodes: int
    """Number of episodes in which it did."""
    farthest: float
    """Its value farthest from the range."""

    def text(self, played: int) -> str:
        """Return a sentence, for so many episodes."""
        return (
            f"{self.episodes:,} of {counted(played, 'episode')} left the declared range of {self.name}: "
            f"{self.farthest:.4g} of {self.low:g} to {self.high:g}"
        )

    @property
    def distance(self) -> float:
        """Distance of the farthest value from the range."""
        return max(self.low - self.farthest, self.farthest - self.high)


def excursions_of(outside: Floats, low: Floats, high: Floats, names: Sequence[str]) -> tuple[Excursion, ...]:
    """Return the excursions of episodes.

    `outside` has a row for each episode: of each observation the farthest value, NaN if it never left.
    """
    excursions = []
    for j, name in enumerate(names):
        values = outside[~np.isnan(outside[:, j]), j]
        if len(values):
            distances = np.maximum(low[j] - values, values - high[j])
            farthest = float(values[np.argmax(distances)])
            excursions.append(Excursion(name, float(low[j]), float(high[j]), len(values), farthest))
    return tuple(excursions)


def joined_excursions(parts: Iterable[Sequence[Excursion]]) -> tuple[Excursion, ...]:
    """Return the excursions of all parts of an evaluation, by observation."""
    joined: dict[str, Excursion] = {}
    for part in parts:
        for excursion in part:
            before = joined.setdefault(excursion.name, replace(excursion, episodes=0))
            farther = max(before, excursion, key=lambda excursion: excursion.distance)
            joined[excursion.name] = replace(farther, episodes=before.episodes + excursion.episodes)
    return tuple(joined.values())
