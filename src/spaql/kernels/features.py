"""Controllers with memory, as arrays: features, the limiter of the action, and the memory between samples.

This module defines their arithmetic for training and prediction, and exported code is compared with it bit by
bit. One sample of a controller is `control`:

    compute_features -> find_leaf -> apply_laws -> update_memory

The memory of an episode is a row of float64: whether a sample has been taken (0 or 1), the leaf of the last
sample (-1 for none), the last action, its target before the dead band, and then the slots of the features.
`reset_memory` begins an episode. Trees have the arrays of `spaql.kernels.treesearch.candidates`, over the
features instead of the observation: an inner node goes to `left[node]` if its weighted sum is below the
threshold, else to `left[node] + 1`; its first row is `[threshold, weights]`, and the rows of a leaf are
`[offset, gains]`. Terms whose weight is 0 are left out of every sum.

A call costs two atomic operations for every array that is passed, even if it is inlined, and a sample little
more than that: sums are written out where they are needed, and columns share an array.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit, njit_no_inline

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

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

STARTED = 0
LEAF = 1
LAST = 2
"""Where the last action begins in a memory; its target begins after it."""


FIRST, SECOND, SAMPLES, SLOT = 0, 1, 2, 3
"""Columns of `FeatureTable.places`."""
PARAMETER, BOUND, START = 0, 1, 2
"""Columns of `FeatureTable.numbers`."""


class FeatureTable(NamedTuple):
    """Features in the order in which they are computed, one a row."""

    kind: Ints
    places: Ints
    """FIRST and SECOND: what a feature is computed from, feature j as j and number j of the observation as
    -1 - j; of the last action, the number of the action. SAMPLES: how many samples ago, of a lag and of the
    last action. SLOT: where its memory begins."""
    numbers: Floats
    """PARAMETER: of an integral and a derivative the seconds between samples, of a low-pass the share of the
    new value, of the last action its value before the first sample. BOUND: of an integral its largest
    magnitude, of a derivative the share of the new value. START: of an integral its value at a reset."""


class Limiter(NamedTuple):
    """Limits of each number of the action."""

    low: Floats
    high: Floats
    rate: Floats
    """Largest change in a sample; infinite without a limit."""
    dead_band: Floats
    """Changes smaller than this are not made."""
    start: Floats
    """What counts as the last action at a reset."""
    velocity: bool
    """Whether laws are changes of the action (velocity form), and not the action itself."""


@njit
def arc_tangent(y: float, x: float) -> float:
    """Return the angle of the point (x, y), from -pi to pi, and 0 for the origin.

    The rational approximation of the Cephes library, with a relative error below 3e-16. It needs basic
    arithmetic only, so that exported code has the same bits, whatever the library of the machine.
    """
    a = -y if y < 0.0 else y
    b = -x if x < 0.0 else x
    if a == 0.0 and b == 0.0:
        return 0.0
    steep = a > b
    t = b / a if steep else a / b
    turned = t > 0.66
    if turned:
        t = (t - 1.0) / (t + 1.0)
    z = t * t
    p = -8.750608600031904122785e-1 * z - 1.615753718733365076637e1
    p = p * z - 7.500855792314704667340e1
    p = p * z - 1.228866684490136173410e2
    p = p * z - 6.485021904942025371773e1
    q = z + 2.485846490142306297962e1
    q = q * z + 1.650270098316988542046e2
    q = q * z + 4.328810604912902668951e2
    q = q * z + 4.853903996359136964868e2
    q = q * z + 1.945506571482613964425e2
    angle = t + t * (z * p / q)
    if turned:
        angle = angle + 0.7853981633974483
    if steep:
        angle = 1.5707963267948966 - angle
    if x < 0.0:
        angle = 3.141592653589793 - angle
    if y < 0.0:
        angle = -angle
    return angle


@njit
def shorter_way(error: float) -> float:
    """Return the difference of two angles from -pi to pi, the shorter way round."""
    if error > 3.141592653589793:
        return error - 6.283185307179586
    if error < -3.141592653589793:
        return error + 6.283185307179586
    return error


@njit
def reset_memory(table: FeatureTable, limiter: Limiter, memory: Floats) -> None:
    """Write the memory before the first sample of an episode."""
    for j in range(memory.shape[0]):
        memory[j] = 0.0
    memory[LEAF] = -1.0
    actions = limiter.start.shape[0]
    for k in range(actions):
        memory[LAST + k] = limiter.start[k]
        memory[LAST + actions + k] = limiter.start[k]
    for i in range(table.kind.shape[0]):
        slot = table.places[i, SLOT]
        if table.kind[i] == INTEGRAL:
            memory[slot] = table.numbers[i, START]
        elif table.kind[i] == LAST_ACTION:
            for j in range(table.places[i, SAMPLES]):
                memory[slot + j] = table.numbers[i, PARAMETER]


@njit
def compute_features(table: FeatureTable, observation: Floats, memory: Floats, x: Floats) -> None:
    """Write the features of an observation; the memory stays as it is.

    At the first sample of an episode, lags and low-passes are the present value, differences and derivatives
    0, and an integral its start.
    """
    kinds, places, numbers = table
    started = memory[STARTED] != 0.0
    for i in range(x.shape[0]):
        kind, slot = kinds[i], places[i, SLOT]
        if kind == INTEGRAL:
            x[i] = memory[slot]
            continue
        if kind == LAST_ACTION:
            x[i] = memory[slot + places[i, SAMPLES] - 1]
            continue
        one, two = places[i, FIRST], places[i, SECOND]
        here = x[one] if one >= 0 else observation[-1 - one]
        other = x[two] if two >= 0 else observation[-1 - two]
        if kind == OBSERVED:
            x[i] = here
        elif kind == ERROR:
            x[i] = here - other
        elif kind == DIFFERENCE:
            x[i] = here - memory[slot] if started else 0.0
        elif kind == DERIVATIVE:
            before = memory[slot + 1]
            quotient = (here - memory[slot]) / numbers[i, PARAMETER]
            x[i] = before + numbers[i, BOUND] * (quotient - before) if started else 0.0
        elif kind == LAG:
            x[i] = memory[slot + places[i, SAMPLES] - 1] if started else here
        elif kind == LOW_PASS:
            before = memory[slot]
            x[i] = before + numbers[i, PARAMETER] * (here - before) if started else here
        elif kind == PRODUCT:
            x[i] = here * other
        elif kind == SQUARE:
            x[i] = here * here
        elif kind == ANGLE:
            x[i] = arc_tangent(here, other)
        else:
            x[i] = shorter_way(here - other)


@njit
def find_leaf(left: Ints, numbers: Floats, margin: Floats, x: Floats, memory: Floats) -> int:
    """Return the leaf of the features.

    With hysteresis, which is a margin for each inner node, the leaf of the last sample is kept as long as
    none of its conditions is missed by the margin or more. `margin` is empty without hysteresis.
    """
    held = int(memory[LEAF])
    if margin.shape[0] > 0 and held >= 0:
        node, kept = held, True
        for parent in range(held - 1, -1, -1):  # parents precede their children
            if left[parent] == node or left[parent] + 1 == node:
                total = 0.0
                for j in range(x.shape[0]):
                    if numbers[parent, 0, 1 + j] != 0.0:
                        total += numbers[parent, 0, 1 + j] * x[j]
                if left[parent] == node:
                    kept = kept and total < numbers[parent, 0, 0] + margin[parent]
                else:
                    kept = kept and not total < numbers[parent, 0, 0] - margin[parent]
                node = parent
        if kept:
            return held
    node = 0
    while left[node] >= 0:
        total = 0.0
        for j in range(x.shape[0]):
            if numbers[node, 0, 1 + j] != 0.0:
                total += numbers[node, 0, 1 + j] * x[j]
        node = left[node] + (0 if total < numbers[node, 0, 0] else 1)
    return node


@njit
def apply_laws(
    limiter: Limiter,
    numbers: Floats,
    leaf: int,
    x: Floats,
    memory: Floats,
    wish: Floats,
    target: Floats,
    action: Floats,
) -> None:
    """Write the wish of the laws of a leaf, the target within the limits, and the action after the dead band.

    The wish is the result of a law; in velocity form, the last target plus the law. If it is NaN the target
    is the last action. The range holds even if the last action, which may have been set by hand, is out of
    it.
    """
    low, high, rate, dead_band, _, velocity = limiter
    actions = wish.shape[0]
    for k in range(actions):
        total = numbers[leaf, k, 0]
        for j in range(x.shape[0]):
            if numbers[leaf, k, 1 + j] != 0.0:
                total += numbers[leaf, k, 1 + j] * x[j]
        if velocity:
            total = memory[LAST + actions + k] + total
        wish[k] = total
        u, last = total, memory[LAST + k]
        if u != u:
            u = last
        if u < last - rate[k]:
            u = last - rate[k]
        if u > last + rate[k]:
            u = last + rate[k]
        if u < low[k]:
            u = low[k]
        if u > high[k]:
            u = high[k]
        target[k] = u
        action[k] = last if abs(u - last) < dead_band[k] else u


@njit
def update_memory(
    table: FeatureTable,
    numbers: Floats,
    leaf: int,
    observation: Floats,
    x: Floats,
    wish: Floats,
    target: Floats,
    action: Floats,
    memory: Floats,
) -> None:
    """Update the memory after an action.

    An integral waits while it would push a limited action further: while, for a number of the action, the
    part of the wish that was cut off, the gain of the integral and what it integrates have a positive
    product.
    """
    kinds, places, constants = table
    started, actions = memory[STARTED] != 0.0, action.shape[0]
    for i in range(x.shape[0]):
        kind, slot, one = kinds[i], places[i, SLOT], places[i, FIRST]
        here = action[one] if kind == LAST_ACTION else x[one] if one >= 0 else observation[-1 - one]
        if kind == INTEGRAL:
            waits = False
            for k in range(actions):
                waits = waits or (wish[k] - target[k]) * numbers[leaf, k, 1 + i] * here > 0.0
            if not waits:
                total = memory[slot] + constants[i, PARAMETER] * here
                if total < -constants[i, BOUND]:
                    total = -constants[i, BOUND]
                if total > constants[i, BOUND]:
                    total = constants[i, BOUND]
                memory[slot] = total
        elif kind == DIFFERENCE:
            memory[slot] = here
        elif kind == DERIVATIVE:
            memory[slot] = here
            memory[slot + 1] = x[i]
        elif kind == LOW_PASS:
            memory[slot] = x[i]
        elif kind in (LAG, LAST_ACTION):
            for j in range(places[i, SAMPLES] - 1, 0, -1):
                memory[slot + j] = here if kind == LAG and not started else memory[slot + j - 1]
            memory[slot] = here
    memory[STARTED] = 1.0
    memory[LEAF] = leaf
    for k in range(actions):
        memory[LAST + k] = action[k]
        memory[LAST + actions + k] = target[k]


@njit
def control(
    table: FeatureTable,
    limiter: Limiter,
    left: Ints,
    numbers: Floats,
    margin: Floats,
    observation: Floats,
    memory: Floats,
    x: Floats,
    wish: Floats,
    target: Floats,
    action: Floats,
) -> int:
    """Take one sample: write the features, the wish, the target and the action; returns the leaf.

    The memory is updated. For a compiled closed loop, which provides the scratch arrays.
    """
    compute_features(table, observation, memory, x)
    leaf = find_leaf(left, numbers, margin, x, memory)
    apply_laws(limiter, numbers, leaf, x, memory, wish, target, action)
    update_memory(table, numbers, leaf, observation, x, wish, target, action, memory)
    return leaf


@njit_no_inline
def control_rows(
    table: FeatureTable,
    limiter: Limiter,
    left: Ints,
    numbers: Floats,
    margin: Floats,
    observations: Floats,
    memories: Floats,
    features: Floats,
    wishes: Floats,
    actions: Floats,
) -> None:
    """Take one sample in each of many episodes, one a row, and write features, wishes and actions."""
    target = np.empty(actions.shape[1])
    for i in range(observations.shape[0]):
        control(
            table,
            limiter,
            left,
            numbers,
            margin,
            observations[i],
            memories[i],
            features[i],
            wishes[i],
            target,
            actions[i],
        )
