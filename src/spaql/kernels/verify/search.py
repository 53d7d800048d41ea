"""Searches for cells from which a set is reached or never left, and for all that a box comes to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit_in_place
from spaql.kernels.verify.cells import (
    TOUCHING,
    Cells,
    cell_box,
    go_on,
    is_inside,
    part_bounds,
    set_time,
    worst_time,
)
from spaql.kernels.verify.closed_loop import LoopArrays, LoopMemory, advance, put_box
from spaql.kernels.verify.forms import A, C, R
from spaql.kernels.verify.points import Floats, Ints, PlayedState, step_point


class CellRules(NamedTuple):
    """What a cell has to fulfil."""

    goal: bool
    """Whether termination is what is wanted; otherwise it is a failure."""
    lasts: bool
    """Whether it is enough that nothing fails in as many steps as the limit."""
    keep_low: Floats
    """States that must not be left on the way."""
    keep_high: Floats
    widest: Floats
    """A part that is wider is given up."""
    steps: int
    """Longest image of a cell."""
    limit: int
    """Most steps that may be needed in all, or steps in which nothing may fail."""
    together: int
    """Parts of an image at a time."""


class Desk(NamedTuple):
    """Memory of a search."""

    waiting: Floats
    ages: Ints
    cell_low: Floats
    cell_high: Floats
    low: Floats
    high: Floats
    at: Ints
    stack: Ints


def new_desk(n: int, together: int) -> Desk:
    """Return memory for states of n numbers."""
    return Desk(
        waiting=np.zeros((together, n, A + n)),
        ages=np.zeros(together, np.int64),
        cell_low=np.zeros(n),
        cell_high=np.zeros(n),
        low=np.zeros(n),
        high=np.zeros(n),
        at=np.zeros((4, n), np.int64),
        stack=np.zeros((64 * (1 << n), 1 + n), np.int64),
    )


@njit_in_place
def add_waiting(desk: Desk, place: int, rows: Floats, age: int) -> None:
    """Add a set to those that wait, which is the first rows of a matrix, after some steps."""
    desk.ages[place] = age
    for j in range(desk.waiting.shape[1]):
        for k in range(desk.waiting.shape[2]):
            desk.waiting[place, j, k] = rows[j, k]


@njit_in_place
def follow(
    loop: LoopArrays, mem: LoopMemory, cells: Cells, rules: CellRules, desk: Desk, low: Floats, high: Floats
) -> int:
    """Follow a box until all of its parts are in cells with a time; returns the steps that suffice, or -1."""
    n = low.shape[0]
    put_box(mem.m, 0, low, high)
    add_waiting(desk, 0, mem.m, 0)
    top = 1
    worst = 0
    used = 1
    while top > 0:
        top -= 1
        age = desk.ages[top]
        count = advance(loop, mem, desk.waiting, top)
        if count < 0:
            return -1
        for c in range(count):
            if mem.terminated[c]:
                if not rules.goal:
                    return -1
                worst = max(worst, age + 1)
                continue
            part_bounds(mem.parts, c, desk.low, desk.high)
            if not is_inside(desk.low, desk.high, rules.keep_low, rules.keep_high):
                return -1
            for j in range(n):
                if not desk.high[j] - desk.low[j] <= rules.widest[j]:
                    return -1
            time = worst_time(cells, desk.low, desk.high, desk.at, desk.stack)
            if rules.lasts and (time >= 0 or age + 1 >= rules.limit):
                worst = rules.limit
                continue
            if time >= 0:
                worst = max(worst, age + 1 + time)
                if worst > rules.limit:
                    return -1
                continue
            used += 1
            if age + 1 >= rules.steps or used > 4 * rules.steps or top >= desk.waiting.shape[0]:
                return -1
            add_waiting(desk, top, mem.parts[c], age + 1)
            top += 1
    return worst if worst <= rules.limit else -1


@njit_in_place
def follow_cells(
    loop: LoopArrays,
    mem: LoopMemory,
    cells: Cells,
    rules: CellRules,
    desk: Desk,
    level: int,
    chosen: Ints,
    dropping: bool,
) -> int:
    """Follow some cells of a level: set the times of those that succeed, or take them from those that do not.

    Returns how many cells changed. In place of the index of a cell that was dropped, -1 is written.
    """
    changed = 0
    low = desk.cell_low
    high = desk.cell_high
    for i in range(chosen.shape[0]):
        index = chosen[i]
        if index < 0 or (cells.times[cells.first[level] + index] >= 0) != dropping:
            continue
        cell_box(cells, level, index, low, high)
        time = follow(loop, mem, cells, rules, desk, low, high)
        if (time < 0) == dropping:
            set_time(cells, level, index, -1 if dropping else time, not dropping)
            changed += 1
            if dropping:
                chosen[i] = -1
    return changed


@njit_in_place
def estimate(
    loop: LoopArrays,
    cells: Cells,
    rules: CellRules,
    desk: Desk,
    point: PlayedState,
    home_low: Floats,
    home_high: Floats,
    demands: int,
    after: int,
    starts: Floats,
    steps: NDArray[np.int64],
) -> None:
    """Play starts, and write the steps until a cell with a time, plus that time; -2 if the statement fails.

    It fails by a termination that is not wanted, and by leaving what must be kept. If it demands 1, it also
    fails by coming to the limit; if 2, by not being at home at the limit or in the steps `after` it. Where
    nothing is found, -1 is written.
    """
    n = starts.shape[1]
    state = point.state
    for i in range(starts.shape[0]):
        for j in range(n):
            state[j] = starts[i, j]
        steps[i] = -1
        for k in range(rules.limit + after + 1):
            time = worst_time(cells, state, state, desk.at, desk.stack)
            if rules.lasts and (time >= 0 or k >= rules.limit):
                steps[i] = k
                break
            if time >= 0:
                steps[i] = k + time if k + time <= rules.limit else -1
                break
            if k >= rules.limit and (
                demands == 1 or (demands == 2 and not _is_home(loop.period, state, home_low, home_high))
            ):
                steps[i] = -2
                break
            if not is_inside(state, state, rules.keep_low, rules.keep_high):
                steps[i] = -2
                break
            if k == rules.limit + after:
                break
            if step_point(loop.step, loop.observe, loop.tree, point):
                steps[i] = k + 1 if rules.goal and k + 1 <= rules.limit else -2
                break
            for j in range(n):
                if loop.period[j] > 0.0:
                    state[j] -= np.floor(state[j] / loop.period[j] + 0.5) * loop.period[j]


@njit_in_place
def _is_home(period: Floats, state: Floats, low: Floats, high: Floats) -> bool:
    for j in range(state.shape[0]):
        x = state[j]
        if period[j] > 0.0:
            x -= np.floor((x - 0.5 * (low[j] + high[j])) / period[j] + 0.5) * period[j]
        if not (x >= low[j] and x <= high[j]):
            return False
    return True


@njit_in_place
def middles(cells: Cells, level: int, chosen: Ints, points: Floats) -> None:
    """Write the middle of some cells."""
    bits = cells.levels - level
    for i in range(chosen.shape[0]):
        index = chosen[i]
        for j in range(cells.low.shape[0] - 1, -1, -1):
            size = (cells.high[j] - cells.low[j]) / (1 << bits)
            points[i, j] = cells.low[j] + ((index & ((1 << bits) - 1)) + 0.5) * size
            index >>= bits


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
def spread_out(
    loop: LoopArrays, mem: LoopMemory, reached: Reached, rules: CellRules, desk: Desk, budget: int
) -> int:
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
