"""The number types of a machine, and rule trees in them.

Thresholds are rounded up to the next number of the machine: for every number that the machine has,
`x < threshold` is then decided as in double precision. Sums of observations are computed and compared in
double precision whatever the machine's numbers are, so that their thresholds stay as they are.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.export.rewrite import bounds, constants, skipping
from spaql.policy import Laws, RuleTree, SwitchingLaws
from spaql.spaces import unbounded

Doubles = NDArray[np.float64]


class Number(ABC):
    """A number type, for the observations and actions of one controller."""

    name: str
    dtype: np.dtype[Any]

    @abstractmethod
    def up(self, feature: int, x: float) -> float:
        """Return the smallest number of the machine that is not below x."""

    @abstractmethod
    def neighbour(self, feature: int, x: float, *, upper: bool) -> float:
        """Return the number of the machine next to one of its numbers."""

    @abstractmethod
    def inputs(self, batch: Doubles) -> NDArray[Any]:
        """Convert rows of doubles as the header says that observations are converted."""

    @abstractmethod
    def values(self, inputs: NDArray[Any]) -> Doubles:
        """Return the doubles that inputs stand for."""

    @abstractmethod
    def rounded(self, actions: Doubles) -> Doubles:
        """Return the numbers of the machine next to rows of actions."""

    @abstractmethod
    def first_not_below(self, feature: int, threshold: float) -> float:
        """Return the smallest double whose converted number is not below a number of the machine."""

    def actions(self, outputs: NDArray[Any]) -> Doubles:
        """Return the actions that outputs stand for."""
        return outputs.astype(np.float64)

    def on_grid(self, tree: RuleTree) -> RuleTree:
        """Return the rules with thresholds that are numbers of the machine, but for those of sums."""
        pairs = zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True)
        up = [0.0 if j < 0 else self.up(j, t) if j < tree.dims else t for j, t in pairs]
        return dataclasses.replace(tree, threshold=np.array(up))

    def seen(self, tree: RuleTree) -> RuleTree:
        """Return the rules that the machine follows when it is handed converted doubles.

        They are defined for rules that compare no sums.
        """
        grid = self.on_grid(tree)
        pairs = zip(grid.feature.tolist(), grid.threshold.tolist(), strict=True)
        moved = np.array([self.first_not_below(j, t) if j >= 0 else 0.0 for j, t in pairs])
        return dataclasses.replace(grid, threshold=moved)


class Double(Number):
    """Double precision: what the rules are learned in."""

    name = "double"
    dtype = np.dtype(np.float64)

    def up(self, feature: int, x: float) -> float:
        """Return the smallest number of the machine that is not below x."""
        return x

    def neighbour(self, feature: int, x: float, *, upper: bool) -> float:
        """Return the number of the machine next to one of its numbers."""
        return math.nextafter(x, math.inf if upper else -math.inf)

    def inputs(self, batch: Doubles) -> NDArray[Any]:
        """Return rows of doubles as they are."""
        return batch

    def values(self, inputs: NDArray[Any]) -> Doubles:
        """Return the doubles that inputs stand for."""
        return inputs.astype(np.float64)

    def rounded(self, actions: Doubles) -> Doubles:
        """Return the numbers of the machine next to rows of actions."""
        return actions

    def first_not_below(self, feature: int, threshold: float) -> float:
        """Return the smallest double whose converted number is not below a number of the machine."""
        return threshold


class Float(Number):
    """Single precision; doubles are converted to the nearest."""

    name = "float"
    dtype = np.dtype(np.float32)

    def up(self, feature: int, x: float) -> float:
        """Return the smallest number of the machine that is not below x."""
        near = _single(x)
        up = near if near >= x else self.neighbour(feature, near, upper=True)
        return up + 0.0  # no minus zero

    def neighbour(self, feature: int, x: float, *, upper: bool) -> float:
        """Return the number of the machine next to one of its numbers."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.nextafter(np.float32(x), np.float32(math.inf if upper else -math.inf)))

    def inputs(self, batch: Doubles) -> NDArray[Any]:
        """Convert rows of doubles to the nearest."""
        with np.errstate(over="ignore", under="ignore"):
            return batch.astype(np.float32)

    def values(self, inputs: NDArray[Any]) -> Doubles:
        """Return the doubles that inputs stand for."""
        return inputs.astype(np.float64)

    def rounded(self, actions: Doubles) -> Doubles:
        """Return the numbers of the machine next to rows of actions."""
        return self.inputs(actions).astype(np.float64)

    def first_not_below(self, feature: int, threshold: float) -> float:
        """Return the smallest double whose converted number is not below a number of the machine."""
        below = self.neighbour(feature, threshold, upper=False)
        # Doubles above the largest float by half its last digit become infinite.
        edge = _FLOAT_END if threshold == math.inf else -_FLOAT_END if below == -math.inf else None
        middle = (below + threshold) / 2 if edge is None else edge
        return middle if _single(middle) >= threshold else math.nextafter(middle, math.inf)


_FLOAT_END = math.ldexp(1.0, 128) - math.ldexp(1.0, 103)


def _single(x: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(x))


@dataclass(frozen=True)
class Fixed(Number):
    """Fixed-point numbers of 32 bits, in steps of 2^-bits, with bits for each observation and action.

    Doubles are rounded down to a step, and saturate.
    """

    observation_bits: tuple[int, ...]
    action_bits: tuple[int, ...]
    name = "fixed"
    dtype = np.dtype(np.int32)

    @classmethod
    def of(cls, tree: RuleTree, safe: tuple[float, ...]) -> Fixed:
        """Return the type whose bits suit the bounds of the observations, the thresholds and the actions."""
        what = "laws" if isinstance(tree.leaves, Laws | SwitchingLaws) else "sums of observations"
        if what == "laws" or len(tree.combinations):
            raise SettingError(
                f"number is 'fixed', and {what} are computed in double precision: use 'double' or 'float'."
            )
        low, high = bounds(tree.observation_space)
        endless = unbounded(tree.observation_space)
        reach = np.where(endless, 0.0, np.maximum(np.abs(low), np.abs(high))).tolist()
        for j, t in zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True):
            if j >= 0 and math.isfinite(t):
                reach[j] = max(reach[j], abs(t))
        if not isinstance(tree.action_space, Box):
            return cls(tuple(map(_bits, reach)), (0,))
        assert not isinstance(tree.leaves, SwitchingLaws)
        values = np.abs(np.vstack([constants(tree.leaves), safe]))
        return cls(tuple(map(_bits, reach)), tuple(_bits(x) for x in values.max(axis=0).tolist()))

    def up(self, feature: int, x: float) -> float:
        """Return the smallest number of the machine that is not below x."""
        return math.ldexp(float(self.steps(feature, x)), -self.observation_bits[feature])

    def steps(self, feature: int, x: float) -> int:
        """Return that number in steps."""
        return math.ceil(_scaled(x, self.observation_bits[feature]))

    def neighbour(self, feature: int, x: float, *, upper: bool) -> float:
        """Return the number of the machine next to one of its numbers."""
        n = self.steps(feature, x) + (1 if upper else -1)
        return math.ldexp(float(min(max(n, _FIRST), _LAST)), -self.observation_bits[feature])

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

    def first_not_below(self, feature: int, threshold: float) -> float:
        """Return the smallest double whose converted number is not below a number of the machine."""
        return threshold

    def on_grid(self, tree: RuleTree) -> RuleTree:
        """Return the rules with thresholds that are numbers of the machine, all finite."""
        endless = (tree.feature >= 0) & (tree.threshold == math.inf)
        return super().on_grid(skipping(tree, endless, endless) if endless.any() else tree)


_FIRST, _LAST = -(2**31), 2**31 - 1


def _scaled(x: float, bits: int) -> Fraction:
    return Fraction(x) * Fraction(2) ** bits


def _bits(reach: float) -> int:
    """Return the most bits for which all numbers up to `reach`, and the next step, are below 2^31."""
    bits = 31 - math.frexp(reach)[1]
    while math.ceil(_scaled(reach, bits)) > _LAST:
        bits -= 1
    return bits


def number_of(name: str, tree: RuleTree, safe: tuple[float, ...]) -> Number:
    """Return the number type of this name for a tree."""
    if name == "double":
        return Double()
    if name == "float":
        return Float()
    if name == "fixed":
        return Fixed.of(tree, safe)
    raise SettingError(f"number is {name!r}, and must be 'double', 'float' or 'fixed'.")


def refuse_unless_double(number: str, why: str) -> None:
    """Refuse the numbers of a machine that a target does not have."""
    if number != "double":
        raise SettingError(f"number is {number!r}, and must be 'double' for {why}")
