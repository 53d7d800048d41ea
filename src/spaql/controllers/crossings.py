"""Where a single number of an observation crosses boundaries that depend on several numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller

Floats = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
"""Below this, products lose digits."""
_FIRST = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Planes:
    """Boundaries w s + c = 0 of observations s, one per row."""

    weight: Floats
    constant: Floats
    gross: Floats
    """The sum of the magnitudes from which a weight was computed, which bounds its rounding error."""
    gross_constant: Floats

    def crossings(self, point: Floats, j: int) -> Crossings:
        """Return where the boundaries are crossed if number j of an observation changes alone."""
        crossed = self.weight[:, j] != 0.0
        weight = self.weight[crossed]
        rest = np.arange(len(point)) != j
        with np.errstate(invalid="ignore", over="ignore"):
            others, sizes = (
                np.where(w != 0.0, w * x, 0.0)[:, rest].sum(axis=1)
                for w, x in ((weight, point), (self.gross[crossed], np.abs(point)))
            )
            place = -(others + self.constant[crossed]) / weight[:, j]
            size = sizes + self.gross_constant[crossed] + self.gross[crossed, j] * np.abs(place)
            error = 4 * (len(point) + 3) * _EPS * (size + _TINY) / np.abs(weight[:, j])
        known = np.isfinite(place) & np.isfinite(error)
        return Crossings(place[known], error[known])


@dataclass(frozen=True)
class Crossings:
    """Places at which a boundary is crossed, each with a bound on its error."""

    place: Floats
    error: Floats


def planes(controller: Controller, thresholds: Sequence[Floats]) -> Planes:
    """Return the boundaries of a controller that depend on several inputs.

    Those are its cuts of sums, for thresholds of each sum, and where two scores of a law for discrete actions
    are equal.
    """
    sums = np.repeat(controller.combinations, [len(row) for row in thresholds], axis=0)
    cuts = np.concatenate([*thresholds, np.empty(0)])
    parts = [(sums, -cuts, np.abs(sums), np.abs(cuts))]
    if controller.discrete:
        gain = controller.laws.gain
        offset = controller.laws.offset
        first, second = np.triu_indices(offset.shape[1], 1)
        both = np.isfinite(offset[:, first]) & np.isfinite(offset[:, second])
        a = gain[:, first][both]
        b = gain[:, second][both]
        c = offset[:, first][both]
        d = offset[:, second][both]
        parts.append((b - a, d - c, np.abs(a) + np.abs(b), np.abs(c) + np.abs(d)))
    return Planes(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def located(
    crossings: Crossings,
    point: Floats,
    j: int,
    bounds: tuple[float, float],
    which: Callable[[Floats], NDArray[Any]],
) -> Floats:
    """Return the boundaries near some crossings at which `which` changes, to the last bit.

    Each is the least float on its upper side. `which` returns a row for each observation; boundaries that it
    does not know, and those beyond the bounds, are left out.
    """
    ends = np.stack(
        [np.nextafter(crossings.place + sign * crossings.error, sign * np.inf) for sign in (-1.0, 1.0)]
    )
    # Where the observation lies within the error, there may be a boundary on each of its sides.
    up = ends[:, ends[1] > point[j]]
    down = ends[::-1, ends[0] < point[j]]
    up = np.maximum(up, point[j])
    down = np.minimum(down, point[j])
    near, far = np.clip(np.concatenate([up, down], axis=1), *bounds)
    if not len(near):
        return np.empty(0)
    before = which(moved_to(point, j, near))
    differs = np.any(which(moved_to(point, j, far)) != before, axis=1)
    before = before[differs]
    a = _ordered(near[differs])
    b = _ordered(far[differs])
    while np.any(np.abs(b - a) > 1):
        middle = (a & b) + ((a ^ b) >> 1)  # of integers, without overflow
        same = np.all(which(moved_to(point, j, _floats(middle))) == before, axis=1)
        a = np.where(same, middle, a)
        b = np.where(same, b, middle)
    return np.asarray(np.unique(_floats(np.maximum(a, b))))


def moved_to(point: Floats, j: int, values: Floats) -> Floats:
    """Return copies of an observation, in which number j has other values."""
    rows = np.repeat(point[np.newaxis], len(values), axis=0)
    rows[:, j] = values
    return rows


def _ordered(x: Floats) -> NDArray[np.int64]:
    """Return floats as integers of the same order; adjacent floats differ by 1."""
    bits = (x + 0.0).view(np.int64)  # without a negative zero
    return np.where(bits < 0, _FIRST - bits, bits)


def _floats(ordered: NDArray[np.int64]) -> Floats:
    return np.where(ordered < 0, _FIRST - ordered, ordered).view(np.float64)
