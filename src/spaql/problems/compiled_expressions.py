"""Expressions as functions of numbers that kernels can call.

The source of such a function is written from the parsed tree, one statement for each operation: no part of a
user's text is in it. The functions below compute as NumPy's do in `Expression`: division by 0 and arguments
out of a domain lead to infinities and NaN, never to an error.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

from numba.extending import overload

from spaql.kernels.jit import ENABLED, callable_by_kernels
from spaql.problems.expressions import CONSTANTS, Expression

_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_OPERATORS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_CALLS: dict[type[ast.AST], str] = {ast.Div: "divide", ast.Mod: "modulo", ast.Pow: "power"}


def divide(x: float, y: float) -> float:
    """Return x / y."""
    if y != 0.0:
        return x / y
    return math.nan if x == 0.0 or x != x or y != y else math.copysign(math.inf, x) * math.copysign(1.0, y)


def modulo(x: float, y: float) -> float:
    """Return x modulo y, which has the sign of y."""
    return math.nan if y == 0.0 or math.isinf(x) else x % y


def power(x: float, y: float) -> float:
    """Return x to the power of y: NaN where it is not real, and an infinity where it is too large."""
    try:
        return math.pow(x, y)
    except (OverflowError, ValueError):
        if x < 0.0 and y != math.floor(y):
            return math.nan
        return -math.inf if math.copysign(1.0, x) < 0.0 and y % 2.0 == 1.0 else math.inf


def exp(x: float) -> float:
    """Return e to the power of x."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def log(x: float) -> float:
    """Return the natural logarithm."""
    return math.log(x) if x > 0.0 else -math.inf if x == 0.0 else math.nan


def sqrt(x: float) -> float:
    """Return the square root."""
    return math.sqrt(x) if x >= 0.0 else math.nan


def sin(x: float) -> float:
    """Return the sine."""
    return math.nan if math.isinf(x) else math.sin(x)


def cos(x: float) -> float:
    """Return the cosine."""
    return math.nan if math.isinf(x) else math.cos(x)


def tan(x: float) -> float:
    """Return the tangent."""
    return math.nan if math.isinf(x) else math.tan(x)


def asin(x: float) -> float:
    """Return the arc sine."""
    return math.asin(x) if -1.0 <= x <= 1.0 else math.nan


def acos(x: float) -> float:
    """Return the arc cosine."""
    return math.acos(x) if -1.0 <= x <= 1.0 else math.nan


def atan(x: float) -> float:
    """Return the arc tangent."""
    return math.atan(x)


def atan2(y: float, x: float) -> float:
    """Return the angle of a point."""
    return math.atan2(y, x)


def tanh(x: float) -> float:
    """Return the hyperbolic tangent."""
    return math.tanh(x)


def hypot(x: float, y: float) -> float:
    """Return the distance of a point from 0."""
    return math.hypot(x, y)


def floor(x: float) -> float:
    """Return the largest whole number that is not larger."""
    if math.isinf(x) or x != x or abs(x) >= 4503599627370496.0:  # whole already, and no int64
        return x
    return float(math.floor(x))


def absolute(x: float) -> float:
    """Return the absolute value."""
    return math.fabs(x)


def sign(x: float) -> float:
    """Return 1, 0 or -1."""
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else x


def smaller(x: float, y: float) -> float:
    """Return the smaller number; NaN if one is."""
    return x if x < y or x != x else y


def larger(x: float, y: float) -> float:
    """Return the larger number; NaN if one is."""
    return x if x > y or x != x else y


_NAMED: dict[str, Callable[..., Any]] = {
    "abs": absolute,
    "sign": sign,
    "sqrt": sqrt,
    "exp": exp,
    "log": log,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "atan2": atan2,
    "tanh": tanh,
    "floor": floor,
    "hypot": hypot,
}
"""The functions of expressions that are called as they are; min, max and clip are made of two others."""
_HELPERS: dict[str, Callable[..., Any]] = {
    **{function.__name__: function for function in _NAMED.values()},
    **{function.__name__: function for function in (divide, modulo, power, smaller, larger)},
}
"""All functions that a written source calls, by name."""

if ENABLED:  # in compiled code nothing is raised, and there is no try
    overload(power, jit_options={"error_model": "numpy"})(lambda x, y: lambda x, y: x**y)
    overload(exp)(lambda x: lambda x: math.exp(x))
    for _helper in set(_HELPERS.values()) - {power, exp}:
        callable_by_kernels(_helper)


class Source:
    """The statements of a function, written operation by operation.

    Parameters
    ----------
    places
        Where the value of each name is found, such as `seen[0]`.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._places = places

    def add(self, expression: Expression) -> str:
        """Write an expression; returns the variable that holds its value."""
        return self._write(expression.tree)

    def set(self, value: str) -> str:
        """Write a variable that holds a value; returns its name."""
        self.lines.append(f"x{len(self.lines)} = {value}")
        return f"x{len(self.lines) - 1}"

    def function(self, name: str, parameters: str, returned: str) -> Callable[..., Any]:
        """Return the function of the statements, which kernels can call."""
        body = "".join(f"    {line}\n" for line in (*self.lines, f"return {returned}"))
        namespace: dict[str, Any] = dict(_HELPERS)
        exec(compile(f"def {name}({parameters}):\n{body}", f"<{name}>", "exec"), namespace)
        made: Callable[..., Any] = namespace[name]
        return callable_by_kernels(made)

    def _write(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int | float)
            return self.set(repr(float(node.value)))
        if isinstance(node, ast.Name):
            return self.set(self._places.get(node.id) or repr(CONSTANTS[node.id]))
        if isinstance(node, ast.BinOp):
            left, right = self._write(node.left), self._write(node.right)
            kind = type(node.op)
            called = _CALLS.get(kind)
            return self.set(f"{called}({left}, {right})" if called else f"{left} {_OPERATORS[kind]} {right}")
        if isinstance(node, ast.UnaryOp):
            x = self._write(node.operand)
            if isinstance(node.op, ast.Not):
                return self._truth(f"{x} == 0.0")
            return self.set(f"-{x}") if isinstance(node.op, ast.USub) else x
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            return self._truth(word.join(f"{self._write(one)} != 0.0" for one in node.values))
        if isinstance(node, ast.Compare):
            sides = [self._write(one) for one in (node.left, *node.comparators)]
            pairs = zip(sides, (_SYMBOLS[type(op)] for op in node.ops), sides[1:], strict=False)
            return self._truth(" and ".join(f"{x} {symbol} {y}" for x, symbol, y in pairs))
        if isinstance(node, ast.IfExp):
            test, one, other = (self._write(part) for part in (node.test, node.body, node.orelse))
            return self.set(f"{one} if {test} != 0.0 else {other}")
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return self._call(node.func.id, [self._write(one) for one in node.args])

    def _truth(self, condition: str) -> str:
        return self.set(f"1.0 if {condition} else 0.0")

    def _call(self, name: str, arguments: list[str]) -> str:
        if name == "clip":
            x, low, high = arguments
            return self.set(f"smaller({self.set(f'larger({x}, {low})')}, {high})")
        if name in ("min", "max"):
            first, *rest = arguments
            for one in rest:
                first = self.set(f"{'smaller' if name == 'min' else 'larger'}({first}, {one})")
            return first
        return self.set(f"{_NAMED[name].__name__}({', '.join(arguments)})")
