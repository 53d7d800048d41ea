"""Random numbers of a simulated plant as a function of numbers in its state.

An episode has a key, drawn at its start, and counts its steps. What is drawn at a step depends on these two
alone, so that a state holds all that a step needs: candidates of a search meet the same noise from the same
start, and compiled loops and environments agree to the last bit. The hash is Wellons' `lowbias32`, in
integers that are the same in Python and compiled.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import overload, overload_method

from spaql.kernels.jit import callable_by_kernels
from spaql.kernels.numerics import Ints

_WORD = 0xFFFFFFFF


@callable_by_kernels
def scrambled(word: int) -> int:
    """Return a hash of 32 bits."""
    word = int(word) & _WORD  # Python's int, which does not overflow
    word ^= word >> 16
    word = (word * 0x7FEB352D) & _WORD
    word ^= word >> 15
    word = (word * 0x846CA68B) & _WORD
    return word ^ (word >> 16)


@callable_by_kernels
def step_key(key: float, count: float) -> int:
    """Return the key of a step of the episode with a key in [0, 1)."""
    return scrambled(scrambled(int(key * 4294967296.0)) + 0x9E3779B9 * (int(count) + 1))


@callable_by_kernels
def uniform_at(key: int, place: int) -> float:
    """Return number `place` of a step, uniform in (0, 1)."""
    return (scrambled(scrambled(key ^ 0x5BD1E995) + 0x85EBCA6B * (place + 1)) + 0.5) / 4294967296.0


@callable_by_kernels
def normal_at(key: int, place: int) -> float:
    """Return a number of the standard normal distribution (Box and Muller), of two places."""
    radius = math.sqrt(-2.0 * math.log(uniform_at(key, 2 * place)))
    return radius * math.cos(2.0 * math.pi * uniform_at(key, 2 * place + 1))


class Draws(NamedTuple):
    """The generator that `step` may take; each call draws one number.

    Examples
    --------
    >>> a, b = (Draws(np.array([step_key(0.3, 7.0), 0])).normal(5.0, 0.1) for _ in range(2))
    >>> a == b
    True
    """

    memory: Ints
    """The key of the step, and how many numbers were drawn."""

    def random(self) -> float:
        """Return a number in (0, 1)."""
        return random_of(self.memory)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return a number between two others."""
        return low + (high - low) * random_of(self.memory)

    def normal(self, loc: float = 0.0, scale: float = 1.0) -> float:
        """Return a number of a normal distribution with this mean and standard deviation."""
        return loc + scale * normal_of(self.memory)

    def integers(self, low: int, high: int) -> int:
        """Return a whole number, at least `low` and below `high`."""
        return low + int((high - low) * random_of(self.memory))


@callable_by_kernels
def draws_of(key: float, count: float) -> Draws:
    """Return the generator of a step, which has other numbers than the noise of its observation."""
    return Draws(np.array([scrambled(step_key(key, count) + 1), 0]))


@callable_by_kernels
def random_of(memory: Ints) -> float:
    """Draw a number in (0, 1)."""
    place = memory[1]
    memory[1] += 2
    return uniform_at(memory[0], place)


@callable_by_kernels
def normal_of(memory: Ints) -> float:
    """Draw a number of the standard normal distribution."""
    place = memory[1] // 2
    memory[1] += 2
    return normal_at(memory[0], place)


def with_number(numbers: tuple[float, ...], j: int, x: float) -> tuple[float, ...]:
    """Return a tuple of floats with another number in a place."""
    return (*numbers[:j], x, *numbers[j + 1 :])


@overload(with_number)
def _with_number(numbers: Any, j: Any, x: Any) -> Any:
    def replaced(numbers: Any, j: Any, x: Any) -> Any:
        return tuple_setitem(numbers, j, x)  # type: ignore[call-arg]

    return replaced


def _method(name: str) -> Any:
    """Let kernels call a method of `Draws`; other named tuples are left alone, and annotations may differ."""
    return overload_method(types.NamedUniTuple, name, strict=False)  # type: ignore[call-arg]


@_method("random")  # type: ignore[untyped-decorator]
def _random(draws: Any) -> Any:
    if draws.instance_class is Draws:
        return lambda draws: random_of(draws.memory)
    return None


@_method("uniform")  # type: ignore[untyped-decorator]
def _uniform(draws: Any, low: Any = 0.0, high: Any = 1.0) -> Any:
    if draws.instance_class is Draws:
        return lambda draws, low=0.0, high=1.0: low + (high - low) * random_of(draws.memory)
    return None


@_method("normal")  # type: ignore[untyped-decorator]
def _normal(draws: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    if draws.instance_class is Draws:
        return lambda draws, loc=0.0, scale=1.0: loc + scale * normal_of(draws.memory)
    return None


@_method("integers")  # type: ignore[untyped-decorator]
def _integers(draws: Any, low: Any, high: Any) -> Any:
    if draws.instance_class is Draws:
        return lambda draws, low, high: low + int((high - low) * random_of(draws.memory))
    return None
