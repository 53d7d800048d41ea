"""What a tape shows about a plant: periods of angles, and what the numbers of its state are called."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.kernels.verify.codes import OPERATIONS
from spaql.verify.tape import Tape


def periods(step: Tape, observe: Tape, n: int) -> NDArray[np.float64]:
    """Return a period of each number of the state, 0 where none is shown.

    A number has a period if the next state of a shifted state is the shifted next state, and no observation
    and no condition differ: every use of it ends in a sine, a cosine or a remainder, or in itself.

    Examples
    --------
    >>> from spaql.problems.classic import find_dynamics
    >>> from spaql.verify.trace import trace_observe, trace_step
    >>> plant = find_dynamics("Pendulum-v1")
    >>> periods(trace_step(plant), trace_observe(plant), 2).round(3).tolist()
    [6.283, 0.0]
    """
    found = np.zeros(n)
    for j in range(n):
        for period in (math.tau, 360.0):
            if _is_shifted(step, j, period, own=j) and _is_shifted(observe, j, period, own=None):
                found[j] = period
                break
    return found


def _is_shifted(tape: Tape, number: int, period: float, own: int | None) -> bool:
    """Return whether a shift of one input by a period shifts the output `own` likewise, and nothing else."""
    arrays = tape.arrays
    shifts = _shifts(tape, number, period)
    for kind, a, b, *_ in arrays.branch:
        if kind >= 0 and (shifts[a] is None or shifts[a] != shifts[b]):
            return False
    for row in arrays.outputs:
        for j, one in enumerate(row):
            expected = (period,) if j == own else (0.0,)
            if shifts[one] not in expected:
                return False
    return True


def _shifts(tape: Tape, number: int, period: float) -> list[float | None]:
    """Return by how much each row grows if an input does by a period; None if it is not known."""
    arrays = tape.arrays
    shifts: list[float | None] = []
    for code, first, second, value in zip(
        arrays.code, arrays.first, arrays.second, arrays.value, strict=True
    ):
        name = OPERATIONS[code]
        if name in ("const", "input", "unknown"):
            shifted = name == "input" and first == number
            shifts.append(None if name == "unknown" else period if shifted else 0.0)
            continue
        a = shifts[first]
        b = 0.0 if name == "interp" or second < 0 else shifts[second]
        shifts.append(None if a is None or b is None else _shift(name, a, b, _constants(tape, first, second)))
        del value
    return shifts


def _constants(tape: Tape, first: int, second: int) -> tuple[float | None, float | None]:
    code, value = tape.arrays.code, tape.arrays.value
    left, right = (
        float(value[row]) if 0 <= row < len(code) and OPERATIONS[code[row]] == "const" else None
        for row in (first, second)
    )
    return left, right


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
    """Return the number of the state that each observation is, or -1 if it is none."""
    arrays = observe.arrays
    if observe.paths > 1:
        return np.full(arrays.outputs.shape[1], -1, np.int64)
    return np.array(
        [arrays.first[row] if OPERATIONS[arrays.code[row]] == "input" else -1 for row in arrays.outputs[0]],
        np.int64,
    )


def state_names(observe: Tape, observations: Sequence[str], n: int) -> tuple[str, ...]:
    """Return a name for each number of the state: that of its observation, or `state 2` and so on.

    An angle that is observed as `cos(angle)` is called `angle [rad]`.
    """
    names = [f"state {j}" for j in range(n)]
    arrays = observe.arrays
    for rows, name in zip(arrays.outputs.T, observations, strict=True):
        row = rows[0]
        if np.any(rows != row):
            continue  # which state variable it shows depends on a condition
        operation = OPERATIONS[arrays.code[row]]
        if operation == "input":
            names[int(arrays.first[row])] = name
        angle = re.fullmatch(r"(cos|sin)\((.+)\)", name)
        inner = arrays.first[row]
        if angle and operation == angle[1] and OPERATIONS[arrays.code[inner]] == "input":
            names[int(arrays.first[inner])] = f"{angle[2]} [rad]"
    return tuple(names)


def check_names(names: Sequence[str], observe: Tape, observations: Sequence[str]) -> None:
    """Refuse a name of two state variables, or of one and of an observation that does not show it."""
    arrays = observe.arrays
    for j, name in enumerate(names):
        shown = True
        if name in observations:
            rows = arrays.outputs[:, observations.index(name)]
            shown = all(OPERATIONS[arrays.code[row]] == "input" and arrays.first[row] == j for row in rows)
        if names.count(name) > 1 or not shown:
            raise SettingError(
                f"{name!r} names two different variables of the plant, so that a statement about it would "
                "not say which one it means: give the observation another name."
            )
