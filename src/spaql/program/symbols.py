"""Symbols: numbers that are not known yet, which record what a function does with them."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from spaql.program.operations import OPERATIONS, Row

Condition = tuple[str, int, int]
Decision = tuple[Condition, bool, bool]
"""A comparison, its answer, and whether the answer was settled: what gives the other one is not followed."""
Range = tuple[float, float]

_PACKAGE = os.path.dirname(__file__) + os.sep
INDEX_RANGE = 256
"""Most values of an index into a table."""
WHOLE_MOST = 2.0**53
"""Whole numbers up to it are exact as floats; those of the machine wrap beyond 2**63."""


class NotTracedError(Exception):
    """A function does something that cannot be traced; the message says what, and what to write instead.

    Found before the function is run, it has the file and the line.
    """

    def __init__(self, said: str, file: str = "", line: int = 0) -> None:
        super().__init__(said)
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
        self._given = len(ranges)
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
        place = self._given + 2 * number
        if place == len(self._inputs):
            self._inputs += [(0.0, 1.0), (-math.inf, math.inf)]
        return self.row("input", first=place), self.row("input", first=place + 1)

    @property
    def draws(self) -> int:
        """The largest number of draws on a path."""
        return (len(self._inputs) - self._given) // 2

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


def made(name: str, *operands: Symbol) -> Symbol:
    """Return the symbol of an operation.

    Between single precision and a float of Python, NumPy computes and compares in single precision and Numba
    in double precision: a row `single`, which may be rounded or not, covers both.
    """
    record = RECORDERS[-1].row
    operation = OPERATIONS[name]
    kinds = {operand.precision for operand in operands}
    if _is_single(operands):
        if not operation.single:
            raise NotTracedError(f"{name} of a number in single precision: write np.float64(x) for x")
        adapted = [_adapted(operand) for operand in operands]
        if operation.single == "rounded":
            return Symbol(record("single", record(name, *adapted)), "single")
        row = record(name, *(operand.row for operand in operands))
        exact = adapted == [operand.row for operand in operands]
        return Symbol(row if exact else record("single", row), "single")
    row = record(name, *(operand.row for operand in operands))
    if kinds == {"whole"} and operation.whole:
        return whole(row)
    if name in ("min", "max"):  # it is one of the operands
        return Symbol(row, "single" if "single" in kinds else "double" if kinds == {"double"} else "literal")
    return Symbol(row, "double" if "double" in kinds and operation.typed else "literal")


def whole(row: int) -> Symbol:
    """Return the symbol of a row as a whole number of the machine, where it is exact."""
    low, high = RECORDERS[-1].range(row)
    if low < -WHOLE_MOST:
        RECORDERS[-1].require("<=", lifted(-WHOLE_MOST).row, row)
    if high > WHOLE_MOST:
        RECORDERS[-1].require("<=", row, lifted(WHOLE_MOST).row)
    return Symbol(row, "whole")


def _is_single(operands: Sequence[Symbol]) -> bool:
    """Return whether NumPy computes in single precision."""
    kinds = {operand.precision for operand in operands}
    return "single" in kinds and "double" not in kinds


def _adapted(operand: Symbol) -> int:
    """Return the row of an operand of a computation that may be in single precision."""
    name, _, _, value = RECORDERS[-1].rows[operand.row]
    if operand.precision == "single" or (name == "const" and float(np.float32(value)) == value):
        return operand.row
    return RECORDERS[-1].row("single", operand.row)


_KINDS: tuple[tuple[Any, str], ...] = (
    (np.float32, "single"),
    (np.float64, "double"),
    (bool | int | np.bool_ | np.int64, "whole"),
    (float, "literal"),
)


def lifted(x: Any) -> Symbol:
    """Return the symbol of a number."""
    if isinstance(x, Symbol):
        return x
    for types, kind in _KINDS:
        if isinstance(x, types):
            if kind == "whole" and abs(x) > WHOLE_MOST:
                raise NotTracedError(f"{x} is too large for a whole number: write it as a float")
            return Symbol(RECORDERS[-1].row("const", value=float(x)), kind)
    raise NotTracedError(f"a {type(x).__name__} is used as a number: compute with floats")


class Elementwise:
    """What works element by element: the base of arrays of symbols."""


class Symbol:
    """A number that is not known yet: a row of the tape.

    `precision` is `single` or `double` for numbers of NumPy of that type, `whole` for whole numbers, and
    `literal` for floats of Python, which adapt to the others. A comparison is decided at once, so that its
    truth is a bool as any other.
    """

    __slots__ = ("precision", "row")
    __array_ufunc__ = None  # NumPy's scalars leave operators to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, row: int, precision: str = "literal") -> None:
        self.row = row
        self.precision = precision

    def __add__(self, other: Any) -> Any:
        return _operated("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _operated("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _operated("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _operated("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Symbol) and other.row == self.row:
            return made("square", self)
        return _operated("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _operated("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _operated("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _operated("div", other, self)

    def __mod__(self, other: Any) -> Any:
        return made("mod", self, positive_constant(other, "%"))

    def __floordiv__(self, other: Any) -> Any:
        divisor = lifted(other)
        found = made("floor", made("div", self, divisor))
        return whole(found.row) if self.precision == divisor.precision == "whole" else found

    def __neg__(self) -> Symbol:
        return made("neg", self)

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Symbol:
        return made("abs", self)

    def __pow__(self, power: Any) -> Symbol:
        if self.precision == "whole":
            raise NotTracedError("a power of a whole number: write float(x) for x, or a product")
        if isinstance(power, Symbol) or not float(power).is_integer() or not 1 <= abs(int(power)) <= 16:
            if not isinstance(power, Symbol) and power == 0.5:
                return made("sqrt", self)
            raise NotTracedError(
                "a power needs a constant whole exponent from 1 to 16, or 0.5: write out others"
            )
        n = abs(int(power))
        result = None
        base = self
        while n:
            if n & 1:
                result = base if result is None else made("mul", result, base)
            n >>= 1
            base = made("square", base) if n else base
        assert result is not None
        return result if power > 0 else made("div", lifted(1.0), result)

    def __rpow__(self, base: Any) -> Symbol:
        raise NotTracedError("the exponent of a power must be a constant: write math.exp(x * log_of_base)")

    def __lt__(self, other: Any) -> bool:
        return _compared("<", self, lifted(other))

    def __le__(self, other: Any) -> bool:
        return _compared("<=", self, lifted(other))

    def __gt__(self, other: Any) -> bool:
        return _compared("<", lifted(other), self)

    def __ge__(self, other: Any) -> bool:
        return _compared("<=", lifted(other), self)

    def __eq__(self, other: Any) -> bool:
        return _compared("==", self, lifted(other))

    def __ne__(self, other: Any) -> bool:
        return not _compared("==", self, lifted(other))

    def __bool__(self) -> bool:
        return not RECORDERS[-1].decide("==", self.row, lifted(0.0).row)

    def __float__(self) -> float:
        raise NotTracedError(
            "a function that is not known for sets is called with a state or an action: use +, -, *, /, "
            "comparisons, min, max, abs, and of math sin, cos, tan, atan, atan2, sqrt, exp, log, tanh, fmod"
        )

    def __str__(self) -> str:
        raise NotTracedError("a number is written as text, which is not traced")

    def __format__(self, form: str) -> str:
        raise NotTracedError("a number is written as text, which is not traced")

    __repr__ = __str__

    def __round__(self, digits: int | None = None) -> Symbol:
        raise NotTracedError("round() is not traced: write math.floor(x + 0.5)")

    def __index__(self) -> int:
        """Return an index of a table; a path for every value that it may have."""
        low, high = RECORDERS[-1].range(self.row)
        if self.precision != "whole":
            raise NotTracedError("an index of a table must be int(...) of a number")
        if not high - low < INDEX_RANGE:
            raise NotTracedError(
                f"an index of a table has no known bounds: clip it to at most {INDEX_RANGE} values, such as "
                "table[int(min(max(x, 0.0), 9.0))], or use np.interp"
            )
        for index in range(math.ceil(low), math.floor(high)):
            if RECORDERS[-1].decide("==", self.row, lifted(float(index)).row, repeats=False):
                return index
        RECORDERS[-1].require("<=", self.row, lifted(math.floor(high)).row)
        return math.floor(high)


def _compared(kind: str, first: Symbol, second: Symbol) -> bool:
    """Return the truth of a comparison on this path."""
    operands = first, second
    adapts = _is_single(operands)
    rows = [_adapted(operand) if adapts else operand.row for operand in operands]
    return RECORDERS[-1].decide(kind, rows[0], rows[1])


def _operated(name: str, first: Any, second: Any) -> Any:
    """Return the symbol of an operation; of an array, NotImplemented, as it knows better."""
    if isinstance(first, Elementwise) or isinstance(second, Elementwise):
        return NotImplemented
    return made(name, lifted(first), lifted(second))


def positive_constant(x: Any, what: str) -> Symbol:
    """Return the symbol of the right operand of a remainder, which must be a positive constant."""
    if isinstance(x, Symbol | Elementwise) or not 0.0 < float(x) < math.inf:
        raise NotTracedError(f"the right operand of {what} must be a positive constant")
    return lifted(x)
