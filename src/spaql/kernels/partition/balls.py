"""Balls of the standard cube, as parallel arrays.

Every split halves the radius, so a ball is a dyadic cell and stores neither a centre nor a radius:
both follow from its path. Coordinates are fixed-point integers, and bit k of a coordinate selects
the half of the ball of depth k.

An action dimension is a range of integers: the indices of a finite list, or the fixed-point
coordinates of an interval. A split cuts every range of two or more into floor(m / 2) and the rest,
which is the paper's rule for a finite list and a halving for an interval.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit
from spaql.kernels.numerics import Floats, Ints

BITS = 32
INTERVAL = 1 << BITS
"""The size of an action dimension that is an interval, in fixed-point coordinates."""
MAX_DEPTH = BITS - 1
_HALF = float(1 << (BITS - 1))
_LAST = INTERVAL - 1
_ROOM = 64
"""Initial capacity of a search, in balls."""


class Balls(NamedTuple):
    """A forest of balls; the children of a ball are contiguous, and balls 0, 1, ... are the roots."""

    first_child: NDArray[np.int32]
    """Index of the first child, or -1 for a ball that was never split (an arm)."""
    q: Floats
    visits: Ints
    counts: Ints
    """The number of balls in use, and how many of them are arms."""
    action_sizes: Ints
    """Size of each action dimension: its number of actions, or `INTERVAL`."""


class Found(NamedTuple):
    """Balls found by a search: index, depth, and the range of actions in each dimension."""

    ball: NDArray[np.int32]
    depth: Ints
    low: Ints
    size: Ints
    weight: Floats
    """Room for a number for each ball."""
    orthant: Ints
    """Room for the orthant of the state at each depth."""


@njit
def new_found(capacity: int, action_dims: int) -> Found:
    """Return arrays for a search."""
    return Found(
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int64),
        np.empty((capacity, action_dims), np.int64),
        np.empty((capacity, action_dims), np.int64),
        np.empty(capacity),
        np.empty(BITS, np.int64),
    )


@njit
def cut(low: int, size: int, part: int) -> tuple[int, int, int]:
    """Return the range of a part of a split action range, and the part in further dimensions."""
    if size == 1:
        return low, size, part
    half = size // 2
    if part & 1:
        return low + half, size - half, part >> 1
    return low, half, part >> 1


@njit
def coordinate(x: float) -> int:
    """Return the fixed-point coordinate of x in [-1, 1]; cells are half-open, the last one is closed."""
    return min(max(math.floor(x * _HALF) + (1 << (BITS - 1)), 0), _LAST)


@njit
def lower_bound(low: int) -> float:
    """Return the standard coordinate at which a fixed-point range begins (exact)."""
    return low / _HALF - 1.0


@njit
def width(size: int) -> float:
    """Return the length of a fixed-point range in standard coordinates (exact)."""
    return size / _HALF


@njit
def orthant(state: Ints, depth: int) -> int:
    """Return the index of the orthant, of 2^ds, in which the state lies in its ball of this depth."""
    index = 0
    for j in range(state.shape[0]):
        index = (index << 1) | ((state[j] >> (BITS - 1 - depth)) & 1)
    return index


@njit
def action_parts(sizes: Ints) -> int:
    """Return the number of parts into which a split cuts the actions of a ball."""
    parts = 1
    for j in range(sizes.shape[0]):
        if sizes[j] > 1:
            parts *= 2
    return parts


@njit
def split(balls: Balls, ball: int, sizes: Ints, state_dims: int) -> None:
    """Cover a ball with balls of half its radius, which inherit its Q and visits (SPLIT BALL).

    The arrays must have room for the children.
    """
    first = balls.counts[0]
    children = action_parts(sizes) << state_dims
    balls.first_child[ball] = first
    for child in range(first, first + children):
        balls.first_child[child] = -1
        balls.q[child] = balls.q[ball]
        balls.visits[child] = balls.visits[ball]
    balls.counts[0] += children
    balls.counts[1] += children - 1


@njit
def is_forest(balls: Balls, trees: int, state_dims: int) -> bool:
    """Return whether every ball has one parent, with a lower index, so that every search terminates.

    The arrays must have the same length, and the numbers of actions be positive.
    """
    n = balls.first_child.shape[0]
    dims = balls.action_sizes.shape[0]
    placed = np.zeros(n, np.bool_)
    depth = np.zeros(n, np.uint8)
    size = np.empty((n, dims), np.int64)
    for root in range(trees):
        placed[root] = True
        size[root] = balls.action_sizes
    for ball in range(n):
        if not placed[ball]:
            return False
        first = balls.first_child[ball]
        if first < 0:
            continue
        parts = action_parts(size[ball])
        children = parts << state_dims
        if depth[ball] >= MAX_DEPTH or first <= ball or first > n - children:
            return False
        for child in range(children):
            if placed[first + child]:
                return False
            placed[first + child] = True
            depth[first + child] = depth[ball] + 1
            part = child % parts
            for j in range(dims):
                whole = size[ball, j]
                half = whole // 2 if whole > 1 else whole
                size[first + child, j] = whole - half if whole > 1 and part & 1 else half
                part = part >> 1 if whole > 1 else part
    return True


@njit
def locate(
    balls: Balls,
    root: int,
    state: Ints,
    action: Ints,
    low: Ints,
    size: Ints,
) -> tuple[int, int]:
    """Return the ball whose domain holds a pair, and its depth; writes its action ranges to `low`, `size`."""
    for j in range(size.shape[0]):
        low[j] = 0
        size[j] = balls.action_sizes[j]
    ball = root
    depth = 0
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
        ball = child
        depth = depth + 1
    return ball, depth


@njit
def search(balls: Balls, root: int, state: Ints, found: Found) -> int:
    """Collect RELEVANT(x): the balls whose domain holds the state with some action; returns their number.

    They are in the order of their actions, lowest first; of several action dimensions the last is the most
    significant in each split. They fill `found` from the front while the stack of the depth-first search
    grows down from its end; where the two would meet, -1 is returned.
    """
    capacity = found.ball.shape[0]
    dims = found.low.shape[1]
    count = 0
    top = capacity - 1
    deepest = -1
    found.ball[top] = root
    found.depth[top] = 0
    for j in range(dims):
        found.low[top, j] = 0
        found.size[top, j] = balls.action_sizes[j]
    while top < capacity:
        first = balls.first_child[found.ball[top]]
        if first < 0:
            found.ball[count] = found.ball[top]
            found.depth[count] = found.depth[top]
            for j in range(dims):
                found.low[count, j] = found.low[top, j]
                found.size[count, j] = found.size[top, j]
            count += 1
            top += 1
            continue
        parts = 1
        for j in range(dims):
            if found.size[top, j] > 1:
                parts *= 2
        if count + parts > top + 1:
            return -1
        depth = found.depth[top]
        if depth > deepest:
            deepest = depth
            found.orthant[depth] = orthant(state, depth)
        first += found.orthant[depth] * parts
        for part in range(parts):
            entry = top + 1 - parts + part  # the last one overwrites the ball itself
            found.ball[entry] = first + part
            found.depth[entry] = depth + 1
            left = part
            for j in range(dims):
                low, size, left = cut(found.low[top, j], found.size[top, j], left)
                found.low[entry, j] = low
                found.size[entry, j] = size
        top += 1 - parts
    return count


@njit
def room_for(balls: Balls, splits: int) -> int:
    """Return the most balls that a search can find after so many more splits."""
    split_balls = balls.counts[0] - balls.counts[1] + splits
    return int(2 + split_balls * (action_parts(balls.action_sizes) - 1))


@njit
def relevant(balls: Balls, root: int, state: Ints) -> tuple[Found, int]:
    """Return RELEVANT(x) and its size, with as large arrays as needed."""
    found = new_found(_ROOM, balls.action_sizes.shape[0])
    count = search(balls, root, state, found)
    while count < 0:
        found = new_found(2 * found.ball.shape[0], found.low.shape[1])
        count = search(balls, root, state, found)
    return found, count
