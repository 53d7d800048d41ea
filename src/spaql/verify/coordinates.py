"""Coordinates of a closed loop in which a switching law moves one number only.

A law that switches between two actions tears every set that it decides in. Let the first coordinate be what
the law compares, and the others such that the action does not move them within a step. Then sets are torn
along the first alone, and a cut there is exact. The others are along eigenvectors of what is left.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.verify.analysis import same_numbers
from spaql.verify.closed_loop import ClosedLoop

Floats = NDArray[np.float64]

_STEP = 1e-5
"""Of central differences."""
_ERROR = 1e-12
"""Most by which rounding of the two matrices may move a state, in ranges of the coordinates."""
FAR = 100.0
"""Ranges of a coordinate that a set may be away, for the error above."""


@dataclass(frozen=True)
class Coordinates:
    """Linear coordinates of a state."""

    there: Floats
    """Coordinates × state variables."""
    back: Floats
    """The inverse: a state is exactly this matrix times its coordinates."""

    def loop(self, loop: ClosedLoop, keep: tuple[Floats, Floats], error: Floats) -> ClosedLoop:
        """Return a closed loop in these coordinates, which terminates where a state is not in `keep`.

        What `there` differs from the inverse of `back` by rounding is an unknown disturbance, up to `error`.
        """
        n = len(self.back)
        low = keep[0] + loop.push
        high = keep[1] - loop.push
        return dataclasses.replace(
            loop,
            step=loop.step.in_coordinates(
                self.back, self.there, (np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
            ),
            observe=loop.observe.in_coordinates(self.back),
            names=tuple(f"coordinate {j}" for j in range(n)),
            push=np.abs(self.there) @ loop.push * (1.0 + 1e-9) + error,
        )

    def error(self, wide: Floats) -> Floats | None:
        """Return what covers rounding of the matrices, for states up to `FAR` ranges away; None if much.

        With y the exact coordinates of a state x = back y, and v = there x, it is y - v = (I - there back) y.
        """
        rest = np.abs(np.eye(len(wide)) - self.there @ self.back)
        rest += 1e-15 * len(wide) * (np.abs(self.there) @ np.abs(self.back))  # this product is rounded, too
        if np.any(rest @ wide > _ERROR * wide):
            return None
        return np.asarray(2.0 * FAR * _ERROR * wide)


def find_coordinates(loop: ClosedLoop, states: Floats) -> Coordinates | None:
    """Return coordinates for a tree of one leaf that switches between two actions, from states as played.

    None if the tree is another one, if the plant has angles that turn, or if there are none.
    """
    laws = loop.tree.laws
    n = len(loop.names)
    first = loop.tree.frame.first
    if not loop.tree.discrete or laws.offset.shape != (1, 2) or loop.arrays.period.any():
        return None
    same = same_numbers(loop.observe)
    weights = laws.gain[0, 1] - laws.gain[0, 0]
    if not weights.any():
        return None
    if np.any(same[weights != 0.0] < 0) or loop.step.inputs != n + 1:
        return None
    compared = np.zeros(n)
    np.add.at(compared, same[weights != 0.0], weights[weights != 0.0])

    middle = states.mean(axis=0)
    moved = [
        [loop.step([*(middle + sign * _STEP * axis), first + action])[0] for axis in np.eye(n)]
        for sign in (1.0, -1.0)
        for action in (0, 1)
    ]
    ahead = (np.array(moved[0]) + moved[1] - moved[2] - moved[3]).T / (4.0 * _STEP)
    pushed = loop.step([*middle, first + 1])[0] - loop.step([*middle, first])[0]
    size = float(compared @ pushed)
    if not np.all(np.isfinite(ahead)) or abs(size) < 1e-9 * np.linalg.norm(compared) * np.linalg.norm(pushed):
        return None
    unmoved = np.linalg.svd(pushed[np.newaxis])[2][1:]
    there = np.vstack([compared / abs(size), unmoved])
    rest = (there @ ahead @ np.linalg.inv(there))[1:, 1:]
    values, vectors = np.linalg.eig(rest)
    columns = [
        part
        for value, vector in zip(values, vectors.T, strict=True)
        if value.imag >= 0.0
        for part in ((vector.real, vector.imag) if value.imag > 0.0 else (vector.real,))
    ]
    if np.linalg.cond(np.array(columns)) > 1e6:
        return None
    there = np.vstack([there[:1], np.linalg.solve(np.array(columns).T, unmoved)])
    return Coordinates(there, np.linalg.inv(there))
