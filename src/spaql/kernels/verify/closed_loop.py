"""One step of the closed loop of a rule tree and a plant, on a set of states.

A set that lies in several leaves of the tree, or on several paths through the conditions of the plant, is cut
there, and each part goes its own way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit_in_place
from spaql.kernels.verify.forms import (
    HIGH,
    LOW,
    A,
    C,
    R,
    copy_row,
    is_bounded,
    put_affine,
    put_const,
    put_hull,
    put_max,
    put_min,
    put_single,
    put_sum,
    settle,
    spread,
    up,
)
from spaql.kernels.verify.points import Floats, Ints, TapeArrays, TreeArrays
from spaql.kernels.verify.sets import WORK, apply_cuts, cut, cut_to_path, find_paths, forget_cuts, run_set

PARTS = 64
"""Most parts that a set is cut into in one step."""
PERIOD_SLACK = 1e-12
"""More than the error of an angle that is brought back by whole turns, up to some hundred: that of the
product, 2 pi * 300 * EPS = 4e-13, and of the period itself, 300 * 2.4e-16."""


class LoopArrays(NamedTuple):
    """The closed loop, with its disturbances."""

    step: TapeArrays
    observe: TapeArrays
    tree: TreeArrays
    same: Ints
    """The state variable that each observation is; -1 if it is none."""
    period: Floats
    """Of each state variable; 0 if it has none."""
    noise: Floats
    """Bound of the error of each observation."""
    push: Floats
    """Bound of what is added to each state variable at every step."""
    rebox: float
    """A form is replaced by its interval where the interval is narrower by this factor."""


class LoopMemory(NamedTuple):
    """Memory of a step, and the parts that it results in."""

    m: Floats
    e: Floats
    bounds: Floats
    stack: Ints
    ends: Ints
    leaves: Ints
    sides: Floats
    parts: Floats
    """Parts × state variables × row."""
    terminated: NDArray[np.bool_]
    """Of each part."""


@njit_in_place
def put_range(m: Floats, z: int, j: int, low: float, high: float) -> None:
    """Set row z to a range, with the symbol of state variable j."""
    for k in range(m.shape[1]):
        m[z, k] = 0.0
    m[z, C] = 0.5 * (low + high)
    m[z, A + j] = up(max(up(high - m[z, C]), up(m[z, C] - low)))
    m[z, LOW] = low
    m[z, HIGH] = high


@njit_in_place
def put_box(m: Floats, first: int, low: Floats, high: Floats) -> None:
    """Set rows to a box, with a symbol for each number."""
    for j in range(low.shape[0]):
        put_range(m, first + j, j, low[j], high[j])


@njit_in_place
def look(
    tape: TapeArrays,
    sums: Floats,
    noise: Floats,
    mem: LoopMemory,
    state: int,
    observed: int,
    rows: int,
    work: int,
) -> bool:
    """Write the numbers that the tree compares, from row `observed` on; returns False if nothing is known."""
    m = mem.m
    run_set(tape, m, rows, state, work)
    count = find_paths(tape, m, rows, mem.ends, mem.stack)
    if count < 1:
        return False
    n = tape.outputs.shape[1]
    for j in range(n):
        for c in range(count):
            row = rows + tape.outputs[tape.branch[mem.ends[c], 5], j]
            if c == 0:
                copy_row(m, observed + j, row)
            else:
                put_hull(m, observed + j, row)
        put_single(m, observed + j, observed + j)
        if noise[j] > 0.0:
            m[observed + j, R] += noise[j]
            settle(m, observed + j, m[observed + j, LOW] - noise[j], m[observed + j, HIGH] + noise[j])
        if not is_bounded(m, observed + j):
            return False
    for i in range(sums.shape[0]):
        put_weighted(m, observed + n + i, 0.0, sums, i, observed, work)
        if not is_bounded(m, observed + n + i):
            return False
    return True


@njit_in_place
def put_weighted(
    m: Floats, z: int, offset: float, weights: Floats, row: int, observed: int, work: int
) -> None:
    """Set row z to an offset plus the weighted sum of the observations."""
    put_const(m, z, offset)
    for k in range(weights.shape[1]):
        if weights[row, k] != 0.0:
            put_affine(m, work, observed + k, weights[row, k], 0.0, 0.0, -math.inf, math.inf)
            put_sum(m, z, z, work, 1.0)


@njit_in_place
def find_leaves(tree: TreeArrays, mem: LoopMemory, observed: int) -> int:
    """Write the leaves that observations may come to, with the bounds on their way; -1 without room."""
    m = mem.m
    bounds = mem.bounds
    stack = mem.stack
    n = bounds.shape[1]
    count = 0
    top = 1
    stack[0] = 0
    for j in range(n):
        bounds[0, j, 0] = -math.inf
        bounds[0, j, 1] = math.inf
    while top > 0:
        top -= 1
        node = stack[top]
        j = tree.feature[node]
        if j < 0:
            if count >= mem.leaves.shape[0]:
                return -1
            mem.leaves[count] = tree.leaf[node]
            for i in range(n):
                mem.sides[count, i, 0] = bounds[top, i, 0]
                mem.sides[count, i, 1] = bounds[top, i, 1]
            count += 1
            continue
        if top + 2 > bounds.shape[0]:
            return -1
        threshold = tree.threshold[node]
        low = bounds[top, j, 0]
        high = bounds[top, j, 1]
        lower = not m[observed + j, LOW] >= threshold and low < threshold
        upper = not m[observed + j, HIGH] < threshold and high > threshold
        if upper:
            stack[top] = tree.right[node]
            if lower:
                for i in range(n):
                    bounds[top + 1, i, 0] = bounds[top, i, 0]
                    bounds[top + 1, i, 1] = bounds[top, i, 1]
            bounds[top, j, 0] = max(low, threshold)
            top += 1
        if lower:
            stack[top] = tree.left[node]
            bounds[top, j, 1] = min(high, threshold)
            top += 1
    return count


@njit_in_place
def cut_to_leaf(
    same: Ints,
    noise: Floats,
    m: Floats,
    e: Floats,
    sides: Floats,
    leaf: int,
    state: int,
    n: int,
    observed: int,
    work: int,
) -> bool:
    """Keep of the states what may lead to a leaf; returns whether anything does."""
    forget_cuts(e)
    for i in range(sides.shape[1]):
        for side in range(2):
            bound = sides[leaf, i, side]
            if not math.isfinite(bound):
                continue
            sign = -1.0 if side == 0 else 1.0  # bound <= seen, or seen <= bound
            put_affine(m, work, observed + i, sign, -sign * bound, 0.0, -math.inf, math.inf)
            if not cut(m, work, e):
                return False
            j = same[i] if i < same.shape[0] else -1
            if j >= 0:
                # Noise, and more than twice SINGLE_EPS of the observation for single precision.
                slack = noise[i] + 3e-7 * (abs(bound) + noise[i]) + 1e-40
                if side == 0:
                    m[state + j, LOW] = max(m[state + j, LOW], bound - slack)
                else:
                    m[state + j, HIGH] = min(m[state + j, HIGH], bound + slack)
                if not m[state + j, LOW] <= m[state + j, HIGH]:
                    return False
    apply_cuts(m, state, n, e)
    return True


@njit_in_place
def rebox(m: Floats, state: int, n: int, factor: float) -> None:
    """Replace forms by their box where an interval is much narrower than its form."""
    narrow = False
    for j in range(n):
        narrow = narrow or m[state + j, HIGH] - m[state + j, LOW] < factor * 2.0 * spread(m, state + j)
    if not narrow:
        return
    for j in range(n):
        put_range(m, state + j, j, m[state + j, LOW], m[state + j, HIGH])


@njit_in_place
def put_law(tree: TreeArrays, m: Floats, law: int, observed: int, action: int, work: int) -> bool:
    """Write the action of a law, from row `action` on; of discrete actions the scores.

    Returns False if they may not be numbers.
    """
    for i in range(tree.offset.shape[1]):
        if tree.offset[law, i] == -math.inf:
            continue
        put_weighted(m, action + i, tree.offset[law, i], tree.gain[law], i, observed, work)
        if not is_bounded(m, action + i):
            return False
        if not tree.discrete:
            put_const(m, work + 4, tree.low[i])
            put_max(m, action + i, action + i, work + 4, work)
            put_const(m, work + 4, tree.high[i])
            put_min(m, action + i, action + i, work + 4, work)
            put_single(m, action + i, action + i)
    return True


@njit_in_place
def cut_to_choice(
    offset: Floats, m: Floats, e: Floats, law: int, choice: int, state: int, n: int, action: int, work: int
) -> bool:
    """Keep of the states those in which a law may take a discrete action; returns whether any is."""
    if offset[law, choice] == -math.inf:
        return False
    forget_cuts(e)
    for other in range(offset.shape[1]):
        if other != choice and offset[law, other] > -math.inf:
            put_sum(m, work, action + other, action + choice, -1.0)
            if not cut(m, work, e):
                return False
    apply_cuts(m, state, n, e)
    return True


@njit_in_place
def put_next(m: Floats, z: int, n: int, period: float, wide: float) -> None:
    """Turn an output of the plant into a variable of the next state: disturbed, and with one error."""
    if period > 0.0:
        turns = np.floor(m[z, C] / period + 0.5) if math.isfinite(m[z, C]) else 0.0
        shift = turns * period
        m[z, C] -= shift
        m[z, LOW] -= shift
        m[z, HIGH] -= shift
        # The true period is no float, and a plant that counts turns rounds larger numbers.
        wide += PERIOD_SLACK
    # The symbols of this step's errors, and what disturbs the next state, become one error. The factors below
    # are more than the rounding of these sums.
    rest = m[z, R] + wide
    for k in range(A + n, A + 2 * n):
        rest += abs(m[z, k])
        m[z, k] = 0.0
    m[z, R] = rest * 1.00000000001
    wide *= 1.0000001
    settle(m, z, m[z, LOW] - wide, m[z, HIGH] + wide)


@njit_in_place
def move(
    tape: TapeArrays,
    period: Floats,
    push: Floats,
    factor: float,
    mem: LoopMemory,
    inputs: int,
    after: int,
    rows: int,
    parts: int,
) -> int:
    """Add the parts that one action leads to, for states and action from row `inputs` on.

    Returns how many there are now, or -1 if a next state may not be a number.
    """
    m = mem.m
    n = period.shape[0]
    run_set(tape, m, rows, inputs, 0)
    count = find_paths(tape, m, rows, mem.ends, mem.stack)
    if count < 0:
        return -1
    for c in range(count):
        end = mem.ends[c]
        leaf = tape.branch[end, 5]
        if parts >= mem.parts.shape[0]:
            return -1
        for j in range(n):
            copy_row(m, after + j, rows + tape.outputs[leaf, j])
        if count > 1 and not cut_to_path(tape, m, rows, end, after, mem.e, 0):
            continue
        for j in range(n):
            if not is_bounded(m, rows + tape.outputs[leaf, j]):
                return -1
        mem.terminated[parts] = tape.flags[leaf]
        for j in range(n):
            put_next(m, after + j, n, period[j], push[j])
        if count > 1:
            rebox(m, after, n, factor)
        for j in range(n):
            for k in range(A + n):
                mem.parts[parts, j, k] = m[after + j, k]
        parts += 1
    return parts


@njit_in_place
def advance(loop: LoopArrays, mem: LoopMemory, here: Floats, source: int) -> int:
    """Make a step from a set, one of those in `here`; returns the number of parts, or -1 if not known."""
    m = mem.m
    n = loop.period.shape[0]
    tree = loop.tree
    wide = 1 if tree.discrete else tree.offset.shape[1]
    kept = WORK
    leaf_state = kept + n
    inputs = leaf_state + n  # the state, and the action after it
    after = inputs + n + wide
    laws = after + n
    observed = laws + tree.offset.shape[1]
    rows = observed + mem.sides.shape[1]
    for j in range(n):
        for k in range(A + n):
            m[kept + j, k] = here[source, j, k]
        for k in range(A + n, m.shape[1]):
            m[kept + j, k] = 0.0
        m[kept + j, A + n + j] = m[kept + j, R]  # errors are symbols of their own for this step
        m[kept + j, R] = 0.0
        if not math.isfinite(m[kept + j, A + n + j]):
            return -1
        copy_row(m, inputs + j, kept + j)
    if not look(loop.observe, tree.sums, loop.noise, mem, inputs, observed, rows, 0):
        return -1
    leaves = find_leaves(tree, mem, observed)
    parts = 0
    for c in range(leaves):
        if leaves > 1:
            if c > 0:
                for j in range(n):
                    copy_row(m, inputs + j, kept + j)
                if not look(loop.observe, tree.sums, loop.noise, mem, inputs, observed, rows, 0):
                    return -1
            if not cut_to_leaf(loop.same, loop.noise, m, mem.e, mem.sides, c, inputs, n, observed, 0):
                continue
            rebox(m, inputs, n, loop.rebox)
            if not look(loop.observe, tree.sums, loop.noise, mem, inputs, observed, rows, 0):
                return -1
        law = mem.leaves[c]
        if not put_law(tree, m, law, observed, laws, 0):
            return -1
        if tree.discrete:
            for j in range(n):
                copy_row(m, leaf_state + j, inputs + j)
            for choice in range(tree.offset.shape[1]):
                for j in range(n):
                    copy_row(m, inputs + j, leaf_state + j)
                if cut_to_choice(tree.offset, m, mem.e, law, choice, inputs, n, laws, 0):
                    put_const(m, inputs + n, tree.start + choice)
                    parts = move(
                        loop.step, loop.period, loop.push, loop.rebox, mem, inputs, after, rows, parts
                    )
                    if parts < 0:
                        return -1
        else:
            for i in range(wide):
                copy_row(m, inputs + n + i, laws + i)
            parts = move(loop.step, loop.period, loop.push, loop.rebox, mem, inputs, after, rows, parts)
            if parts < 0:
                return -1
    return -1 if leaves < 0 else parts


def new_memory(loop: LoopArrays) -> LoopMemory:
    """Return memory for the steps of a closed loop."""
    n = len(loop.period)
    tree = loop.tree
    numbers = loop.observe.outputs.shape[1] + len(tree.sums)
    rows = WORK + 4 * n + 2 * tree.offset.shape[1] + 1 + numbers
    rows += max(len(loop.step.code), len(loop.observe.code))
    nodes = len(loop.step.branch) + len(loop.observe.branch) + len(tree.feature) + 2
    return LoopMemory(
        m=np.zeros((rows, A + 2 * n)),
        e=np.zeros((2, 2 * n)),
        bounds=np.zeros((len(tree.feature) + 2, numbers, 2)),
        stack=np.zeros(nodes, np.int64),
        ends=np.zeros(PARTS, np.int64),
        leaves=np.zeros(PARTS, np.int64),
        sides=np.zeros((PARTS, numbers, 2)),
        parts=np.zeros((PARTS, n, A + n)),
        terminated=np.zeros(PARTS, np.bool_),
    )
