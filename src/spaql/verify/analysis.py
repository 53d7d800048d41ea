"""What a tape shows about a plant: periods of angles, and what the numbers of its state are called."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.program.operations import operands
from spaql.program.tape import Tape


def periods(step: Tape, observe: Tape, n: int) -> NDArray[np.float64]:
    """Return a period of each state variable, 0 where none is shown.

    A number has a period if the next state of a shifted state is the shifted next state, and no observation
    and no condition differ: every use of it ends in a sine, a cosine or a remainder, or in itself.

    Examples
    --------
    >>> from spaql.problems.classic import find_dynamics
    >>> from spaql.problems.tapes import trace_observe, trace_step
    >>> plant = find_dynamics("Pendulum-v1")
    >>> periods(trace_step(plant), trace_observe(plant), 2).round(3).tolist()
    [6.283, 0.0]
    """
    period_of = np.zeros(n)
    for j in range(n):
        for period in (math.tau, 360.0):
            if _is_shifted(step, j, period, own=j) and _is_shifted(observe, j, period, own=None):
                period_of[j] = period
                break
    return period_of


def _is_shifted(tape: Tape, number: int, period: float, own: int | None) -> bool:
    """Return whether a shift of one input by a period shifts the output `own` likewise, and nothing else."""
    shifts = _shifts(tape, number, period)
    waiting = [tape.decisions]
    while waiting:
        node = waiting.pop()
        if len(node) == 2:
            expected = [period if j == own else 0.0 for j in range(len(node[0]))]
            if [shifts[row] for row in node[0]] != expected:
                return False
            continue
        (_, a, b), *sides = node
        if shifts[a] is None or shifts[a] != shifts[b]:
            return False
        waiting += sides
    return True


def _shifts(tape: Tape, number: int, period: float) -> list[float | None]:
    """Return by how much each row grows if an input does by a period; None if it is not known."""
    shifts: list[float | None] = []
    for row in tape.operations:
        name, first, second, _ = row
        if name == "unknown":
            shifts.append(None)
        elif name == "input":
            shifts.append(period if first == number else 0.0)
        else:
            known = [shifts[operand] for operand in operands(row)]
            a, b = [*known, 0.0, 0.0][:2]
            constants = _constant(tape, first), _constant(tape, second)
            shifts.append(None if a is None or b is None else _shift(name, a, b, constants))
    return shifts


def _constant(tape: Tape, row: int) -> float | None:
    if row < 0:
        return None
    name, _, _, value = tape.operations[row]
    return value if name == "const" else None


def _shift(name: str, a: float, b: float, constants: tuple[float | None, float | None]) -> float | None:
    """Return the shift of an operation on operands that are shifted by a and b."""
    left, right = constants
    if a == b == 0.0:
        return 0.0
    if name == "add":
        return a + b
    if name == "sub":
        return a - b
    if name == "neg":
        return -a
    if name == "mul" and (left is not None or right is not None):
        return a * right if right is not None else (left or 0.0) * b
    if name == "div" and right:
        return a / right
    if name in ("sin", "cos") and _is_multiple(a, math.tau):
        return 0.0
    if name == "mod" and right and _is_multiple(a, right):
        return 0.0
    return None


def _is_multiple(shift: float, period: float) -> bool:
    turns = shift / period
    return abs(turns) < 100 and abs(turns - round(turns)) < 1e-12


def same_numbers(observe: Tape) -> NDArray[np.int64]:
    """Return the state variable that each observation is, or -1 if it is none."""
    if observe.paths > 1:
        return np.full(observe.arrays.outputs.shape[1], -1, np.int64)
    shown = [observe.operations[row] for row in observe.arrays.outputs[0]]
    return np.array([first if name == "input" else -1 for name, first, _, _ in shown], np.int64)


def state_names(observe: Tape, observations: Sequence[str], n: int) -> tuple[str, ...]:
    """Return a name for each state variable: that of its observation, or `state 2` and so on.

    An angle that is observed as `cos(angle)` is called `angle [rad]`.
    """
    names = [f"state {j}" for j in range(n)]
    for rows, name in zip(observe.arrays.outputs.T, observations, strict=True):
        if np.any(rows != rows[0]):
            continue  # which state variable it shows depends on a condition
        operation, first, _, _ = observe.operations[rows[0]]
        if operation == "input":
            names[first] = name
        angle = re.fullmatch(r"(cos|sin)\((.+)\)", name)
        if angle and operation == angle[1] and observe.operations[first][0] == "input":
            names[observe.operations[first][1]] = f"{angle[2]} [rad]"
    return tuple(names)


def check_names(names: Sequence[str], observe: Tape, observations: Sequence[str]) -> None:
    """Refuse a name of two state variables, or of one and of an observation that does not show it."""
    for j, name in enumerate(names):
        shown = True
        if name in observations:
            rows = observe.arrays.outputs[:, observations.index(name)]
            shown = all(observe.operations[row][:2] == ("input", j) for row in rows)
        if names.count(name) > 1 or not shown:
            raise SettingError(
                f"{name!r} names two different variables of the plant, so that a statement about it would "
                "not say which one it means: give the observation another name."
            )
