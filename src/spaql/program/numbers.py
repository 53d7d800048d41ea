"""The number types of a machine: of the observations and actions of a program.

Thresholds are rounded up to the next number of the machine: for every number that the machine has,
`x < threshold` is then decided as in double precision. What is computed, is computed in double precision
whatever the machine's numbers are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class NumberType:
    """A floating-point type, to which doubles are converted: to the nearest number."""

    name: str
    dtype: np.dtype[Any]

    def up(self, x: float) -> float:
        """Return the smallest number of the machine that is not below x."""
        if self.name == "double":
            return x
        near = self.value(x)
        return (near if near >= x else self.neighbour(near, upper=True)) + 0.0  # no minus zero

    def neighbour(self, x: float, *, upper: bool) -> float:
        """Return the number of the machine next to one of its numbers."""
        end = np.inf if upper else -np.inf
        with np.errstate(over="ignore", under="ignore"):
            return float(np.nextafter(self.dtype.type(x), self.dtype.type(end)))

    def inputs(self, batch: Doubles) -> NDArray[Any]:
        """Convert doubles as the header of exported code says that observations are converted."""
        with np.errstate(over="ignore", under="ignore"):
            return batch.astype(self.dtype)

    def values(self, inputs: NDArray[Any]) -> Doubles:
        """Return the doubles that inputs stand for."""
        return inputs.astype(np.float64)

    def rounded(self, actions: Doubles) -> Doubles:
        """Return the numbers of the machine next to actions."""
        return self.values(self.inputs(actions))

    def value(self, x: float) -> float:
        """Return the number of the machine next to x."""
        return float(self.rounded(np.array(x)))


_TYPES = {
    kind.name: kind
    for kind in (NumberType("double", np.dtype(np.float64)), NumberType("float", np.dtype(np.float32)))
}


def number_type(name: str) -> NumberType:
    """Return the number type of a name."""
    if name not in _TYPES:
        raise SettingError(f"number is {name!r}, and must be 'double' or 'float'.")
    return _TYPES[name]
