"""The recorder of a traced function: its operations, and the conditions on the path that is followed."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from spaql.program.operations import Row

Condition = tuple[str, int, int]
Decision = tuple[Condition, bool, bool]
"""A comparison, its answer, and whether the answer was settled: what gives the other one is not followed."""
Range = tuple[float, float]

_PACKAGE = os.path.dirname(__file__) + os.sep


class NotTracedError(Exception):
    """A function does something that cannot be traced; the message says what, and what to write instead.

    Found before the function is run, it has the file and the line.
    """

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


class LostPathError(Exception):
    """A path repeats one condition too often: what it returns is not known."""


class Recorder:
    """The operations of a function, and the conditions on the path that is being followed.

    Parameters
    ----------
    ranges
        Of the inputs; conditions that they settle are not decided both ways.
    turns
        How often one condition in the source may be decided on a path.
    """

    def __init__(self, ranges: Sequence[Range], turns: float) -> None:
        self.rows: list[Row] = []
        self.tables: list[tuple[tuple[float, ...], tuple[float, ...]]] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._inputs = list(ranges)
        self._n_inputs = len(ranges)
        self._turns = turns
        self.begin([])

    def begin(self, plan: list[bool]) -> None:
        """Start on another path, along which the first conditions have the planned answers."""
        self.decided: list[Decision] = []
        self._compared: set[int] = set()
        self._plan = plan
        self._range: dict[int, Range] = {}
        self._times: dict[tuple[Any, int], int] = {}

    def row(self, name: str, first: int = -1, second: int = -1, value: float = 0.0) -> int:
        """Return the row of an operation; equal operations share one."""
        key = (name, first, second, value, math.copysign(1.0, value))
        number = self._known.setdefault(key, len(self.rows))
        if number == len(self.rows):
            self.rows.append((name, first, second, value))
        if number not in self._range:
            self._range[number] = self._bounds(name, first, second, value)
        return number

    def draw(self, number: int) -> tuple[int, int]:
        """Return the rows of a draw of the step as a uniform and as a normal number; both are inputs.

        They follow the inputs that were given, two for each draw.
        """
        place = self._n_inputs + 2 * number
        if place == len(self._inputs):
            self._inputs += [(0.0, 1.0), (-math.inf, math.inf)]
        return self.row("input", first=place), self.row("input", first=place + 1)

    @property
    def draws(self) -> int:
        """The largest number of draws on a path."""
        return (len(self._inputs) - self._n_inputs) // 2

    def table(self, points: Sequence[Any], values: Sequence[Any]) -> int:
        """Return the number of a table of `interp`."""
        key = tuple(float(x) for x in points), tuple(float(y) for y in values)
        if key not in self.tables:
            self.tables.append(key)
        return self.tables.index(key)

    def range(self, row: int) -> Range:
        """Return the bounds of a row on this path."""
        return self._range[row]

    def _bounds(self, name: str, first: int, second: int, value: float) -> Range:
        """Return bounds that serve only to leave out paths; a proof evaluates all conditions on sets."""
        if name == "const":
            return value, value
        if name == "input":
            return self._inputs[first]
        a = self._range.get(first, (-math.inf, math.inf))
        b = self._range.get(second, (-math.inf, math.inf))
        low, high = _operation_bounds(name, a, b)
        if math.isnan(low) or math.isnan(high):
            return -math.inf, math.inf
        if name in ("min", "max", "neg", "abs", "sin", "cos", "tanh", "floor"):
            return low, high
        slack = 1e-6 * (1.0 + max(abs(low), abs(high)))
        return low - slack, high + slack

    def decide(self, kind: str, first: int, second: int, *, repeats: bool = True) -> bool:
        """Return the truth of a comparison on this path: settled by the ranges, or planned, or true.

        Ranges know no NaN. So a settled comparison of what may be NaN is a condition as well. With `repeats`,
        a place in the source that asks too often loses the path.
        """
        settled = _settled(kind, self._range[first], self._range[second])
        for condition, answer, _ in self.decided:
            if condition == (kind, first, second):
                return answer
        if settled is not None:
            if not self._is_number(first) or not self._is_number(second):
                self._decide((kind, first, second), settled, settled=True)
            return settled
        if repeats:
            place = _place()
            self._times[place] = self._times.get(place, 0) + 1
            if self._times[place] > self._turns:
                raise LostPathError
        n = len(self.decided)
        answer = self._plan[n] if n < len(self._plan) else True
        self._decide((kind, first, second), answer, settled=False)
        self._narrow(kind, first, second, answer)
        return answer

    def require(self, kind: str, first: int, second: int) -> None:
        """Follow only what fulfils a comparison: of all else, what is returned is not known."""
        if not (_settled(kind, self._range[first], self._range[second]) and self._is_number(first)):
            self._decide((kind, first, second), True, settled=True)
            self._narrow(kind, first, second, True)

    def _decide(self, condition: Condition, answer: bool, *, settled: bool) -> None:
        self.decided.append((condition, answer, settled))
        self._compared |= {condition[1], condition[2]}

    def _is_number(self, row: int) -> bool:
        """Return whether a row is no NaN, or was compared before on this path, which shows it."""
        return row in self._compared or self.rows[row][0] in ("const", "input")

    def _narrow(self, kind: str, first: int, second: int, answer: bool) -> None:
        a = self._range[first]
        b = self._range[second]
        if kind == "==":
            if answer:
                both = max(a[0], b[0]), min(a[1], b[1])
                self._range[first] = self._range[second] = both
        elif answer:
            self._range[first] = a[0], min(a[1], b[1])
            self._range[second] = max(a[0], b[0]), b[1]
        else:
            self._range[first] = max(a[0], b[0]), a[1]
            self._range[second] = b[0], min(a[1], b[1])


def _place() -> tuple[Any, int]:
    """Return the place in the traced source that asks for the truth of a comparison."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def _operation_bounds(name: str, a: Range, b: Range) -> Range:
    if name == "add":
        return a[0] + b[0], a[1] + b[1]
    if name == "sub":
        return a[0] - b[1], a[1] - b[0]
    if name == "neg":
        return -a[1], -a[0]
    if name == "mul":
        ends = [x * y for x in a for y in b]
        return (math.nan, math.nan) if any(map(math.isnan, ends)) else (min(ends), max(ends))
    if name == "div" and b[0] == b[1] and math.isfinite(b[0]) and b[0] != 0.0:
        low, high = sorted((a[0] / b[0], a[1] / b[0]))
        return low, high
    if name == "min":
        return min(a[0], b[0]), min(a[1], b[1])
    if name == "max":
        return max(a[0], b[0]), max(a[1], b[1])
    if name == "abs":
        return max(0.0, a[0], -a[1]), max(-a[0], a[1])
    if name == "floor":
        return float(np.floor(a[0])), float(np.floor(a[1]))
    if name == "square":
        return 0.0, max(a[0] * a[0], a[1] * a[1])
    if name == "mod":
        return 0.0, b[1]
    if name == "single":
        return a
    if name in ("sin", "cos", "tanh"):
        return -1.0, 1.0
    return -math.inf, math.inf


def _settled(kind: str, a: Range, b: Range) -> bool | None:
    """Return the truth of a comparison if the ranges settle it."""
    if kind == "<":
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    if kind == "<=":
        return True if a[1] <= b[0] else False if a[0] > b[1] else None
    if a[1] < b[0] or a[0] > b[1]:
        return False
    return True if a[0] == a[1] == b[0] == b[1] else None


RECORDERS: list[Recorder] = []
"""The recorder that is in use is the last."""
