"""Expressions over named columns, for costs and end conditions: arithmetic, and nothing else.

The text is parsed by Python's own parser, and only the kinds of nodes that are listed here are evaluated, by
NumPy, for many rows at a time. There is no attribute, index, string, assignment, or call of anything but the
functions of `FUNCTIONS`; nothing is executed.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError, nearest
from spaql.spaces import split_unit

Values = Mapping[str, NDArray[Any]]
_LONGEST = 2_000
"""Most characters of an expression."""
_DEEPEST = 60
"""Most levels of nesting."""

FUNCTIONS: dict[str, tuple[int, int | None, Callable[..., Any]]] = {
    "abs": (1, 1, np.abs),
    "sign": (1, 1, np.sign),
    "sqrt": (1, 1, np.sqrt),
    "exp": (1, 1, np.exp),
    "log": (1, 1, np.log),
    "sin": (1, 1, np.sin),
    "cos": (1, 1, np.cos),
    "tan": (1, 1, np.tan),
    "asin": (1, 1, np.arcsin),
    "acos": (1, 1, np.arccos),
    "atan": (1, 1, np.arctan),
    "atan2": (2, 2, np.arctan2),
    "tanh": (1, 1, np.tanh),
    "floor": (1, 1, np.floor),
    "hypot": (2, 2, np.hypot),
    "min": (2, None, lambda *values: _fold(np.minimum, values)),
    "max": (2, None, lambda *values: _fold(np.maximum, values)),
    "clip": (3, 3, lambda x, low, high: np.minimum(np.maximum(x, low), high)),
}
"""The functions of an expression: the fewest and most arguments of each, and what it computes."""
CONSTANTS = {"pi": math.pi}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


def identifier(name: str) -> str:
    """Return the name of a column in expressions: without its unit, `_` for what is no letter or digit.

    Examples
    --------
    >>> identifier("pole angle [rad]"), identifier("2nd"), identifier("torque")
    ('pole_angle', '_2nd', 'torque')
    """
    plain = re.sub(r"\W", "_", split_unit(name)[0].strip())
    return f"_{plain}" if not plain or plain[0].isdigit() else plain


@dataclass(frozen=True)
class Expression:
    """An expression that was parsed, with the names it may use.

    Examples
    --------
    >>> cost = Expression.parse("cost", "atan2(sin, cos)**2 + 0.1 * speed**2", ["cos", "sin", "speed"])
    >>> cost({"cos": np.array([1.0, 0.0]), "sin": np.zeros(2), "speed": np.array([0.0, 2.0])})
    array([0. , 0.4])
    """

    what: str
    """What it is for, in messages."""
    text: str
    tree: ast.expr
    names: frozenset[str]
    """The names that it uses."""

    @classmethod
    def parse(cls, what: str, text: str, known: Iterable[str]) -> Expression:
        """Return the expression of a text over known names; raises `SettingError` for anything else."""
        if not isinstance(text, str):
            raise SettingError(f"The {what} is {text!r}, and must be a text, such as 'abs(x) > 1'.")
        if len(text) > _LONGEST:
            raise SettingError(f"The {what} has {len(text):,} characters, and may have {_LONGEST:,}.")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            said = error.msg if isinstance(error, SyntaxError) else str(error)
            raise SettingError(f"The {what} {text!r} cannot be read: {said}.") from None
        names: set[str] = set()
        _check(tree, _Context(what, text, tuple(known), names), 0)
        return cls(what, text, tree, frozenset(names))

    def __call__(self, values: Values, count: int | None = None) -> NDArray[np.float64]:
        """Return the value for each row, as floats; `count` is the number of rows of one without names."""
        with np.errstate(all="ignore"):  # the caller checks what it gets: a branch not taken may divide by 0
            found = _evaluate(self.tree, values)
        rows = len(next(iter(values.values()))) if count is None else count
        return np.array(np.broadcast_to(np.asarray(found, np.float64), (rows,)))

    def holds(self, values: Values, count: int | None = None) -> NDArray[np.bool_]:
        """Return whether it holds, for each row; a number other than 0 holds."""
        return np.asarray(self(values, count) != 0.0)


@dataclass(frozen=True)
class _Context:
    what: str
    text: str
    known: tuple[str, ...]
    used: set[str]

    def refuse(self, message: str) -> SettingError:
        return SettingError(f"The {self.what} {self.text!r} {message}")


def _check(node: ast.AST, context: _Context, depth: int) -> None:
    """Raise unless a node and all below it are of the kinds that are evaluated."""
    if depth > _DEEPEST:
        raise context.refuse(f"is nested more than {_DEEPEST} levels deep.")
    if isinstance(node, ast.Constant):
        _check_number(node.value, context)
    elif isinstance(node, ast.Name):
        if node.id not in context.known and node.id not in CONSTANTS:
            raise context.refuse(f"uses {node.id!r}, which is none of its names: {_names(node.id, context)}")
        context.used.add(node.id)
    else:
        for child in _children(node, context):
            _check(child, context, depth + 1)


def _children(node: ast.AST, context: _Context) -> list[ast.expr]:
    """Return the operands of an operation or a call; anything else is refused."""
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd | ast.Not):
        return [node.operand]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARISONS for op in node.ops):
        return [node.left, *node.comparators]
    if isinstance(node, ast.IfExp):
        return [node.test, node.body, node.orelse]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name not in FUNCTIONS:
            raise context.refuse(f"calls {name}, which is no function here: {nearest(name, FUNCTIONS)}")
        fewest, most, _ = FUNCTIONS[name]
        starred = any(isinstance(one, ast.Starred) for one in node.args)
        if node.keywords or starred or not fewest <= len(node.args) <= (most or len(node.args)):
            count = f"{fewest}" if most == fewest else f"{fewest} or more"
            raise context.refuse(f"must give {name} {count} arguments, without names.")
        return node.args
    raise context.refuse(
        f"holds {ast.unparse(node)!r}, which is neither a number, a name, arithmetic, a comparison nor a "
        "function of numbers."
    )


def _check_number(value: object, context: _Context) -> None:
    """Refuse constants other than finite real numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise context.refuse(f"holds {value!r}, which is no number.")
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise context.refuse("holds a number that is too large.")


def _names(name: str, context: _Context) -> str:
    return nearest(name, sorted(set(context.known) | set(CONSTANTS)))


def _evaluate(node: ast.expr, values: Values) -> Any:
    """Return the value of a checked node, for all rows; truth values count as 0 and 1 in arithmetic."""
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int | float)
        return float(node.value)
    if isinstance(node, ast.Name):  # a column may have the name of a constant
        return np.asarray(values[node.id], np.float64) if node.id in values else CONSTANTS[node.id]
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)](*(_number(node, values) for node in (node.left, node.right)))
    if isinstance(node, ast.UnaryOp):
        operand = _number(node.operand, values)
        if isinstance(node.op, ast.Not):
            return np.equal(operand, 0.0)
        return np.negative(operand) if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.BoolOp):
        join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return _fold(join, [_number(one, values) != 0.0 for one in node.values])
    if isinstance(node, ast.Compare):
        sides = [_number(one, values) for one in (node.left, *node.comparators)]
        holds = [_COMPARISONS[type(op)](*sides[i : i + 2]) for i, op in enumerate(node.ops)]
        return _fold(np.logical_and, holds)
    if isinstance(node, ast.IfExp):
        test, one, other = (_number(part, values) for part in (node.test, node.body, node.orelse))
        return np.where(test != 0.0, one, other)
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return FUNCTIONS[node.func.id][2](*(_number(one, values) for one in node.args))


def _number(node: ast.expr, values: Values) -> Any:
    return np.asarray(_evaluate(node, values), np.float64)


def _fold(function: Callable[[Any, Any], Any], values: Iterable[Any]) -> Any:
    first, *rest = values
    for value in rest:
        first = function(first, value)
    return first
