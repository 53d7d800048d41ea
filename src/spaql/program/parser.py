"""Expressions that users write, over named columns, for costs and end conditions.

The text is parsed by Python's own parser, and only the kinds of nodes that are listed here have a form in
`spaql.program.ir`. There is no attribute, index, string, assignment, or call of anything but the functions of
`spaql.program.functions`; nothing is executed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError, nearest
from spaql.program.evaluate import Evaluator
from spaql.program.functions import CONSTANTS, FUNCTIONS
from spaql.program.ir import (
    All,
    Binary,
    Compare,
    Condition,
    Expression,
    Function,
    Name,
    Not,
    Number,
    Select,
    Some,
)

_LONGEST = 2_000
"""Most characters of an expression."""
_DEEPEST = 60
"""Most levels of nesting."""
_LARGEST = 10_000
"""Most operations: `a < b < c` has b twice, and such comparisons may be nested."""
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def parse(what: str, text: str, known: Iterable[str]) -> Expression:
    """Return the expression of a text over known names; raises `SettingError` for anything else.

    Parameters
    ----------
    what
        What it is for, in messages.

    Examples
    --------
    >>> parse("cost", "2 * speed", ["speed"])
    Binary(operator='*', left=Number(value=2.0), right=Name(name='speed'))
    """
    if not isinstance(text, str):
        raise SettingError(f"The {what} is {text!r}, and must be a text, such as 'abs(x) > 1'.")
    if len(text) > _LONGEST:
        raise SettingError(f"The {what} has {len(text):,} characters, and may have {_LONGEST:,}.")
    try:
        tree = _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise SettingError(f"The {what} {text!r} cannot be read: {reason}.") from None
    return _Parser(f"The {what} {text!r}", tuple(known)).number(tree, 0)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return the text of an expression, which was parsed before, with other names.

    Examples
    --------
    >>> renamed("sin(sin)", {"sin": "angle"})
    'sin(angle)'
    """
    return ast.unparse(_Renaming(names).visit(_tree(text)))


def _tree(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.args = [
            self.visit(argument) for argument in node.args
        ]  # a column may have the name of a function
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)


class _Parser:
    def __init__(self, subject: str, known: tuple[str, ...]) -> None:
        self._subject = subject
        self._known = known
        self._operations = 0

    def number(self, node: ast.expr, depth: int) -> Expression:
        """Return the expression of a node; one that holds or not is 1 or 0."""
        self._count(depth)
        match node:
            case ast.Constant(value=value):
                return Number(self._constant(value))
            case ast.Name(id=name):
                return self._name(name)
            case ast.BinOp(op=op) if type(op) in _OPERATORS:
                return Binary(_OPERATORS[type(op)], *self._numbers(depth, node.left, node.right))
            case ast.UnaryOp(op=ast.USub()):
                return Binary("-", Number(-0.0), *self._numbers(depth, node.operand))
            case ast.UnaryOp(op=ast.UAdd()):
                return self.number(node.operand, depth + 1)
            case ast.UnaryOp(op=ast.Not()) | ast.BoolOp() | ast.Compare():
                return Select(self.condition(node, depth), Number(1.0), Number(0.0))
            case ast.IfExp():
                test = self.condition(node.test, depth + 1)
                return Select(test, *self._numbers(depth, node.body, node.orelse))
            case ast.Call(func=ast.Name(id=name)):
                self._check_call(name, node)
                return Function(name, self._numbers(depth, *node.args))
        raise self._unknown(node)

    def condition(self, node: ast.expr, depth: int) -> Condition:
        """Return the condition of a node; a number other than 0 holds."""
        match node:
            case ast.UnaryOp(op=ast.Not()):
                self._count(depth)
                return Not(self.condition(node.operand, depth + 1))
            case ast.BoolOp():
                self._count(depth)
                parts = tuple(self.condition(value, depth + 1) for value in node.values)
                return All(parts) if isinstance(node.op, ast.And) else Some(parts)
            case ast.Compare():
                if not all(type(op) in _COMPARISONS for op in node.ops):
                    raise self._unknown(node)
                sides = (node.left, *node.comparators)
                parts = tuple(
                    Compare(_COMPARISONS[type(op)], *self._numbers(depth, *sides[i : i + 2]))
                    for i, op in enumerate(node.ops)
                )
                return All(parts) if len(parts) > 1 else parts[0]
        return Compare("!=", self.number(node, depth), Number(0.0))

    def _numbers(self, depth: int, *nodes: ast.expr) -> tuple[Expression, ...]:
        return tuple(self.number(node, depth + 1) for node in nodes)

    def _count(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise self._refusal(f"is nested more than {_DEEPEST} levels deep.")
        self._operations += 1
        if self._operations > _LARGEST:
            raise self._refusal(f"has more than {_LARGEST:,} operations.")

    def _constant(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refusal(f"holds {value!r}, which is no number.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._refusal("holds a number that is too large.")
        return number

    def _name(self, name: str) -> Expression:
        if name in self._known:  # a column may have the name of a constant
            return Name(name)
        if name in CONSTANTS:
            return Number(CONSTANTS[name])
        names = nearest(name, sorted({*self._known, *CONSTANTS}))
        raise self._refusal(f"uses {name!r}, which is none of its names: {names}")

    def _check_call(self, name: str, node: ast.Call) -> None:
        if name not in FUNCTIONS:
            raise self._refusal(f"calls {name}, which is no function here: {nearest(name, FUNCTIONS)}")
        fewest = FUNCTIONS[name].fewest
        most = FUNCTIONS[name].most
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if node.keywords or starred or not fewest <= len(node.args) <= (most or len(node.args)):
            count = f"{fewest}" if most == fewest else f"{fewest} or more"
            raise self._refusal(f"must give {name} {count} arguments, without names.")

    def _unknown(self, node: ast.expr) -> SettingError:
        return self._refusal(
            f"holds {ast.unparse(node)!r}, which is neither a number, a name, arithmetic, a comparison nor a "
            "function of numbers."
        )

    def _refusal(self, message: str) -> SettingError:
        return SettingError(f"{self._subject} {message}")


@dataclass(frozen=True)
class Formula:
    """An expression and its text.

    Examples
    --------
    >>> cost = Formula.parse("cost", "atan2(sin, cos)**2 + 0.1 * speed**2", ["cos", "sin", "speed"])
    >>> cost({"cos": np.array([1.0, 0.0]), "sin": np.zeros(2), "speed": np.array([0.0, 2.0])})
    array([0. , 0.4])
    """

    what: str
    """What it is for, in messages."""
    text: str
    expression: Expression

    @classmethod
    def parse(cls, what: str, text: str, known: Iterable[str]) -> Formula:
        """Return the formula of a text over known names; raises `SettingError` for anything else."""
        return cls(what, text, parse(what, text, known))

    def __call__(self, values: Mapping[str, NDArray[Any]], count: int | None = None) -> NDArray[np.float64]:
        """Return the value for each row, as floats; `count` is the number of rows of one without names."""
        columns = {name: np.asarray(column, np.float64) for name, column in values.items()}
        with np.errstate(all="ignore"):  # the caller checks what it gets: a branch not taken may divide by 0
            result = Evaluator(columns).number(self.expression)
        rows = len(next(iter(columns.values()))) if count is None else count
        return np.array(np.broadcast_to(result, (rows,)))

    def holds(self, values: Mapping[str, NDArray[Any]], count: int | None = None) -> NDArray[np.bool_]:
        """Return whether it holds, for each row; a number other than 0 holds."""
        return np.asarray(self(values, count) != 0.0)
