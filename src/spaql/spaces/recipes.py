"""Wrappers for environments with unsupported spaces, as expressions that can be run."""

from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Tuple
from numpy.typing import NDArray


def numbers_recipe(space: Space[Any]) -> str:
    """Return an expression that turns the observations of an environment `env` into a vector of numbers.

    Examples
    --------
    >>> print(numbers_recipe(Discrete(16)))
    gymnasium.wrappers.TransformObservation(env, lambda x: numpy.array([x], "float32"), \
gymnasium.spaces.Box(0.0, 15.0, (1,)))
    """
    if isinstance(space, Discrete):
        box = _box(np.array([space.start]), np.array([space.start + space.n - 1]))
        return f'gymnasium.wrappers.TransformObservation(env, lambda x: numpy.array([x], "float32"), {box})'
    if isinstance(space, Tuple) and all(isinstance(part, Discrete) for part in space.spaces):
        parts: Any = space.spaces
        low, size = (np.array([getattr(part, name) for part in parts]) for name in ("start", "n"))
        box = _box(low, low + size - 1)
        return f'gymnasium.wrappers.TransformObservation(env, lambda x: numpy.array(x, "float32"), {box})'
    return "gymnasium.wrappers.FlattenObservation(env)"


def bounds_recipe(space: Box) -> str:
    """Return an expression that gives the actions of an environment `env` bounds, for the user to adapt."""
    low = np.where(np.isfinite(space.low), space.low, np.where(np.isfinite(space.high), space.high - 20, -10))
    high = np.where(np.isfinite(space.high), space.high, low + 20)
    return f"gymnasium.wrappers.TransformAction(env, lambda u: u, {_box(low, high)})"


def rounding_recipe(space: Box) -> str:
    """Return an expression that lets an environment `env` with a Box of integers take real numbers."""
    rounded = f'numpy.rint(u).astype("{space.dtype}")'
    return f"gymnasium.wrappers.TransformAction(env, lambda u: {rounded}, {_box(space.low, space.high)})"


def list_recipe(space: Space[Any]) -> str:
    """Return an expression that lets an environment `env` take the index of a combination, or nothing."""
    if not isinstance(space, MultiDiscrete | MultiBinary) or len(space.shape) != 1:
        return ""
    sizes = [2] * space.shape[0] if isinstance(space, MultiBinary) else [int(n) for n in space.nvec]
    first = f" + {space.start.tolist()}" if isinstance(space, MultiDiscrete) and space.start.any() else ""
    taken = f"numpy.array(numpy.unravel_index(i, {sizes})){first}"
    count = int(np.prod(sizes))
    return f"gymnasium.wrappers.TransformAction(env, lambda i: {taken}, gymnasium.spaces.Discrete({count}))"


def _box(low: NDArray[Any], high: NDArray[Any]) -> str:
    """Return the expression of a Box of real numbers."""
    lows, highs = ([float(x) for x in ends] for ends in (low, high))
    if len(set(lows)) == len(set(highs)) == 1:
        return f"gymnasium.spaces.Box({lows[0]}, {highs[0]}, ({len(lows)},))"
    return f'gymnasium.spaces.Box(numpy.array({lows}, "float32"), numpy.array({highs}, "float32"))'
