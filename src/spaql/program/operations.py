"""The operations of tapes: all that is known of each, but for its arithmetic, which kernels have.

`spaql.kernels.verify.points` computes them for numbers, `spaql.kernels.verify.sets` for sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Row = tuple[str, int, int, float]
"""An operation, the rows of its operands, and a constant. First for an input is its number, and second for
`interp` that of the table."""


@dataclass(frozen=True)
class Operation:
    """What is known of an operation."""

    operands: int
    """Rows that it is computed from."""
    javascript: str
    """Its value, of those of its operands."""
    single: str = ""
    """In single precision: "exact" or "rounded"; empty where that is refused."""
    whole: bool = False
    """Whether it is a whole number, of whole numbers."""
    typed: bool = False
    """Whether it keeps numbers of NumPy; the functions of `math` return floats of Python."""


OPERATIONS = {
    "const": Operation(0, "{value}"),
    "input": Operation(0, "x[{first}]"),
    "unknown": Operation(0, "NaN"),
    "add": Operation(2, "{0} + {1}", "rounded", whole=True, typed=True),
    "sub": Operation(2, "{0} - {1}", "rounded", whole=True, typed=True),
    "mul": Operation(2, "{0} * {1}", "rounded", whole=True, typed=True),
    "div": Operation(2, "{0} / {1}", "rounded", typed=True),
    "neg": Operation(1, "-{0}", "exact", whole=True, typed=True),
    "min": Operation(2, "{1} < {0} ? {1} : {0}", "exact", whole=True),
    "max": Operation(2, "{1} > {0} ? {1} : {0}", "exact", whole=True),
    "abs": Operation(1, "Math.abs({0})", "exact", whole=True, typed=True),
    "square": Operation(1, "{0} * {0}", "rounded", whole=True, typed=True),
    "sqrt": Operation(1, "Math.sqrt({0})", "rounded"),
    "sin": Operation(1, "Math.sin({0})"),
    "cos": Operation(1, "Math.cos({0})"),
    "tan": Operation(1, "Math.tan({0})"),
    "exp": Operation(1, "Math.exp({0})"),
    "log": Operation(1, "Math.log({0})"),
    "atan": Operation(1, "Math.atan({0})"),
    "tanh": Operation(1, "Math.tanh({0})"),
    "atan2": Operation(2, "Math.atan2({0}, {1})"),
    "floor": Operation(1, "Math.floor({0})", "exact"),
    "mod": Operation(2, "mod({0}, {1})", whole=True, typed=True),
    "fmod": Operation(2, "{0} % {1}"),
    "interp": Operation(1, "interp({table}, {0})"),
    "single": Operation(1, "Math.fround({0})"),
}
"""In the order of their codes. `unknown` may be any number, and none; `square` is x * x; `single` rounds to
single precision; `interp` is linear between the points of a table, and constant beyond them."""


def operands(row: Row) -> tuple[int, ...]:
    """Return the rows that a row is computed from."""
    name, first, second, _ = row
    return (first, second)[: OPERATIONS[name].operands]


def moved(row: Row, place: Mapping[int, int]) -> Row:
    """Return a row whose operands are in other places."""
    name, first, second, value = row
    count = OPERATIONS[name].operands
    return name, place[first] if count else first, place[second] if count == 2 else second, value
