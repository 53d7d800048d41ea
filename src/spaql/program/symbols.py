"""Symbols: numbers that are not known yet, which record what a function does with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spaql.program.ir import Arithmetic
from spaql.program.operations import OPERATIONS
from spaql.program.recorder import RECORDERS, NotTracedError

OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
"""The operations of operators."""
INDEX_RANGE = 256
"""Most values of an index into a table."""
WHOLE_MOST = 2.0**53
"""Whole numbers up to it are exact as floats; those of the machine wrap beyond 2**63."""


def apply(name: str, *operands: Symbol) -> Symbol:
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


class Elementwise(Arithmetic):
    """What works element by element: the base of arrays of symbols."""


class Symbol(Arithmetic):
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

    def operated(self, operator: str, first: Any, second: Any) -> Any:
        """Return the symbol of an operation; of an array, NotImplemented, as it knows better."""
        if isinstance(first, Elementwise) or isinstance(second, Elementwise):
            return NotImplemented
        return apply(OPERATORS[operator], lifted(first), lifted(second))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Symbol) and other.row == self.row:
            return apply("square", self)
        return super().__mul__(other)

    def __mod__(self, other: Any) -> Any:
        return apply("mod", self, positive_constant(other, "%"))

    def __floordiv__(self, other: Any) -> Any:
        divisor = lifted(other)
        quotient = apply("floor", apply("div", self, divisor))
        return whole(quotient.row) if self.precision == divisor.precision == "whole" else quotient

    def __neg__(self) -> Symbol:
        return apply("neg", self)

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Symbol:
        return apply("abs", self)

    def __pow__(self, power: Any) -> Symbol:
        if self.precision == "whole":
            raise NotTracedError("a power of a whole number: write float(x) for x, or a product")
        if isinstance(power, Symbol) or not float(power).is_integer() or not 1 <= abs(int(power)) <= 16:
            if not isinstance(power, Symbol) and power == 0.5:
                return apply("sqrt", self)
            raise NotTracedError(
                "a power needs a constant whole exponent from 1 to 16, or 0.5: write out others"
            )
        n = abs(int(power))
        result = None
        base = self
        while n:
            if n & 1:
                result = base if result is None else apply("mul", result, base)
            n >>= 1
            base = apply("square", base) if n else base
        assert result is not None
        return result if power > 0 else apply("div", lifted(1.0), result)

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


def positive_constant(x: Any, what: str) -> Symbol:
    """Return the symbol of the right operand of a remainder, which must be a positive constant."""
    if isinstance(x, Symbol | Elementwise) or not 0.0 < float(x) < math.inf:
        raise NotTracedError(f"the right operand of {what} must be a positive constant")
    return lifted(x)
