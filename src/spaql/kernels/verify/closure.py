"""All cells that a box of starts can come to: if none of them leaves what is allowed, none ever does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit_in_place
from spaql.kernels.verify.cells import TOUCHING, go_on, is_inside, part_bounds
from spaql.kernels.verify.closed_loop import LoopArrays, Memory, advance, put_box
from spaql.kernels.verify.codes import Floats, Ints
from spaql.kernels.verify.forms import A, C, R
from spaql.kernels.verify.search import Desk, Rules, add_waiting

OPEN = 0
CLOSED = 1
LEFT = 2
FULL = 3
"""Whether cells are left to follow, none are, a set leaves what is allowed, or there is no more room."""
OVERLAP = 1e-6
"""Share of a cell by which it is widened where it is followed or touched: more than rounding."""
MOST_MARKED = 100_000
"""Cells that a set may touch."""


class Reached(NamedTuple):
    """The cells that were reached: a hash table of their numbers, and a queue in the order of discovery."""

    low: Floats
    size: Floats
    sides: Ints
    """Cells along each state variable."""
    table: Ints
    """Numbers of cells, -1 where free; its length is a power of 2."""
    queue: Ints
    state: Ints
    """How many cells are in the queue, followed, and were in it when the round began; and rounds done."""


def new_reached(low: Floats, high: Floats, count: Ints, room: int) -> Reached:
    """Return an empty set of cells of a box, with room for 2**room of them."""
    size = (high - low) / count
    return Reached(
        low, size, count, np.full(2 << room, -1), np.zeros(1 << room, np.int64), np.zeros(4, np.int64)
    )


@njit_in_place
def touches(reached: Reached, parts: Floats, part: int, at: Ints, e: Floats) -> bool:
    """Return whether a part may have points in the cell at[2]: some values of its symbols lead there."""
    n = at.shape[1]
    for k in range(n):
        e[0, k] = -1.0
        e[1, k] = 1.0
    for j in range(n):
        size = reached.size[j]
        low = reached.low[j] + (at[2, j] - OVERLAP) * size - parts[part, j, C] - parts[part, j, R]
        high = reached.low[j] + (at[2, j] + 1 + OVERLAP) * size - parts[part, j, C] + parts[part, j, R]
        least = 0.0
        most = 0.0
        for k in range(n):
            slope = parts[part, j, A + k]
            least += min(slope * e[0, k], slope * e[1, k])
            most += max(slope * e[0, k], slope * e[1, k])
        if least > high or most < low:
            return False
        for k in range(n):
            slope = parts[part, j, A + k]
            if abs(slope) < 1e-9 * size:
                continue
            own_least = min(slope * e[0, k], slope * e[1, k])
            own_most = max(slope * e[0, k], slope * e[1, k])
            a = (low - (most - own_most)) / slope
            b = (high - (least - own_least)) / slope
            e[0, k] = max(e[0, k], min(a, b))
            e[1, k] = min(e[1, k], max(a, b))
            if e[0, k] > e[1, k]:
                return False
            least += min(slope * e[0, k], slope * e[1, k]) - own_least
            most += max(slope * e[0, k], slope * e[1, k]) - own_most
    return True


@njit_in_place
def mark(reached: Reached, parts: Floats, part: int, low: Floats, high: Floats, at: Ints, e: Floats) -> int:
    """Add the cells that a part touches, which lies in a box; returns OPEN, LEFT if it leaves, or FULL."""
    n = low.shape[0]
    total = 1
    for j in range(n):
        a = (low[j] - reached.low[j]) / reached.size[j] - TOUCHING
        b = (high[j] - reached.low[j]) / reached.size[j] + TOUCHING
        if not (a >= 0.0 and b < reached.sides[j] and a <= b):
            return LEFT
        at[0, j] = int(np.floor(a))
        at[1, j] = int(np.floor(b))
        at[2, j] = at[0, j]
        total *= at[1, j] - at[0, j] + 1
        if total > MOST_MARKED:
            return LEFT
    mask = reached.table.shape[0] - 1
    while True:
        flat = 0
        for j in range(n):
            flat = flat * reached.sides[j] + at[2, j]
        spot = (flat * 0x9E3779B97F4A7C1 >> 20) & mask  # Fibonacci hashing
        while reached.table[spot] >= 0 and reached.table[spot] != flat:
            spot = (spot + 1) & mask
        if reached.table[spot] < 0 and touches(reached, parts, part, at, e):
            if reached.state[0] >= reached.queue.shape[0]:
                return FULL
            reached.table[spot] = flat
            reached.queue[reached.state[0]] = flat
            reached.state[0] += 1
        if not go_on(at, 0):
            return OPEN


@njit_in_place
def spread_out(loop: LoopArrays, mem: Memory, reached: Reached, rules: Rules, desk: Desk, budget: int) -> int:
    """Follow so many cells of the queue for some steps each, and add the cells that they come to."""
    n = reached.low.shape[0]
    low = desk.cell_low
    high = desk.cell_high
    for _ in range(budget):
        if reached.state[1] >= reached.state[2]:  # a round is done
            if reached.state[1] >= reached.state[0]:
                return CLOSED
            reached.state[2] = reached.state[0]
            reached.state[3] += 1
        flat = reached.queue[reached.state[1]]
        for j in range(n - 1, -1, -1):
            i = flat % reached.sides[j]
            flat //= reached.sides[j]
            low[j] = reached.low[j] + (i - OVERLAP) * reached.size[j]
            high[j] = reached.low[j] + (i + 1 + OVERLAP) * reached.size[j]
        put_box(mem.m, 0, low, high)
        add_waiting(desk, 0, mem.m, 0)
        top = 1
        while top > 0:
            top -= 1
            age = desk.ages[top]
            count = advance(loop, mem, desk.waiting, top)
            if count < 0:
                return LEFT
            for c in range(count):
                if mem.terminated[c]:
                    return LEFT
                part_bounds(mem.parts, c, desk.low, desk.high)
                if not is_inside(desk.low, desk.high, rules.keep_low, rules.keep_high):
                    return LEFT
                if age + 1 < rules.steps:
                    if top >= desk.waiting.shape[0]:
                        return LEFT
                    add_waiting(desk, top, mem.parts[c], age + 1)
                    top += 1
                    continue
                answer = mark(reached, mem.parts, c, desk.low, desk.high, desk.at, mem.e)
                if answer != OPEN:
                    return answer
        reached.state[1] += 1
    return OPEN
