"""Programs in languages with statements: the parts that differ are methods of a `Syntax`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

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
    SetFlag,
    SetLeaf,
    Some,
    Statement,
    Walk,
)


class Syntax(ABC):
    """How a language writes expressions and statements."""

    words: Mapping[type[All] | type[Some], str]
    """The operators that join conditions."""

    @abstractmethod
    def number(self, x: float) -> str:
        """Return a constant."""

    @abstractmethod
    def name(self, name: str) -> str:
        """Return a variable."""

    @abstractmethod
    def negated(self, condition: str) -> str:
        """Return the negation of a condition."""

    @abstractmethod
    def is_leaf(self, number: int) -> str:
        """Return the question whether the leaf has a number."""

    @abstractmethod
    def note(self, text: str) -> str:
        """Return a comment."""

    @abstractmethod
    def assigned(self, name: str, value: str) -> str:
        """Return an assignment."""

    @abstractmethod
    def truth(self, value: str | bool) -> str:
        """Return the value of a truth variable."""

    @abstractmethod
    def opening(self, condition: str, *, further: bool) -> str:
        """Return the line before the statements of a condition; `further` after others of the same chain."""

    otherwise: str
    end: str
    """The line after a chain of conditions; empty for none."""

    def called(self, part: str, arguments: Sequence[str], outputs: Sequence[str]) -> str:
        """Return the statement that sets numbers by the outputs of a part of the program."""
        raise NotImplementedError(f"{part} cannot be called: this language has no parts of programs.")

    def walked(self, walk: Walk) -> Iterator[str]:
        """Yield the lines that look up in a table."""
        raise NotImplementedError("This language has no tables of rules.")

    def assignment(self, statement: Assign) -> str:
        """Return the statement that sets a number."""
        return self.assigned(self.name(statement.name), self.expression(statement.value))

    def compared(self, compare: Compare) -> str:
        """Return a comparison."""
        left, right = (self.expression(part, inner=True) for part in (compare.left, compare.right))
        return f"{left} {compare.operator} {right}"

    def flag(self, name: str) -> str:
        """Return whether a truth variable is set."""
        return self.name(name)

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
            return self.negated(self.condition(condition.of))
        if isinstance(condition, All | Some) and len(condition.of) == 1:
            return self.condition(condition.of[0], inner=inner)
        if isinstance(condition, Flag):
            text = self.flag(condition.name)
        elif isinstance(condition, IsLeaf):
            text = self.is_leaf(condition.number)
        elif isinstance(condition, Compare):
            text = self.compared(condition)
        else:
            parts = [self.condition(part, inner=True) for part in condition.of]
            text = f" {self.words[type(condition)]} ".join(parts)
        return f"({text})" if inner else text

    def lines(self, statements: Sequence[Statement], level: int) -> Iterator[str]:
        """Yield the lines of statements."""
        indent = "    " * level
        for statement in statements:
            if isinstance(statement, Note):
                yield indent + self.note(statement.text)
            elif isinstance(statement, Assign):
                yield indent + self.assignment(statement)
            elif isinstance(statement, SetFlag):
                value = statement.value
                text = self.truth(value if isinstance(value, bool) else self.condition(value))
                yield indent + self.assigned(self.name(statement.name), text)
            elif isinstance(statement, SetLeaf):
                yield indent + self.assigned(self.name("leaf"), str(statement.number))
            elif isinstance(statement, Call):
                yield indent + self.called(statement.part, statement.arguments, statement.outputs)
            elif isinstance(statement, Walk):
                yield from ((indent + line).rstrip() for line in self.walked(statement))
            else:
                yield from self._chain(statement, level)

    def _chain(self, first: If, level: int) -> Iterator[str]:
        """Yield a condition with its alternatives, those that are conditions in the same chain."""
        indent = "    " * level
        further = False
        rest: tuple[Statement, ...] = (first,)
        while len(rest) == 1 and isinstance(rest[0], If):
            chained = rest[0]
            yield indent + self.opening(self.condition(chained.condition), further=further)
            yield from self.lines(chained.then, level + 1)
            rest = chained.otherwise
            further = True
        if rest:
            yield indent + self.otherwise
            yield from self.lines(rest, level + 1)
        if self.end:
            yield indent + self.end
