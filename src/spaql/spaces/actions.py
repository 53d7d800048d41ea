"""Actions in raw units, and the ranges of integers that represent them in a partition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError, UnsupportedSpaceError
from spaql.kernels.partition.balls import INTERVAL
from spaql.kernels.partition.standardise import ActionMap, raw_actions
from spaql.spaces.names import action_names, check_names

_WRAP = "wrap the environment, as gymnasium.wrappers.TransformAction does"


def environment_actions(space: Space[Any], rows: NDArray[np.float64]) -> NDArray[Any]:
    """Return what a controller gives, one action a row, as environments take it; discrete ones count from 0.

    Examples
    --------
    >>> environment_actions(Discrete(2, start=1), np.array([[0.0], [1.0]]))
    array([1, 2])
    """
    if isinstance(space, Discrete):
        return int(space.start) + rows[:, 0].astype(np.int64)
    return rows.reshape(-1, *(space.shape or ())).astype(space.dtype)


@dataclass(frozen=True)
class StandardActions:
    """The map between raw actions and standard ones.

    A standard action has one number for each dimension: the index of a finite action, or a point of
    [-1, 1] for an interval. A Box may be cut into `levels` even levels, both ends included, which
    makes all its dimensions finite.

    Examples
    --------
    >>> torques = StandardActions.of(Box(-2.0, 2.0, (1,)), levels=5)
    >>> torques.sizes
    (5,)
    >>> torques.restore(np.array([[0.0], [3.0]]))
    array([[-2.],
           [ 1.]], dtype=float32)
    """

    space: Box | Discrete
    levels: int | None = None
    names: tuple[str, ...] = ()
    """Names of the numbers of a Box, or of the actions of a list; empty if they are not known."""

    def __post_init__(self) -> None:
        check_names("actions", self.names)

    @classmethod
    def of(cls, space: Space[Any], levels: int | None = None, names: tuple[str, ...] = ()) -> StandardActions:
        """Standardise a Box (of any number of dimensions) or Discrete action space."""
        if isinstance(space, Discrete):
            if levels is not None:
                raise SettingError("Levels cut a Box of actions, and these are already finite.")
            return cls(space, None, names)
        if not isinstance(space, Box) or len(space.shape) != 1 or not np.issubdtype(space.dtype, np.floating):
            raise UnsupportedSpaceError(
                f"Actions must be a vector of real numbers (Box) or one of a list (Discrete), and this is "
                f"{space}: {_WRAP}."
            )
        if not np.all(np.isfinite(space.low) & np.isfinite(space.high)):
            raise UnsupportedSpaceError(
                f"A Box of actions needs bounds on every side, and this one is {space}: {_WRAP}, with bounds "
                "that suit it."
            )
        if levels is not None and levels < 2:
            raise SettingError("A Box is cut into two levels or more.")
        return cls(space, levels, names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names, or u0, u1 and so on; action 0, action 1 of a list."""
        return action_names(self.space, self.names)

    @property
    def dims(self) -> int:
        """The number of action dimensions."""
        return len(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each dimension for a partition: its number of actions, or `INTERVAL`."""
        if isinstance(self.space, Discrete):
            return (int(self.space.n),)
        return (self.levels or INTERVAL,) * self.space.shape[0]

    def restore(self, standard: NDArray[np.float64]) -> NDArray[Any]:
        """Return a batch of raw actions for standard ones, one per row."""
        return self.shaped(raw_actions(self.action_map, standard))

    def shaped(self, raw: NDArray[np.float64]) -> NDArray[Any]:
        """Return rows of raw actions in the form of the action space."""
        if isinstance(self.space, Discrete):
            return raw[:, 0].astype(np.int64)
        return raw.astype(self.space.dtype)

    @cached_property
    def action_map(self) -> ActionMap:
        """The map from standard to raw actions, for the kernels."""
        if isinstance(self.space, Discrete):
            first = float(self.space.start)
            return ActionMap(np.array([first]), np.array([first + float(self.space.n) - 1.0]), 1)
        low = self.space.low.astype(np.float64)
        high = self.space.high.astype(np.float64)
        return ActionMap(low, high, self.levels or 0)
