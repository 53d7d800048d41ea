"""Tapes, their operations, and closed loops of them, evaluated on points in double precision."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit_in_place

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

OPERATIONS = (
    *("const", "input", "unknown", "add", "sub", "mul", "div", "neg", "min", "max", "abs", "square", "sqrt"),
    *("sin", "cos", "tan", "exp", "log", "atan", "tanh", "atan2", "floor", "mod", "fmod", "interp", "single"),
)
"""`unknown` may be any number, and none; `square` is x * x; `single` rounds to single precision; `interp` is
linear between the points of a table, and constant beyond them."""
CODE = {name: number for number, name in enumerate(OPERATIONS)}

CONST, INPUT, UNKNOWN, ADD, SUB, MUL, DIV, NEG, MIN, MAX, ABS, SQUARE, SQRT = range(13)
SIN, COS, TAN, EXP, LOG, ATAN, TANH, ATAN2, FLOOR, MOD, FMOD, INTERP, SINGLE = range(13, 26)

LESS, LESS_EQUAL, EQUAL = range(3)
CONDITIONS = ("<", "<=", "==")


class TapeArrays(NamedTuple):
    """Operations in order, and a decision tree over comparisons whose leaves name the rows of the outputs."""

    code: Ints
    first: Ints
    """Row of the first operand; for an input its number."""
    second: Ints
    """Row of the second operand; for `interp` the number of the table."""
    value: Floats
    """Of constants."""
    branch: Ints
    """Decision nodes: condition (-1 for a leaf), two rows, nodes if it holds and if not, leaf, parent."""
    outputs: Ints
    """Leaves × outputs: rows."""
    flags: NDArray[np.bool_]
    """Of each leaf: whether the episode has terminated."""
    tables: Floats
    """Tables of `interp`: tables × 2 × points, padded with NaN."""


class TreeArrays(NamedTuple):
    """A controller without features and memory as arrays."""

    feature: Ints
    """What a node compares: an observation, or after these a weighted sum of them; -1 for a leaf."""
    threshold: Floats
    left: Ints
    right: Ints
    leaf: Ints
    sums: Floats
    """Weights of the sums: sums × observations."""
    gain: Floats
    """Laws × scores or numbers of an action × observations."""
    offset: Floats
    """Laws × scores or numbers of an action; -inf for an action that is never taken."""
    low: Floats
    """Of each number of an action; infinite for scores."""
    high: Floats
    discrete: bool
    """Whether laws have a score for each action of a list, of which the highest wins."""
    start: int
    """Number of the first action of a list."""


@njit_in_place
def interpolate(tables: Floats, table: int, x: float) -> float:
    """Return np.interp of a table, which is padded with NaN."""
    n = tables.shape[2]
    while n > 1 and math.isnan(tables[table, 0, n - 1]):
        n -= 1
    if x <= tables[table, 0, 0]:
        return float(tables[table, 1, 0])
    for i in range(1, n):
        if x < tables[table, 0, i]:
            rise = (tables[table, 1, i] - tables[table, 1, i - 1]) / (
                tables[table, 0, i] - tables[table, 0, i - 1]
            )
            return float(rise * (x - tables[table, 0, i - 1]) + tables[table, 1, i - 1])
    return x if math.isnan(x) else float(tables[table, 1, n - 1])


@njit_in_place
def function(op: int, x: float) -> float:
    """Return a function of one number."""
    if op == SIN:
        return math.sin(x)
    if op == COS:
        return math.cos(x)
    if op == TAN:
        return math.tan(x)
    if op == SQRT:
        return math.sqrt(x)
    if op == EXP:
        return math.exp(x)
    if op == LOG:
        return math.log(x)
    if op == ATAN:
        return math.atan(x)
    if op == TANH:
        return math.tanh(x)
    return math.nan


@njit_in_place
def run_point(tape: TapeArrays, inputs: Floats, rows: Floats) -> int:
    """Write the rows of a tape for a point; returns the leaf of its decision tree."""
    for i in range(tape.code.shape[0]):
        op = tape.code[i]
        if op == CONST:
            rows[i] = tape.value[i]
            continue
        if op == INPUT:
            rows[i] = inputs[tape.first[i]]
            continue
        if op == UNKNOWN:
            rows[i] = math.nan
            continue
        x = rows[tape.first[i]]
        if op == INTERP:
            rows[i] = interpolate(tape.tables, tape.second[i], x)
            continue
        y = rows[tape.second[i]] if tape.second[i] >= 0 else 0.0
        if op == ADD:
            rows[i] = x + y
        elif op == SUB:
            rows[i] = x - y
        elif op == MUL:
            rows[i] = x * y
        elif op == DIV:
            rows[i] = x / y
        elif op == NEG:
            rows[i] = -x
        elif op == MIN:
            rows[i] = y if y < x else x
        elif op == MAX:
            rows[i] = y if y > x else x
        elif op == ABS:
            rows[i] = abs(x)
        elif op == SQUARE:
            rows[i] = x * x
        elif op == ATAN2:
            rows[i] = math.atan2(x, y)
        elif op == FLOOR:
            rows[i] = np.floor(x)
        elif op == MOD:
            rows[i] = x % y
        elif op == FMOD:
            rows[i] = np.fmod(x, y)
        elif op == SINGLE:
            rows[i] = np.float64(np.float32(x))
        else:
            rows[i] = function(op, x)
    node = 0
    while tape.branch[node, 0] >= 0:
        kind = tape.branch[node, 0]
        x = rows[tape.branch[node, 1]]
        y = rows[tape.branch[node, 2]]
        if kind == LESS:
            holds = x < y
        elif kind == LESS_EQUAL:
            holds = x <= y
        else:
            holds = x == y
        node = tape.branch[node, 3] if holds else tape.branch[node, 4]
    return int(tape.branch[node, 5])


@njit_in_place
def act_point(tree: TreeArrays, observed: Floats, action: Floats) -> None:
    """Write the action of a rule tree for an observation."""
    node = 0
    while tree.feature[node] >= 0:
        j = tree.feature[node]
        if j < observed.shape[0]:
            x = observed[j]
        else:
            x = 0.0
            for k in range(observed.shape[0]):
                if tree.sums[j - observed.shape[0], k] != 0.0:
                    x += tree.sums[j - observed.shape[0], k] * observed[k]
        node = tree.left[node] if x < tree.threshold[node] else tree.right[node]
    law = tree.leaf[node]
    best = 0
    score = -math.inf
    for i in range(tree.offset.shape[1]):
        u = tree.offset[law, i]
        for k in range(observed.shape[0]):
            if tree.gain[law, i, k] != 0.0:
                u += tree.gain[law, i, k] * observed[k]
        if tree.discrete:
            if u > score:
                best = i
                score = u
        else:
            action[i] = np.float64(np.float32(min(max(u, tree.low[i]), tree.high[i])))
    if tree.discrete:
        action[0] = tree.start + best


class PlayedState(NamedTuple):
    """A state, and memory for steps from it."""

    state: Floats
    observed: Floats
    inputs: Floats
    action: Floats
    """The end of the inputs."""
    rows: Floats


def new_point(step: TapeArrays, observe: TapeArrays) -> PlayedState:
    """Return memory for a state of a plant."""
    n = step.outputs.shape[1]
    inputs = np.empty(n + 16)
    rows = np.empty(max(len(step.code), len(observe.code)))
    return PlayedState(np.empty(n), np.empty(observe.outputs.shape[1]), inputs, inputs[n:], rows)


@njit_in_place
def step_point(step: TapeArrays, observe: TapeArrays, tree: TreeArrays, point: PlayedState) -> bool:
    """Make one step of the closed loop, observed in single precision; returns whether it terminated."""
    state = point.state
    observed = point.observed
    inputs = point.inputs
    rows = point.rows
    n = state.shape[0]
    leaf = run_point(observe, state, rows)
    for j in range(observed.shape[0]):
        observed[j] = np.float64(np.float32(rows[observe.outputs[leaf, j]]))
    act_point(tree, observed, point.action)
    for j in range(n):
        inputs[j] = state[j]
    leaf = run_point(step, inputs, rows)
    for j in range(n):
        state[j] = rows[step.outputs[leaf, j]]
    return bool(step.flags[leaf])


@njit_in_place
def _play(
    step: TapeArrays,
    observe: TapeArrays,
    tree: TreeArrays,
    point: PlayedState,
    starts: Floats,
    steps: int,
    path: Floats,
    ended: Ints,
) -> None:
    """Write the states of episodes and when they ended, as `play` returns them."""
    n = starts.shape[1]
    state = point.state
    for i in range(starts.shape[0]):
        ended[i] = -1
        for j in range(n):
            state[j] = starts[i, j]
        for k in range(steps + 1):
            for j in range(n):
                path[i, k, j] = state[j] if ended[i] < 0 else math.nan
            if k < steps and ended[i] < 0 and step_point(step, observe, tree, point):
                ended[i] = k + 1


def play(
    step: TapeArrays, observe: TapeArrays, tree: TreeArrays, starts: Floats, steps: int
) -> tuple[Floats, Ints]:
    """Play the closed loop from states; returns starts × steps × numbers, and the steps when episodes ended.

    After the end states are NaN; an episode that goes on ended at -1.
    """
    path = np.empty((len(starts), steps + 1, starts.shape[1]))
    ended = np.empty(len(starts), np.int64)
    _play(step, observe, tree, new_point(step, observe), starts, steps, path, ended)
    return path, ended
