"""The laws of a controller: one table, a row for each different law."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike, NDArray

from spaql.errors import SettingError
from spaql.kernels.controller import LOWEST_SCORE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Laws:
    """Affine laws K s + c of the inputs s of a controller.

    Of an action with a range each component has a sum, which the controller limits. Of discrete actions each
    has a score: the action with the highest score is taken, the first of equal ones. A score that is NaN, or
    -1e300 or less, is never taken, as of an action with the offset -infinity; if all are, the first action
    is taken. Sums are computed as by `affine`.
    """

    gain: Floats
    """K: laws × outputs × inputs. The outputs are the components of an action, or the discrete actions."""
    offset: Floats
    """c: laws × outputs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gain", np.asarray(self.gain, np.float64))
        object.__setattr__(self, "offset", np.asarray(self.offset, np.float64))

    @classmethod
    def of_actions(cls, actions: ArrayLike, space: Box | Discrete, inputs: int) -> Laws:
        """Return laws that are constant actions, one a row.

        Examples
        --------
        >>> Laws.of_actions([0, 1], Discrete(2), inputs=3).offset
        array([[  0., -inf],
               [-inf,   0.]])
        """
        if isinstance(space, Discrete):
            numbers = np.asarray(actions)
            places = numbers - int(space.start)
            if numbers.ndim != 1 or not np.isin(places, np.arange(int(space.n))).all():
                last = int(space.start) + int(space.n) - 1
                raise SettingError(f"Actions are numbers from {int(space.start)} to {last}, one a law.")
            offset = np.where(np.arange(int(space.n)) == places[:, np.newaxis], 0.0, -np.inf)
        else:
            offset = np.asarray(actions, np.float64)
            low = space.low.ravel()
            high = space.high.ravel()
            if offset.ndim != 2 or offset.shape[1] != len(low) or not np.isfinite(offset).all():
                raise SettingError(f"Constant actions are rows of {len(low)} finite numbers, one a law.")
            if (offset.astype(low.dtype) < low).any() or (offset.astype(low.dtype) > high).any():
                raise SettingError(f"Constant actions are from {low.tolist()} to {high.tolist()}.")
        return cls(np.zeros((*offset.shape, inputs)), offset)

    def __len__(self) -> int:
        return len(self.offset)

    def check(self, inputs: int, actions: Box | Discrete) -> None:
        """Refuse what does not fit the inputs and the actions."""
        discrete = isinstance(actions, Discrete)
        n = int(actions.n) if isinstance(actions, Discrete) else int(np.prod(actions.shape))
        laws = len(self.offset)
        if (self.gain.shape, self.offset.shape) != ((laws, n, inputs), (laws, n)):
            raise SettingError(
                f"Laws have gains of the shape (laws, {n}, {inputs}), and offsets of the shape (laws, {n})."
            )
        # Their ends, and no mask of each number: a file must not take much more memory than its size.
        ends = [self.gain.min(initial=0.0), self.gain.max(initial=0.0), self.offset.max(initial=0.0)]
        least = self.offset.min(initial=0.0)
        if not np.isfinite(ends).all() or not (np.isfinite(least) or (discrete and least == -np.inf)):
            raise SettingError(
                "Laws have finite gains and offsets, except for the offset -inf of a discrete action that is "
                "never taken."
            )
        if not discrete:
            return
        never = self.offset == -np.inf
        if never.all(axis=1).any() or (self.gain.any() and (self.gain.any(axis=2) & never).any()):
            raise SettingError(
                "A law takes a discrete action at least, and one that is never taken has gains of 0."
            )

    @cached_property
    def constant(self) -> NDArray[np.bool_]:
        """Whether each law is the same for all inputs.

        With a gain that is not 0 even the only score may be -infinity, where the first action is taken.
        """
        return np.asarray(~self.gain.any(axis=(1, 2)))

    @property
    def taken(self) -> NDArray[np.bool_]:
        """Which discrete actions each law may take; all components of an action with a range."""
        return np.asarray(self.offset > -np.inf)

    @cached_property
    def highest(self) -> Ints:
        """The discrete action with the highest offset in each law, from 0 on."""
        return np.asarray(np.where(self.offset > LOWEST_SCORE, self.offset, -np.inf).argmax(axis=1))

    def first_equal(self, *, discrete: bool) -> Ints:
        """Return, for each law, the first in the table that is equal to it.

        Laws that take one and the same discrete action are equal, whatever its score.
        """
        offset = self.offset
        if discrete:
            chosen = np.arange(offset.shape[1]) == self.highest[:, np.newaxis]
            offset = np.where(self.constant[:, np.newaxis], np.where(chosen, 0.0, -np.inf), offset)
        rows = np.concatenate([self.gain, offset[:, :, np.newaxis]], axis=2).reshape(len(self), -1)
        _, first, where = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return np.asarray(first[where.ravel()])

    def with_law(self, gain: Floats, offset: Floats) -> Laws:
        """Return the table with one more law."""
        return Laws(np.concatenate([self.gain, [gain]]), np.vstack([self.offset, offset]))

    def with_actions(self, actions: ArrayLike, space: Box | Discrete) -> Laws:
        """Return the table with more laws, which are constant actions."""
        more = Laws.of_actions(actions, space, self.gain.shape[2])
        return Laws(np.concatenate([self.gain, more.gain]), np.vstack([self.offset, more.offset]))


def affine(offset: Floats, gain: Floats, inputs: Floats) -> Floats:
    """Return K s + c for rows of inputs s.

    The order is part of every law and cut, so that other code can compute the same bits: start with c, add
    K[j] s[j] for one j after the other, leaving out those whose gain is 0, in double precision.

    Parameters
    ----------
    offset
        c of each row: rows × sums.
    gain
        K of each row: rows × sums × inputs.
    inputs
        s: rows × inputs.
    """
    total = offset
    for j in range(gain.shape[2]):
        weight = gain[:, :, j]
        used = weight != 0.0  # 0 times infinity is NaN
        total = np.where(used, total + weight * np.where(used, inputs[:, j : j + 1], 0.0), total)
    return total


def laws_of(actions: Box | Discrete, values_of_rows: NDArray[Any], inputs: int) -> tuple[Laws, Ints]:
    """Return the different actions among those given as laws, and the law of each of them."""
    if isinstance(actions, Discrete):
        values, rows = np.unique(values_of_rows.astype(np.int64), return_inverse=True)
    else:
        values, rows = np.unique(values_of_rows.astype(np.float64), axis=0, return_inverse=True)
    return Laws.of_actions(values, actions, inputs), rows.ravel()
