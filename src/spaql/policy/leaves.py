"""The leaves of a rule tree: one table per tree, one row per different leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError


@dataclass(frozen=True, eq=False)
class Choices:
    """Actions of a list, as the environment numbers them."""

    number: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.number)

    def give(self, rows: NDArray[np.int64], observations: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the action of a leaf for each observation."""
        return self.number[rows]

    def check(self, observations: int, actions: Box | Discrete) -> None:
        """Refuse what does not fit the spaces."""
        if not isinstance(actions, Discrete):
            raise SettingError("Choices are for a list of actions: for a Box, give constants or laws.")
        first, last = int(actions.start), int(actions.start) + int(actions.n) - 1
        if self.number.ndim != 1 or np.any(self.number < first) or np.any(self.number > last):
            raise SettingError(f"Choices are numbers from {first} to {last}, one a leaf.")


@dataclass(frozen=True, eq=False)
class Constants:
    """Constant actions in raw units, one per row."""

    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.value)

    def give(self, rows: NDArray[np.int64], observations: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the action of a leaf for each observation."""
        return self.value[rows]

    def check(self, observations: int, actions: Box | Discrete) -> None:
        """Refuse what does not fit the spaces."""
        n = _numbers(actions, "constants")
        if self.value.ndim != 2 or self.value.shape[1] != n or not np.isfinite(self.value).all():
            raise SettingError(f"Constants are rows of {n} finite numbers, one a leaf.")


@dataclass(frozen=True, eq=False)
class Laws:
    """Affine laws u = clip(K s + c, low, high) of the raw observation s.

    The order is part of the law, so that other code can compute the same bits: start with c, add K[j] s[j]
    for one j after the other, leaving out those whose gain is 0, then set u to low if it is less, and to high
    if it is more. Everything is computed in double precision. Infinite terms that cancel result in NaN, for
    which the tree has a default action.
    """

    gain: NDArray[np.float64]
    """K: laws × numbers of an action × numbers of an observation."""
    offset: NDArray[np.float64]
    """c: laws × numbers of an action."""
    low: NDArray[np.float64]
    """Of each number of an action."""
    high: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.offset)

    def give(self, rows: NDArray[np.int64], observations: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the action of a leaf for each observation."""
        u = self.offset[rows]
        for j in range(self.gain.shape[2]):
            gain = self.gain[rows, :, j]
            # Gains of 0 are left out because 0 times infinity is NaN.
            u = np.where(gain != 0.0, u + gain * np.where(gain != 0.0, observations[:, j : j + 1], 0.0), u)
        u = np.where(u < self.low, self.low, u)
        return np.where(u > self.high, self.high, u)

    def check(self, observations: int, actions: Box | Discrete) -> None:
        """Refuse what does not fit the spaces."""
        n, laws = _numbers(actions, "laws"), len(self.offset)
        shapes = (self.gain.shape, self.offset.shape, self.low.shape, self.high.shape)
        if shapes != ((laws, n, observations), (laws, n), (n,), (n,)):
            raise SettingError(
                f"Laws have gains of the shape (laws, {n}, {observations}), offsets of the shape (laws, {n}) "
                f"and {n} bounds on either side."
            )
        finite = np.isfinite(self.gain).all() and np.isfinite(self.offset).all()
        if not finite or not np.all(self.low <= self.high):
            raise SettingError("Laws have finite gains and offsets, and bounds of which the lower is first.")


Leaves = Choices | Constants | Laws


def _numbers(actions: Box | Discrete, what: str) -> int:
    if isinstance(actions, Discrete):
        raise SettingError(f"A list of actions has choices in its leaves, no {what}.")
    return int(np.prod(actions.shape))


def leaves_of(actions: Box | Discrete, given: NDArray[Any]) -> tuple[Leaves, NDArray[np.int64]]:
    """Return a table of the different actions among those given, and the row of each of them."""
    if isinstance(actions, Discrete):
        numbers, rows = np.unique(given.astype(np.int64), return_inverse=True)
        return Choices(numbers), rows.ravel()
    values, rows = np.unique(given.astype(np.float64), axis=0, return_inverse=True)
    return Constants(values), rows.ravel()


def first_equal(leaves: Leaves) -> NDArray[np.int64]:
    """Return, for each row of a table, the first row that is equal to it.

    Examples
    --------
    >>> first_equal(Choices(np.array([1, 0, 1])))
    array([0, 1, 0])
    """
    if isinstance(leaves, Choices):
        rows: NDArray[Any] = leaves.number[:, np.newaxis]
    elif isinstance(leaves, Constants):
        rows = leaves.value
    else:
        rows = np.concatenate([leaves.gain, leaves.offset[:, :, np.newaxis]], axis=2).reshape(len(leaves), -1)
    _, first, where = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[where.ravel()])
