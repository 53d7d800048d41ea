"""Every controller as arrays, and the one kernel that reads them.

    features (some with memory) -> tree -> laws -> limits

Rules and laws read the vector `x = [observation, features]`; a controller without memory has no features.
Cuts and laws are rows of one sparse table,

    row r:  constant[r],  and the sum of weight[t] * x[term[t]] for t from span[r] to span[r + 1], in this
    order,

so that the order of every sum is data: exported code has the same bits. A cut goes left if its sum is below
its constant. A leaf has a row for each component of the action (constant + sum, then the limits), or for each
discrete action (the highest score wins; a score of -1e300 or less is never taken). `Arrays` is the structure;
`constant` and `weight` are the parameters, of which a search over n candidates passes n rows.

The memory of an episode is a row of floats: the number of samples (up to that of the roots), the last leaf
(-1 for none), the last action, its target before the dead band, and then the slots of the features.
"""

from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit_in_place, njit_inlined
from spaql.kernels.numerics import Floats, Ints, arc_tangent, shorter_way

OBSERVED = 0
ERROR = 1
INTEGRAL = 2
DIFFERENCE = 3
DERIVATIVE = 4
LAG = 5
LOW_PASS = 6
LAST_ACTION = 7
PRODUCT = 8
SQUARE = 9
ANGLE = 10
ANGLE_ERROR = 11
SINCE_CHANGE = 12
"""Kinds of features. Observed ones are declared only: terms read the observation itself."""

LARGEST = 1e30
"""What is remembered is finite: a controller with memory takes observations up to this."""

LOWEST_SCORE = -1e300
"""Scores at or below it, and NaN, never win: a language need not have infinity."""

KIND, FIRST, SECOND, SAMPLES, SLOT = range(5)
"""Columns of `Arrays.feature`."""
PARAMETER, BOUND, START = range(3)
"""Columns of `Arrays.setting`."""
ROW, LEFT, RIGHT, PARENT, COLUMN = range(5)
"""Columns of `Arrays.node`."""
LOW, HIGH, RATE, DEAD_BAND, RESET, WIDTH = range(6)
"""Rows of `Arrays.limit`."""
OBSERVATIONS, ACTIONS, OUTPUTS, DISCRETE, VELOCITY, REMEMBERS, MEMORY = range(7)
"""Entries of `Arrays.shape`."""
COUNT, LEAF, LAST = range(3)
"""Entries of a memory; the last action begins at LAST."""


class Arrays(NamedTuple):
    """The structure of a controller."""

    shape: Ints
    """OBSERVATIONS; ACTIONS, the components of an action; OUTPUTS, the rows of a leaf; whether it is
    DISCRETE, has the VELOCITY form (laws are changes of the action) and REMEMBERS anything; the length of a
    MEMORY."""
    feature: Ints
    """Features × (kind, sources in x or in the action, samples ago, slot in the memory)."""
    setting: Floats
    """Features × settings. PARAMETER: of an integral and a derivative the seconds between samples, of a
    low-pass the share of the new value, of the last action its value before the first sample, of the time
    since a change the seconds between samples. BOUND: of an integral its largest magnitude, of that time its
    most, of a derivative the share of the new value. START: of an integral its value at a reset."""
    root: Ints
    """The root of each time step, the last for all later ones."""
    node: Ints
    """Nodes × (row, left, right, parent, column). A leaf has left = -1, and its first law in row. The column
    is that of x which a cut compares, or -1 for a weighted sum: deep trees would spend most of their time in
    sums."""
    margin: Floats
    """Hysteresis of each node; empty for none. With it no node is the child of two."""
    span: Ints
    term: Ints
    limit: Floats
    """(low, high, largest change in a sample, dead band, last action at a reset, width of the range) ×
    ACTIONS."""


class Numbers(NamedTuple):
    """The parameters of a controller."""

    constant: Floats
    weight: Floats


class ControllerArrays(NamedTuple):
    """A controller as the kernel reads it."""

    arrays: Arrays
    numbers: Numbers

    def new_memories(self, n: int) -> Floats:
        """Return the memories of n episodes before their first samples, one a row."""
        memories = np.empty((n, int(self.arrays.shape[MEMORY])))
        reset_rows(self.arrays, memories)
        return memories

    def sample(self, observations: Floats, memories: Floats) -> tuple[Floats, Floats, Floats]:
        """Take one sample in each of several episodes, and update their memories.

        Returns observations with features, what the laws ask for, and actions, of which discrete ones count
        from 0.
        """
        n = len(observations)
        actions = int(self.arrays.shape[ACTIONS])
        x = np.hstack([observations, np.empty((n, len(self.arrays.feature)))])
        work = np.empty((n, 2 * actions))
        done = np.empty((n, actions))
        act_rows(self.arrays, self.numbers, memories, x, work, done)
        return x, work[:, :actions], done

    def decide(self, x: Floats, memories: Floats) -> Floats:
        """Return the actions for observations with their features, one a row, without another sample."""
        actions = int(self.arrays.shape[ACTIONS])
        done = np.empty((len(x), actions))
        work = np.empty((len(x), 2 * actions))
        decide_rows(self.arrays, self.numbers, memories, x, work, done)
        return done


@njit_inlined
def reset_memory(arrays: Arrays, memory: Floats) -> None:
    """Write the memory before the first sample of an episode."""
    for j in range(memory.shape[0]):
        memory[j] = 0.0
    memory[LEAF] = -1.0
    actions = arrays.shape[ACTIONS]
    for k in range(actions):
        memory[LAST + k] = arrays.limit[RESET, k]
        memory[LAST + actions + k] = arrays.limit[RESET, k]
    for i in range(arrays.feature.shape[0]):
        slot = arrays.feature[i, SLOT]
        if arrays.feature[i, KIND] == INTEGRAL:
            memory[slot] = arrays.setting[i, START]
        elif arrays.feature[i, KIND] == SINCE_CHANGE:
            memory[slot] = arrays.setting[i, BOUND]
        elif arrays.feature[i, KIND] == LAST_ACTION:
            for j in range(arrays.feature[i, SAMPLES]):
                memory[slot + j] = arrays.setting[i, PARAMETER]


@njit_inlined
def compute_features(arrays: Arrays, memory: Floats, x: Floats) -> None:
    """Write the features after the observation in x; the memory stays as it is.

    At the first sample of an episode, lags and low-passes are the present value, differences and derivatives
    0, and an integral its start.
    """
    first = arrays.shape[OBSERVATIONS]
    started = memory[COUNT] != 0.0
    for i in range(arrays.feature.shape[0]):
        kind = arrays.feature[i, KIND]
        slot = arrays.feature[i, SLOT]
        value = 0.0
        if kind in (INTEGRAL, SINCE_CHANGE):
            value = memory[slot]
        elif kind == LAST_ACTION:
            value = memory[slot + arrays.feature[i, SAMPLES] - 1]
        else:
            here = x[arrays.feature[i, FIRST]]
            other = x[arrays.feature[i, SECOND]]
            if kind == ERROR:
                value = here - other
            elif kind == ANGLE_ERROR:
                value = shorter_way(here - other)
            elif kind == PRODUCT:
                value = here * other
            elif kind == SQUARE:
                value = here * here
            elif kind == ANGLE:
                value = arc_tangent(here, other)
            elif not started:
                value = here if kind in (LAG, LOW_PASS) else 0.0
            elif kind == DIFFERENCE:
                value = here - memory[slot]
            elif kind == DERIVATIVE:
                quotient = (here - memory[slot]) / arrays.setting[i, PARAMETER]
                value = memory[slot + 1] + arrays.setting[i, BOUND] * (quotient - memory[slot + 1])
            elif kind == LAG:
                value = memory[slot + arrays.feature[i, SAMPLES] - 1]
            elif kind == LOW_PASS:
                value = memory[slot] + arrays.setting[i, PARAMETER] * (here - memory[slot])
        x[first + i] = value


@njit_inlined
def weighted_sum(arrays: Arrays, weight: Floats, row: int, total: float, x: Floats) -> float:
    """Return a number plus the terms of a row."""
    for t in range(arrays.span[row], arrays.span[row + 1]):
        total += weight[t] * x[arrays.term[t]]
    return total


@njit_inlined
def is_kept(arrays: Arrays, numbers: Numbers, leaf: int, x: Floats) -> bool:
    """Return whether none of the conditions of a leaf is missed by the margin of its node or more."""
    kept = True
    child = leaf
    while child > 0 and kept:
        parent = arrays.node[child, PARENT]
        row = arrays.node[parent, ROW]
        total = weighted_sum(arrays, numbers.weight, row, 0.0, x)
        if arrays.node[parent, LEFT] == child:
            kept = total < numbers.constant[row] + arrays.margin[parent]
        else:
            kept = not total < numbers.constant[row] - arrays.margin[parent]
        child = parent
    return kept


@njit_inlined
def find_leaf(arrays: Arrays, numbers: Numbers, x: Floats, memory: Floats) -> int:
    """Return the leaf of x; with hysteresis, the last one as long as it is kept."""
    if arrays.margin.shape[0] > 0:
        held = int(memory[LEAF])
        if held >= 0 and is_kept(arrays, numbers, held, x):
            return held
    node = arrays.root[0]
    if arrays.root.shape[0] > 1:
        node = arrays.root[min(int(memory[COUNT]), arrays.root.shape[0] - 1)]
    while arrays.node[node, LEFT] >= 0:
        row = arrays.node[node, ROW]
        column = arrays.node[node, COLUMN]
        total = x[column] if column >= 0 else weighted_sum(arrays, numbers.weight, row, 0.0, x)
        # An index, and no branch that could be mispredicted.
        node = arrays.node[node, LEFT + (0 if total < numbers.constant[row] else 1)]
    return int(node)


@njit_inlined
def highest_score(arrays: Arrays, numbers: Numbers, first: int, x: Floats) -> int:
    """Return the discrete action with the highest score, the first of equal ones, or the first of all."""
    best = 0
    top = LOWEST_SCORE
    for k in range(arrays.shape[OUTPUTS]):
        if numbers.constant[first + k] > -np.inf:
            total = weighted_sum(arrays, numbers.weight, first + k, numbers.constant[first + k], x)
            if total > top:
                top = total
                best = k
    return best


@njit_inlined
def apply_laws(
    arrays: Arrays, numbers: Numbers, first: int, x: Floats, memory: Floats, work: Floats, action: Floats
) -> None:
    """Write the wish of the laws, its target within the limits, and the action after the dead band.

    Wishes and targets go to `work`. In velocity form a law asks for the last target plus its result. If that
    is NaN the target is the last action. The range holds even if the last action, which may have been set by
    hand, is out of it.
    """
    actions = arrays.shape[ACTIONS]
    for k in range(actions):
        total = weighted_sum(arrays, numbers.weight, first + k, numbers.constant[first + k], x)
        if arrays.shape[VELOCITY] > 0:
            total = memory[LAST + actions + k] + total
        work[k] = total
        last = memory[LAST + k]
        if total != total:
            total = last
        if total < last - arrays.limit[RATE, k]:
            total = last - arrays.limit[RATE, k]
        if total > last + arrays.limit[RATE, k]:
            total = last + arrays.limit[RATE, k]
        if total < arrays.limit[LOW, k]:
            total = arrays.limit[LOW, k]
        if total > arrays.limit[HIGH, k]:
            total = arrays.limit[HIGH, k]
        work[actions + k] = total
        action[k] = last if abs(total - last) < arrays.limit[DEAD_BAND, k] else total


@njit_inlined
def waits(arrays: Arrays, weight: Floats, first: int, work: Floats, column: int, here: float) -> bool:
    """Return whether an integral would push a limited action further (anti-windup)."""
    actions = arrays.shape[ACTIONS]
    pushes = False
    for k in range(actions):
        cut_off = work[k] - work[actions + k]
        if cut_off != 0.0:
            for t in range(arrays.span[first + k], arrays.span[first + k + 1]):
                if arrays.term[t] == column and cut_off * weight[t] * here > 0.0:
                    pushes = True
    return pushes


@njit_inlined
def update_memory(
    arrays: Arrays,
    weight: Floats,
    leaf: int,
    row: int,
    x: Floats,
    work: Floats,
    action: Floats,
    memory: Floats,
) -> None:
    """Update the memory after an action."""
    actions = arrays.shape[ACTIONS]
    first = arrays.shape[OBSERVATIONS]
    discrete = arrays.shape[DISCRETE] > 0
    started = memory[COUNT] != 0.0
    for i in range(arrays.feature.shape[0]):
        kind = arrays.feature[i, KIND]
        slot = arrays.feature[i, SLOT]
        source = arrays.feature[i, FIRST]
        here = action[source] if kind in (LAST_ACTION, SINCE_CHANGE) else x[source]
        if kind == INTEGRAL:
            if discrete or not waits(arrays, weight, row, work, first + i, here):
                total = memory[slot] + arrays.setting[i, PARAMETER] * here
                if total < -arrays.setting[i, BOUND]:
                    total = -arrays.setting[i, BOUND]
                if total > arrays.setting[i, BOUND]:
                    total = arrays.setting[i, BOUND]
                memory[slot] = total
        elif kind == SINCE_CHANGE:
            total = arrays.setting[i, PARAMETER]
            if action[source] == memory[LAST + source]:
                total += memory[slot]
            memory[slot] = min(total, arrays.setting[i, BOUND])
        elif kind == DIFFERENCE:
            memory[slot] = here
        elif kind == DERIVATIVE:
            memory[slot] = here
            memory[slot + 1] = x[first + i]
        elif kind == LOW_PASS:
            memory[slot] = x[first + i]
        elif kind in (LAG, LAST_ACTION):
            for j in range(arrays.feature[i, SAMPLES] - 1, 0, -1):
                memory[slot + j] = here if kind == LAG and not started else memory[slot + j - 1]
            memory[slot] = here
    memory[COUNT] = min(memory[COUNT] + 1.0, float(arrays.root.shape[0]))
    memory[LEAF] = leaf
    for k in range(actions):
        memory[LAST + k] = action[k]
        memory[LAST + actions + k] = action[k] if discrete else work[actions + k]


@njit_inlined
def decide(
    arrays: Arrays, numbers: Numbers, memory: Floats, x: Floats, work: Floats, action: Floats
) -> tuple[int, int]:
    """Write the action for an observation with its features, and return the leaf and its first law."""
    leaf = find_leaf(arrays, numbers, x, memory)
    row = arrays.node[leaf, ROW]
    if arrays.shape[DISCRETE] > 0:
        action[0] = highest_score(arrays, numbers, row, x)
    else:
        apply_laws(arrays, numbers, row, x, memory, work, action)
    return leaf, row


@njit_inlined
def act(arrays: Arrays, numbers: Numbers, memory: Floats, x: Floats, work: Floats, action: Floats) -> int:
    """Take one sample: write features, action and memory, and return the leaf.

    x begins with the observation; `work` has room for two actions.
    """
    if arrays.feature.shape[0] > 0:
        compute_features(arrays, memory, x)
    leaf, row = decide(arrays, numbers, memory, x, work, action)
    if arrays.shape[REMEMBERS] > 0:
        update_memory(arrays, numbers.weight, leaf, row, x, work, action, memory)
    return leaf


@njit_in_place
def act_rows(
    arrays: Arrays, numbers: Numbers, memories: Floats, x: Floats, work: Floats, actions: Floats
) -> None:
    """Take one sample in each of several episodes, one a row, and write features, wishes and actions."""
    for i in range(x.shape[0]):
        act(arrays, numbers, memories[i], x[i], work[i], actions[i])


@njit_in_place
def decide_rows(
    arrays: Arrays, numbers: Numbers, memories: Floats, x: Floats, work: Floats, actions: Floats
) -> None:
    """Write the actions for observations with their features, one a row; memories stay as they are."""
    for i in range(x.shape[0]):
        decide(arrays, numbers, memories[i], x[i], work[i], actions[i])


@njit_in_place
def reset_rows(arrays: Arrays, memories: Floats) -> None:
    """Write the memories before the first samples of episodes, one a row."""
    for i in range(memories.shape[0]):
        reset_memory(arrays, memories[i])
