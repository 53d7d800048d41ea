"""Cells of a box of states, with the steps that suffice from each: a pyramid from fine to coarse."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit_in_place
from spaql.kernels.verify.forms import HIGH, LOW
from spaql.kernels.verify.points import Floats, Ints

OVERLAP = 1e-9
"""Share of a cell by which it is widened, so that rounded ends leave no gap between neighbours."""
TOUCHING = 1e-7
"""Share of a cell within which a box touches the next one: more than the overlap and all rounding."""


class Cells(NamedTuple):
    """2**levels cells along each state variable; one of level l spans 2**l of the finest."""

    low: Floats
    high: Floats
    turns: NDArray[np.bool_]
    """Whether the last cell is beside the first."""
    levels: int
    first: Ints
    """Where the cells of each level begin in `times`."""
    times: NDArray[np.int32]
    """Steps that suffice from each cell, -1 if not known; of a coarse cell the most of its finest ones."""


def new_cells(low: Floats, high: Floats, turns: NDArray[np.bool_], levels: int) -> Cells:
    """Return cells of which nothing is known."""
    n = len(low)
    sizes = [1 << ((levels - level) * n) for level in range(levels + 1)]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Cells(low, high, turns, levels, first, np.full(first[-1], -1, np.int32))


@njit_in_place
def cell_box(cells: Cells, level: int, index: int, low: Floats, high: Floats) -> None:
    """Write the box of a cell, widened by rounding but within the whole box."""
    bits = cells.levels - level
    side = 1 << bits
    for j in range(low.shape[0] - 1, -1, -1):
        i = index & (side - 1)
        index >>= bits
        size = (cells.high[j] - cells.low[j]) / side
        low[j] = cells.low[j] + i * size - OVERLAP * size
        high[j] = cells.low[j] + (i + 1) * size + OVERLAP * size
        if i == 0 and not cells.turns[j]:
            low[j] = cells.low[j]
        if i == side - 1 and not cells.turns[j]:
            high[j] = cells.high[j]


@njit_in_place
def finest_range(cells: Cells, low: Floats, high: Floats, at: Ints) -> bool:
    """Write the finest cells that a box touches; returns False if it leaves the whole box."""
    side = 1 << cells.levels
    for j in range(low.shape[0]):
        size = (cells.high[j] - cells.low[j]) / side
        a = (low[j] - cells.low[j]) / size - TOUCHING
        b = (high[j] - cells.low[j]) / size + TOUCHING
        if not (a > -1e9 and b < 1e9 and a <= b):
            return False
        at[0, j] = int(np.floor(a))
        at[1, j] = int(np.floor(b))
        if cells.turns[j]:
            if at[1, j] - at[0, j] >= side:
                at[0, j] = 0
                at[1, j] = side - 1
            continue
        if at[0, j] == -1 and low[j] >= cells.low[j]:
            at[0, j] = 0
        if at[1, j] == side and high[j] <= cells.high[j]:
            at[1, j] = side - 1
        if at[0, j] < 0 or at[1, j] >= side:
            return False
    return True


@njit_in_place
def worst_time(cells: Cells, low: Floats, high: Floats, at: Ints, stack: Ints) -> int:
    """Return the most steps from any cell that a box touches; -1 if one has none, or it leaves the whole box.

    `at` (4 rows) and `stack` are memory.
    """
    n = low.shape[0]
    if not finest_range(cells, low, high, at):
        return -1
    level = 0
    for j in range(n):
        while (at[1, j] >> level) - (at[0, j] >> level) > 1:
            level += 1
    level = min(level, cells.levels)
    for j in range(n):
        at[2, j] = at[0, j] >> level
    worst = 0
    while True:
        time = _worst_under(cells, level, at, stack)
        if time < 0:
            return -1
        worst = max(worst, time)
        if not go_on(at, level):
            return worst


@njit_in_place
def go_on(at: Ints, level: int) -> bool:
    """Go on from cell at[2] to the next in the range at[0] to at[1], of a level; False after the last one."""
    for j in range(at.shape[1] - 1, -1, -1):
        at[2, j] += 1
        if at[2, j] <= at[1, j] >> level:
            return True
        at[2, j] = at[0, j] >> level
    return False


@njit_in_place
def _worst_under(cells: Cells, level: int, at: Ints, stack: Ints) -> int:
    """Return the most steps from the cells in a range, at[0] to at[1], that are in the coarse cell at[2]."""
    n = at.shape[1]
    worst = 0
    top = 1
    stack[0, 0] = level
    for j in range(n):
        stack[0, 1 + j] = at[2, j]
    while top > 0:
        top -= 1
        here = stack[top, 0]
        mask = (1 << (cells.levels - here)) - 1
        index = 0
        inside = True
        for j in range(n):
            i = stack[top, 1 + j]
            index = (index << (cells.levels - here)) | (i & mask)
            inside = inside and (i << here) >= at[0, j] and ((i + 1) << here) - 1 <= at[1, j]
        time = cells.times[cells.first[here] + index]
        if time >= 0:
            worst = max(worst, time)
            continue
        if inside or here == 0 or top + (1 << n) > stack.shape[0]:
            return -1
        for j in range(n):
            at[3, j] = stack[top, 1 + j]
        for child in range(1 << n):
            touches = True
            for j in range(n):
                i = at[3, j] * 2 + ((child >> j) & 1)
                stack[top, 1 + j] = i
                touches = (
                    touches and (i << (here - 1)) <= at[1, j] and ((i + 1) << (here - 1)) - 1 >= at[0, j]
                )
            if touches:
                stack[top, 0] = here - 1
                top += 1
    return worst


@njit_in_place
def set_time(cells: Cells, level: int, index: int, time: int, only_unknown: bool) -> None:
    """Set the time of all finest cells in a cell, or of those without one, and of the cells above them."""
    n = cells.low.shape[0]
    bits = cells.levels - level
    mask = (1 << (cells.levels - level)) - 1
    for lower in range(level + 1):
        depth = level - lower
        count = 1 << (depth * n)
        for number in range(count):
            place = 0
            rest = number
            base = index
            shift = 0
            for _ in range(n):
                i = ((base & mask) << depth) | (rest & ((1 << depth) - 1))
                base >>= bits
                rest >>= depth
                place |= i << shift
                shift += cells.levels - lower
            spot = cells.first[lower] + place
            if lower == 0:
                if not only_unknown or cells.times[spot] < 0:
                    cells.times[spot] = time
            else:
                refresh(cells, lower, place)
    for upper in range(level + 1, cells.levels + 1):
        place = 0
        base = index
        shift = 0
        for _ in range(n):
            place |= ((base & mask) >> (upper - level)) << shift
            base >>= bits
            shift += cells.levels - upper
        refresh(cells, upper, place)


@njit_in_place
def refresh(cells: Cells, level: int, index: int) -> None:
    """Compute the time of a coarse cell from the cells of the level below."""
    n = cells.low.shape[0]
    bits = cells.levels - level
    mask = (1 << bits) - 1
    worst = 0
    for child in range(1 << n):
        place = 0
        base = index
        shift = 0
        for j in range(n):
            place |= (((base & mask) << 1) | ((child >> j) & 1)) << shift
            base >>= bits
            shift += bits + 1
        time = cells.times[cells.first[level - 1] + place]
        if time < 0:
            worst = -1
            break
        worst = max(worst, time)
    cells.times[cells.first[level] + index] = worst


@njit_in_place
def part_bounds(parts: Floats, part: int, low: Floats, high: Floats) -> None:
    """Write the box of a part."""
    for j in range(low.shape[0]):
        low[j] = parts[part, j, LOW]
        high[j] = parts[part, j, HIGH]


@njit_in_place
def is_inside(low: Floats, high: Floats, keep_low: Floats, keep_high: Floats) -> bool:
    """Return whether a box lies in another."""
    for j in range(low.shape[0]):
        if not (low[j] >= keep_low[j] and high[j] <= keep_high[j]):
            return False
        if not (low[j] > -math.inf and high[j] < math.inf):
            return False
    return True
