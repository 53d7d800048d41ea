"""The number types of a machine: of the observations and actions of a program.

Thresholds are rounded up to the next number of the machine: for every number that the machine has,
`x < threshold` is then decided as in double precision. What is computed, is computed in double precision
whatever the machine's numbers are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError

Doubles = NDArray[np.float64]
NAMES = ("double", "float", "fixed")


class Number(ABC):
    """A number type, for the observations and actions of one controller; here one in floating point."""

    name: str
    dtype: np.dtype[Any]

    @abstractmethod
    def up(self, feature: int, x: float) -> float:
        """Return the smallest number of the machine that is not below x."""

    def neighbour(self, feature: int, x: float, *, upper: bool) -> float:
        """Return the number of the machine next to one of its numbers."""
        end = np.inf if upper else -np.inf
        with np.errstate(over="ignore", under="ignore"):
            return float(np.nextafter(self.dtype.type(x), self.dtype.type(end)))

    def inputs(self, batch: Doubles) -> NDArray[Any]:
        """Convert rows of doubles as the header says that observations are converted: to the nearest."""
        with np.errstate(over="ignore", under="ignore"):
            return batch.astype(self.dtype)

    def rounded(self, actions: Doubles) -> Doubles:
        """Return the numbers of the machine next to rows of actions."""
        return self.inputs(actions).astype(np.float64)

    def values(self, inputs: NDArray[Any]) -> Doubles:
        """Return the doubles that inputs stand for."""
        return inputs.astype(np.float64)

    def actions(self, outputs: NDArray[Any]) -> Doubles:
        """Return the actions that outputs stand for."""
        return outputs.astype(np.float64)

    def threshold(self, feature: int, x: float) -> float:
        """Return the smallest number of the machine that is not below x, as a program has it."""
        return self.up(feature, x)

    def value(self, component: int, x: float) -> float:
        """Return a component of an action as a program has it."""
        return float(self.rounded(np.array([[x]]))[0, 0])


class Double(Number):
    """Double precision: what controllers are learned in."""

    name = "double"
    dtype = np.dtype(np.float64)

    def up(self, feature: int, x: float) -> float:
        """Return the number itself."""
        return x


class Float(Number):
    """Single precision; doubles are converted to the nearest."""

    name = "float"
    dtype = np.dtype(np.float32)

    def up(self, feature: int, x: float) -> float:
        """Return the smallest number of the machine that is not below x."""
        with np.errstate(over="ignore", under="ignore"):
            near = float(np.float32(x))
        up = near if near >= x else self.neighbour(feature, near, upper=True)
        return up + 0.0  # no minus zero


@dataclass(frozen=True)
class Fixed(Number):
    """Fixed-point numbers of 32 bits, in steps of 2^-bits, with bits for each observation and action.

    Doubles are rounded down to a step, and saturate. A program has them as whole numbers of steps.
    """

    observation_bits: tuple[int, ...]
    action_bits: tuple[int, ...]
    name = "fixed"
    dtype = np.dtype(np.int32)

    @classmethod
    def reaching(cls, observations: Doubles, actions: Doubles) -> Fixed:
        """Return the type whose bits suit the largest magnitudes of observations and actions."""
        return cls(tuple(map(_bits, observations.tolist())), tuple(map(_bits, actions.tolist())))

    def up(self, feature: int, x: float) -> float:
        """Return the smallest number of the machine that is not below x."""
        return math.ldexp(self.threshold(feature, x), -self.observation_bits[feature])

    def threshold(self, feature: int, x: float) -> float:
        """Return the smallest number of the machine that is not below x, as a program has it."""
        return float(math.ceil(_scaled(x, self.observation_bits[feature])))

    def value(self, component: int, x: float) -> float:
        """Return a component of an action as a program has it."""
        return float(round(math.ldexp(x, self.action_bits[component])))

    def neighbour(self, feature: int, x: float, *, upper: bool) -> float:
        """Return the number of the machine next to one of its numbers."""
        n = self.threshold(feature, x) + (1.0 if upper else -1.0)
        return math.ldexp(min(max(n, _FIRST), _LAST), -self.observation_bits[feature])

    def inputs(self, batch: Doubles) -> NDArray[Any]:
        """Convert rows of doubles to the steps below them."""
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.floor(np.ldexp(batch, np.array(self.observation_bits)))
        return np.asarray(np.clip(scaled, _FIRST, _LAST).astype(np.int32))

    def values(self, inputs: NDArray[Any]) -> Doubles:
        """Return the doubles that inputs stand for."""
        return np.asarray(np.ldexp(inputs.astype(np.float64), -np.array(self.observation_bits)))

    def actions(self, outputs: NDArray[Any]) -> Doubles:
        """Return the actions that outputs stand for."""
        return np.asarray(np.ldexp(outputs.astype(np.float64), -np.array(self.action_bits)))

    def rounded(self, actions: Doubles) -> Doubles:
        """Return the numbers of the machine next to rows of actions."""
        bits = np.array(self.action_bits)
        return np.asarray(np.ldexp(np.rint(np.ldexp(actions, bits)), -bits))


_FIRST = -(2**31)
_LAST = 2**31 - 1


def _scaled(x: float, bits: int) -> Fraction:
    return Fraction(x) * Fraction(2) ** bits


def _bits(reach: float) -> int:
    """Return the most bits for which all numbers up to `reach`, and the next step, are below 2^31."""
    bits = 31 - math.frexp(reach)[1]
    while math.ceil(_scaled(reach, bits)) > _LAST:
        bits -= 1
    return bits


def checked_number(name: str) -> str:
    """Return the name of a number type, if there is one of it."""
    if name not in NAMES:
        raise SettingError(f"number is {name!r}, and must be 'double', 'float' or 'fixed'.")
    return name
