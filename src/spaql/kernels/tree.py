"""Balls of the standard cube, kept as parallel arrays.

Every split halves the radius, so a ball is a dyadic cell and needs neither a centre nor a radius:
both follow from the path that leads to it. Coordinates are fixed-point integers, and bit k of a
coordinate says in which half of its ball of depth k a point lies.

An action dimension is a range of integers: the indices of a finite list, or the fixed-point
coordinates of an interval. A split cuts every range of two or more into floor(m / 2) and the rest,
which is the paper's rule for a finite list and a halving for an interval.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit

BITS = 32
INTERVAL = 1 << BITS
"""The size of an action dimension that is an interval, in fixed-point coordinates."""
MAX_DEPTH = BITS - 1
_HALF = float(1 << (BITS - 1))
_LAST = INTERVAL - 1


class Balls(NamedTuple):
    """A forest of balls; the children of a ball are contiguous, and balls 0, 1, ... are the roots."""

    first_child: NDArray[np.int32]
    """Index of the first child, or -1 for a ball that was never split (an arm)."""
    q: NDArray[np.float64]
    visits: NDArray[np.int64]
    counts: NDArray[np.int64]
    """Two numbers: how many balls are in use, and how many of them are arms."""
    action_sizes: NDArray[np.int64]
    """Size of each action dimension: its number of actions, or `INTERVAL`."""


class Found(NamedTuple):
    """Balls met by a search: index, depth, and the range of actions in each dimension."""

    ball: NDArray[np.int32]
    depth: NDArray[np.int64]
    low: NDArray[np.int64]
    size: NDArray[np.int64]


@njit
def new_found(capacity: int, action_dims: int) -> Found:
    """Make room for a search."""
    return Found(
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int64),
        np.empty((capacity, action_dims), np.int64),
        np.empty((capacity, action_dims), np.int64),
    )


@njit
def coordinate(x: float) -> int:
    """Fixed-point coordinate of x in [-1, 1]; cells are half-open, the last one is closed."""
    return min(max(math.floor(x * _HALF) + (1 << (BITS - 1)), 0), _LAST)


@njit
def lower_bound(low: int) -> float:
    """Standard coordinate at which a fixed-point range begins (exact)."""
    return low / _HALF - 1.0


@njit
def width(size: int) -> float:
    """Length of a fixed-point range in standard coordinates (exact)."""
    return size / _HALF


@njit
def orthant(state: NDArray[np.int64], depth: int) -> int:
    """Which of the 2^ds halves-in-every-dimension of its ball of this depth holds the state."""
    index = 0
    for j in range(state.shape[0]):
        index = (index << 1) | ((state[j] >> (BITS - 1 - depth)) & 1)
    return index


@njit
def action_parts(sizes: NDArray[np.int64]) -> int:
    """Into how many parts a split cuts the actions of a ball."""
    parts = 1
    for j in range(sizes.shape[0]):
        if sizes[j] > 1:
            parts *= 2
    return parts


@njit
def split(balls: Balls, ball: int, sizes: NDArray[np.int64], state_dims: int) -> None:
    """Cover a ball with balls of half its radius, which inherit its Q and visits (SPLIT BALL).

    The arrays must have room for the children.
    """
    first = balls.counts[0]
    children = action_parts(sizes) << state_dims
    balls.first_child[ball] = first
    balls.first_child[first : first + children] = -1
    balls.q[first : first + children] = balls.q[ball]
    balls.visits[first : first + children] = balls.visits[ball]
    balls.counts[0] += children
    balls.counts[1] += children - 1


@njit
def locate(
    balls: Balls,
    root: int,
    state: NDArray[np.int64],
    action: NDArray[np.int64],
    low: NDArray[np.int64],
    size: NDArray[np.int64],
) -> tuple[int, int]:
    """Find the ball whose domain holds a pair; its action ranges go to `low` and `size`."""
    low[:] = 0
    size[:] = balls.action_sizes
    ball, depth = root, 0
    while balls.first_child[ball] >= 0:
        child = balls.first_child[ball] + orthant(state, depth) * action_parts(size)
        bit = 0
        for j in range(size.shape[0]):
            if size[j] > 1:
                half = size[j] // 2
                if action[j] >= low[j] + half:
                    child += 1 << bit
                    low[j] += half
                    size[j] -= half
                else:
                    size[j] = half
                bit += 1
        ball, depth = child, depth + 1
    return ball, depth


@njit
def _move(found: Found, source: int, target: int) -> None:
    found.ball[target] = found.ball[source]
    found.depth[target] = found.depth[source]
    for j in range(found.low.shape[1]):
        found.low[target, j] = found.low[source, j]
        found.size[target, j] = found.size[source, j]


@njit
def _grow(found: Found, count: int, top: int) -> Found:
    capacity = found.ball.shape[0]
    larger = new_found(2 * capacity, found.low.shape[1])
    for source, target, length in ((0, 0, count), (top, top + capacity, capacity - top)):
        larger.ball[target : target + length] = found.ball[source : source + length]
        larger.depth[target : target + length] = found.depth[source : source + length]
        larger.low[target : target + length] = found.low[source : source + length]
        larger.size[target : target + length] = found.size[source : source + length]
    return larger


@njit
def relevant(balls: Balls, root: int, state: NDArray[np.int64], found: Found) -> tuple[Found, int]:
    """Collect RELEVANT(x): the balls whose domain holds the state with some action.

    They come in the order of their actions, lowest first; of several action dimensions the last weighs
    most in each split. They fill `found` from its front while
    the stack of the depth-first search grows down from its end; where the two would meet, the
    search continues in a larger `found`, which is the one returned.
    """
    capacity = found.ball.shape[0]
    count, top = 0, capacity - 1
    found.ball[top] = root
    found.depth[top] = 0
    found.low[top] = 0
    found.size[top] = balls.action_sizes
    while top < capacity:
        first = balls.first_child[found.ball[top]]
        if first < 0:
            _move(found, top, count)
            count += 1
            top += 1
            continue
        parts = action_parts(found.size[top])
        if count + parts > top + 1:
            found = _grow(found, count, top)
            top += found.ball.shape[0] - capacity
            capacity = found.ball.shape[0]
        depth = found.depth[top]
        first += orthant(state, depth) * parts
        for part in range(parts):
            entry = top + 1 - parts + part  # the last one takes the place of the ball itself
            found.ball[entry] = first + part
            found.depth[entry] = depth + 1
            bit = 0
            for j in range(found.low.shape[1]):
                low, size = found.low[top, j], found.size[top, j]
                if size > 1:
                    half = size // 2
                    if (part >> bit) & 1:
                        low += half
                        size -= half
                    else:
                        size = half
                    bit += 1
                found.low[entry, j] = low
                found.size[entry, j] = size
        top += 1 - parts
    return found, count
