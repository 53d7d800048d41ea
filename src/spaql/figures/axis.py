"""Axes of pictures of a policy: an observation, or an angle that is observed by its cosine and sine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.spaces import find_observation, split_unit

Floats = NDArray[np.float64]

_MARGIN = 0.1
"""Margin beyond either end, as a share of the range of the visited states."""
_MOST = 0.5
"""Share of an observation's range that must be visited for the whole range to be shown."""


@dataclass(frozen=True)
class Axis:
    """An axis of a picture."""

    label: str
    """Its name, with the unit in brackets."""
    low: float
    high: float
    put: Callable[[Floats], Mapping[int, Floats]]
    """Returns the values of observations, by their index, at places along the axis."""
    read: Callable[[Floats], Floats]
    """Returns the places of observations, one per row."""
    turns: bool = False
    """Whether it is an angle in rad, whose ends are the same place."""
    index: int | None = None
    """Of the observation, if the axis is a single one."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SettingError(
                f"The axis of {self.label} goes from {self.low:g} to {self.high:g}: give two numbers, the "
                "lower one first."
            )


def plain_axis(index: int, label: str, low: float, high: float) -> Axis:
    """Return the axis of one number of an observation."""
    return Axis(
        label, low, high, lambda at: {index: at}, lambda observations: observations[:, index], index=index
    )


def angle_axis(cosine: int, sine: int, label: str = "angle [rad]") -> Axis:
    """Return the axis of an angle that is observed by its cosine and sine, given by their indices.

    Examples
    --------
    >>> axis = angle_axis(0, 1)
    >>> axis.read(np.array([[0.0, 1.0, 5.0]]))
    array([1.57079633])
    """
    return Axis(
        label,
        -math.pi,
        math.pi,
        lambda at: {cosine: np.cos(at), sine: np.sin(at)},
        lambda observations: np.arctan2(observations[:, sine], observations[:, cosine]),
        turns=True,
    )


def find_axis(
    wanted: str | int | Axis,
    names: Sequence[str],
    space: Box | Discrete,
    visited: Floats | None,
    limits: tuple[float, float] | None = None,
) -> Axis:
    """Return the axis of an observation, by name or number.

    A name may leave out its unit. Where there are both `cos(angle)` and `sin(angle)`, `angle` is an axis as
    well. Without limits an axis covers the visited states; or the bounds of the space, if the states cover
    half of them or there are none.
    """
    if isinstance(wanted, Axis):
        return wanted
    pair = [f"{function}({wanted})" for function in ("cos", "sin")]
    if wanted not in [split_unit(name)[0] for name in names] and all(name in names for name in pair):
        axis = angle_axis(names.index(pair[0]), names.index(pair[1]), f"{wanted} [rad]")
        return replace(axis, low=limits[0], high=limits[1]) if limits else axis
    index = find_observation(wanted, names, angles(names))
    low, high = limits or _limits(index, space, visited)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise SettingError(
            f"{names[index]} has no bounds: give its limits, or an environment to play episodes in."
        )
    return plain_axis(index, names[index], low, high)


def angles(names: Sequence[str]) -> list[str]:
    """Return the angles that are observed by their cosine and sine.

    Examples
    --------
    >>> angles(["cos(angle)", "sin(angle)", "speed [rad/s]"])
    ['angle']
    """
    cosines = [name[4:-1] for name in names if name.startswith("cos(") and name.endswith(")")]
    return [name for name in cosines if f"sin({name})" in names]


def _limits(index: int, space: Box | Discrete, visited: Floats | None) -> tuple[float, float]:
    if isinstance(space, Discrete):
        return float(space.start) - 0.5, float(space.start + space.n) - 0.5
    low = float(space.low[index])
    high = float(space.high[index])
    if visited is None:
        return low, high
    least = float(visited[:, index].min())
    most = float(visited[:, index].max())
    if most - least >= _MOST * (high - low):
        return low, high
    room = _MARGIN * (most - least) or 1.0
    return max(low, least - room), min(high, most + room)
