"""The leaves of a rule tree: one table per tree, one row per different leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.kernels.controller import LOWEST_SCORE


@dataclass(frozen=True, eq=False)
class Choices:
    """Actions of a list, as the environment numbers them."""

    number: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.number)

    def give(self, rows: NDArray[np.int64], observations: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the action of a leaf for each observation."""
        return self.number[rows]

    def n_numbers(self, rows: NDArray[np.int64]) -> int:
        """Return how many numbers of some rows are not 0."""
        return 0  # actions have names

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

    def n_numbers(self, rows: NDArray[np.int64]) -> int:
        """Return how many numbers of some rows are not 0."""
        return int(np.count_nonzero(self.value[rows]))

    def check(self, observations: int, actions: Box | Discrete) -> None:
        """Refuse what does not fit the spaces."""
        n = _numbers(actions, "constants")
        if self.value.ndim != 2 or self.value.shape[1] != n or not np.isfinite(self.value).all():
            raise SettingError(f"Constants are rows of {n} finite numbers, one a leaf.")
        assert isinstance(actions, Box)
        low, high = actions.low.ravel(), actions.high.ravel()
        ends = (self.value.min(axis=0), self.value.max(axis=0)) if len(self) else (low, high)
        if (ends[0].astype(low.dtype) < low).any() or (ends[1].astype(low.dtype) > high).any():
            raise SettingError(f"Constants are actions from {low.tolist()} to {high.tolist()}.")


def affine(
    offset: NDArray[np.float64], gain: NDArray[np.float64], observations: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return K s + c for rows of observations s.

    The order is part of every law and cut, so that other code can compute the same bits: start with c, add
    K[j] s[j] for one j after the other, leaving out those whose gain is 0, in double precision.

    Parameters
    ----------
    offset
        c of each row: rows × sums.
    gain
        K of each row: rows × sums × numbers of an observation.
    observations
        s: rows × numbers of an observation.
    """
    total = offset
    for j in range(gain.shape[2]):
        weight = gain[:, :, j]
        used = weight != 0.0  # 0 times infinity is NaN
        total = np.where(used, total + weight * np.where(used, observations[:, j : j + 1], 0.0), total)
    return total


@dataclass(frozen=True, eq=False)
class Laws:
    """Affine laws u = clip(K s + c, low, high) of the raw observation s.

    K s + c is computed as by `affine`; then u is set to low if it is less, and to high if it is more.
    Infinite terms that cancel result in NaN, for which the tree has a default action.
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
        u = affine(self.offset[rows], self.gain[rows], observations)
        u = np.where(u < self.low, self.low, u)
        return np.where(u > self.high, self.high, u)

    def n_numbers(self, rows: NDArray[np.int64]) -> int:
        """Return how many numbers of some rows are not 0."""
        return int(np.count_nonzero(self.gain[rows]) + np.count_nonzero(self.offset[rows]))

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


@dataclass(frozen=True, eq=False)
class SwitchingLaws:
    """Switching laws: of a list of actions the one whose score K s + c is highest, the first of equal ones.

    Scores are computed as by `affine`. One that is NaN, or -1e300 or less, is never taken, as of an action
    with the offset -infinity; if all are, the first action of the list is taken.
    """

    gain: NDArray[np.float64]
    """K: laws × actions × numbers of an observation."""
    offset: NDArray[np.float64]
    """c: laws × actions."""
    start: int = 0
    """The number of the first action."""

    def __len__(self) -> int:
        return len(self.offset)

    def give(self, rows: NDArray[np.int64], observations: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the action of a leaf for each observation."""
        scores = affine(self.offset[rows], self.gain[rows], observations)
        return np.asarray(self.start + np.where(scores > LOWEST_SCORE, scores, -np.inf).argmax(axis=1))

    def n_numbers(self, rows: NDArray[np.int64]) -> int:
        """Return how many numbers of some rows are not 0; an action that is the only one has none."""
        several = np.array([row for row in rows if self.constant(row) is None], np.int64)
        offset = self.offset[several]
        return int(np.count_nonzero(self.gain[several]) + np.count_nonzero(offset[offset > -np.inf]))

    def check(self, observations: int, actions: Box | Discrete) -> None:
        """Refuse what does not fit the spaces."""
        if not isinstance(actions, Discrete):
            raise SettingError("Switching laws are for a list of actions: for a Box, give constants or laws.")
        laws, n = len(self.offset), int(actions.n)
        if (self.gain.shape, self.offset.shape) != ((laws, n, observations), (laws, n)):
            raise SettingError(
                f"Switching laws have gains of the shape (laws, {n}, {observations}), and offsets of the "
                f"shape (laws, {n})."
            )
        if self.start != int(actions.start):
            raise SettingError(f"The first action has the number {int(actions.start)}, not {self.start}.")
        never = self.offset == -np.inf
        finite = np.isfinite(self.gain).all() and (np.isfinite(self.offset) | never).all()
        if not finite or never.all(axis=1).any() or (self.gain[never] != 0.0).any():
            raise SettingError(
                "Switching laws have finite gains and offsets; an action that is never taken has the offset "
                "-inf and gains of 0, and each law takes an action at least."
            )

    def constant(self, row: int) -> int | None:
        """Return the action of a law that takes only one, and None for any other law.

        With a gain that is not 0 even the only score may be -infinity, where the first action is taken.
        """
        taken = np.flatnonzero(self.offset[row] > -np.inf)
        return self.start + int(taken[0]) if len(taken) == 1 and not self.gain[row].any() else None

    def with_constant(self, action: int) -> SwitchingLaws:
        """Return the table with one more law, which takes only one action."""
        offset = np.full((1, self.offset.shape[1]), -np.inf)
        offset[0, action - self.start] = 0.0
        gain = np.concatenate([self.gain, np.zeros((1, *self.gain.shape[1:]))])
        return SwitchingLaws(gain, np.vstack([self.offset, offset]), self.start)


Leaves = Choices | Constants | Laws | SwitchingLaws


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

    Switching laws that take only one and the same action are equal, whatever its score.

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
        offset = leaves.offset
        if isinstance(leaves, SwitchingLaws):
            constant = [[leaves.constant(row) is not None] for row in range(len(leaves))]
            offset = np.where(constant & (offset > -np.inf), 0.0, offset)
        rows = np.concatenate([leaves.gain, offset[:, :, np.newaxis]], axis=2).reshape(len(leaves), -1)
    _, first, where = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[where.ravel()])
