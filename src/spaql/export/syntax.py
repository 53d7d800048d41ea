"""How a language writes the statements of a program: forms to fill in, and methods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from spaql.languages import in_comment
from spaql.program.ir import (
    All,
    Assign,
    Binary,
    Call,
    Compare,
    Condition,
    Expression,
    Flag,
    If,
    IsLeaf,
    Name,
    Not,
    Note,
    Number,
    Program,
    SetFlag,
    SetLeaf,
    Some,
    State,
    Statement,
)


class Syntax:
    """How a language writes expressions and statements; the forms here are those of many languages."""

    conjunction = "&&"
    disjunction = "||"
    negation = "!({})"
    unequal = "!="
    truths = ("false", "true")
    flag = "{}"
    """Whether a truth variable is set."""
    in_leaf = "self.leaf == {}"
    """Whether the leaf has a number."""
    assignment = "{} = {};"
    call = "[{outputs}] = {part}({arguments});"
    """Set numbers by the outputs of a part of the program."""
    comment = "// {}"
    opening = "if ({}) {{"
    further = "}} else if ({}) {{"
    """The line before the statements of a condition, and the same after others of its chain."""
    otherwise = "} else {"
    no_other_case = ""
    """What stands in the last branch of a chain of several conditions that has none; empty for no branch."""
    end = "}"
    """The line after a chain of conditions; empty for none."""
    reserved = ""
    """Words that no variable may have: they get an underscore."""
    kept = "{}"
    """How a variable of the state is written."""
    widened = "{}"
    """How a single-precision input is written as a double."""

    def __init__(self, program: Program, singles: Collection[str] = ()) -> None:
        """`singles` are inputs of single precision: they are compared with constants as they are."""
        self._kept = {variable.name for variable in program.state}
        self._singles = frozenset(singles)
        self.outputs = self.plain(program.outputs)

    def plain(self, names: Sequence[str]) -> list[str]:
        """Return variables that are not of the state."""
        reserved = self.reserved.split()
        return [f"{name}_" if name in reserved else name for name in names]

    def name(self, name: str) -> str:
        """Return a variable."""
        if name in self._kept:
            return self.kept.format(name)
        (word,) = self.plain([name])
        return self.widened.format(word) if name in self._singles else word

    def number(self, x: float) -> str:
        """Return a constant."""
        return repr(x)

    def single(self, x: float) -> str:
        """Return a constant of single precision."""
        return self.number(x)

    def value(self, variable: State) -> str:
        """Return the value of a variable of the state at a reset."""
        if variable.kind == "flag":
            return self.truths[int(variable.reset)]
        return str(int(variable.reset)) if variable.kind == "leaf" else self.number(variable.reset)

    def assigned(self, name: str, value: str) -> str:
        """Return an assignment."""
        return self.assignment.format(name, value)

    def set(self, statement: Assign) -> str:
        """Return the statement that sets a number."""
        return self.assigned(self.name(statement.name), self.expression(statement.value))

    def called(self, call: Call) -> str:
        """Return the statement that sets numbers by the outputs of a part of the program."""
        arguments, outputs = (", ".join(self.plain(names)) for names in (call.arguments, call.outputs))
        return self.call.format(part=call.part, arguments=arguments, outputs=outputs)

    def compared(self, compare: Compare) -> str:
        """Return a comparison."""
        left = compare.left
        operator = self.unequal if compare.operator == "!=" else compare.operator
        if isinstance(left, Name) and left.name in self._singles:
            (word,) = self.plain([left.name])
            if isinstance(compare.right, Number):
                return f"{word} {operator} {self.single(single_bound(operator, compare.right.value))}"
            if left == compare.right:
                return f"{word} {operator} {word}"
        first, second = (self.expression(part, inner=True) for part in (left, compare.right))
        return f"{first} {operator} {second}"

    def expression(self, expression: Expression, *, inner: bool = False) -> str:
        """Return an expression; an inner one stands in parentheses."""
        if isinstance(expression, Number):
            return self.number(expression.value)
        if isinstance(expression, Name):
            return self.name(expression.name)
        assert isinstance(expression, Binary)
        left, right = (self.expression(part, inner=True) for part in (expression.left, expression.right))
        return f"({left} {expression.operator} {right})" if inner else f"{left} {expression.operator} {right}"

    def condition(self, condition: Condition, *, inner: bool = False) -> str:
        """Return a condition; an inner one stands in parentheses."""
        if isinstance(condition, Not):
            return self.negation.format(self.condition(condition.of))
        if isinstance(condition, All | Some) and len(condition.of) == 1:
            return self.condition(condition.of[0], inner=inner)
        if isinstance(condition, Flag):
            text = self.flag.format(self.name(condition.name))
        elif isinstance(condition, IsLeaf):
            text = self.in_leaf.format(condition.number)
        elif isinstance(condition, Compare):
            text = self.compared(condition)
        else:
            word = self.conjunction if isinstance(condition, All) else self.disjunction
            text = f" {word} ".join(self.condition(part, inner=True) for part in condition.of)
        return f"({text})" if inner else text

    def lines(self, statements: Sequence[Statement], level: int) -> Iterator[str]:
        """Yield the lines of statements."""
        indent = "    " * level
        for statement in statements:
            if isinstance(statement, Note):
                yield indent + self.comment.format(in_comment(statement.text))
            elif isinstance(statement, Assign):
                yield indent + self.set(statement)
            elif isinstance(statement, SetFlag):
                value = statement.value
                text = self.truths[value] if isinstance(value, bool) else self.condition(value)
                yield indent + self.assigned(self.name(statement.name), text)
            elif isinstance(statement, SetLeaf):
                yield indent + self.assigned(self.name("leaf"), str(statement.number))
            elif isinstance(statement, Call):
                yield indent + self.called(statement)
            else:
                yield from self._chain(statement, level)

    def _chain(self, first: If, level: int) -> Iterator[str]:
        """Yield a condition with its alternatives, those that are conditions in the same chain."""
        indent = "    " * level
        opening = self.opening
        rest: tuple[Statement, ...] = (first,)
        while len(rest) == 1 and isinstance(rest[0], If):
            chained = rest[0]
            yield indent + opening.format(self.condition(chained.condition))
            yield from self.lines(chained.then, level + 1)
            rest = chained.otherwise
            opening = self.further
        if rest:
            yield indent + self.otherwise
            yield from self.lines(rest, level + 1)
        elif self.no_other_case and first.otherwise:
            yield from (indent + self.otherwise, f"{indent}    {self.no_other_case}")
        if self.end:
            yield indent + self.end


def single_bound(operator: str, x: float) -> float:
    """Return the single-precision number that stands for a constant in a comparison.

    Every single-precision number compares with it as with the constant.

    Examples
    --------
    >>> single_bound("<", 0.1) > 0.1, single_bound(">", 0.1) < 0.1
    (True, True)
    """
    up = operator in ("<", ">=")
    with np.errstate(over="ignore"):
        near = np.float32(x)
        if float(near) < x if up else float(near) > x:
            near = np.nextafter(near, np.float32(np.inf if up else -np.inf))
    return float(near)
