"""How C writes the statements of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

import numpy as np

from spaql.export.language import LanguageSyntax
from spaql.export.languages.c_tables import walk
from spaql.languages import C as WORDS
from spaql.languages import in_comment
from spaql.program.ir import All, Binary, Expression, If, Program, SetFlag, Some, Statement, Walk

_LARGEST_SINGLE = 3.4028234663852886e38


class CSyntax(LanguageSyntax):
    """C; the variables of the state are in a struct. Numbers are `real`."""

    words = MappingProxyType({All: "&&", Some: "||"})
    otherwise = "} else {"
    end = "}"
    kept = "state->{}"
    reserved = f"{WORDS} action observation state rounded place x column threshold next offset gain"

    def __init__(self, program: Program, real: str, used: set[str], *, direct: bool = False) -> None:
        """What is `used` of "rounded", "tables" and "infinity" is added to the set."""
        super().__init__(program)
        self.real = real
        self.used = used
        self._direct: dict[str, str] = {}
        if direct:  # the outputs are written where they go
            self._direct = {word: f"action[{k}]" for k, word in enumerate(program.outputs)}
            self.outputs = list(self._direct.values())

    def name(self, name: str) -> str:
        """Return a variable."""
        return self._direct.get(name) or super().name(name)

    def number(self, x: float) -> str:
        """Return a constant."""
        if np.isinf(x):
            self.used.add("infinity")
        return literal(x, self.real)

    def expression(self, expression: Expression, *, inner: bool = False) -> str:
        """Return an expression, in which every product is rounded on its own."""
        if isinstance(expression, Binary) and expression.operator == "*":
            self.used.add("rounded")
            return f"rounded({super().expression(expression)})"
        return super().expression(expression, inner=inner)

    def flag(self, name: str) -> str:
        """Return whether a truth variable is set."""
        return f"{self.name(name)} != 0"

    def is_leaf(self, number: int) -> str:
        """Return the question whether the leaf has a number."""
        return f"state->leaf == {number}"

    def note(self, text: str) -> str:
        """Return a comment."""
        return f"/* {in_comment(text)} */"

    def truth(self, value: str | bool) -> str:
        """Return the value of a truth variable."""
        return f"{int(value)}" if isinstance(value, bool) else f"({value}) ? 1 : 0"

    def opening(self, condition: str, *, further: bool) -> str:
        """Return the line before the statements of a condition."""
        return f"{'} else if' if further else 'if'} ({condition}) {{"

    def called(self, part: str, arguments: Sequence[str], outputs: Sequence[str]) -> str:
        """Return the statement that sets numbers by the outputs of a part of the program."""
        passed = [*self.plain(arguments), *(f"&{self.name(word)}" for word in outputs)]
        return f"{part}({', '.join(passed)});"

    def walked(self, statement: Walk) -> Iterator[str]:
        """Yield the lines that look up in a table."""
        self.used |= {"tables", "rounded"} if statement.terms else {"tables"}
        return walk(self, statement)


class MisraSyntax(CSyntax):
    """C in which every chain of conditions ends with `else`, and conditions are not assigned."""

    def lines(self, statements: Sequence[Statement], level: int) -> Iterator[str]:
        """Yield the lines of statements."""
        return super().lines([_branched(statement) for statement in statements], level)

    def _chain(self, first: If, level: int) -> Iterator[str]:
        *lines, end = super()._chain(first, level)
        yield from lines
        indent = "    " * level
        chained, otherwise = (f"{indent}{text}" for text in ("} else if", self.otherwise))
        if any(line.startswith(chained) for line in lines) and otherwise not in lines:
            yield from (otherwise, f"{indent}    /* no other case */")
        yield end


def _branched(statement: Statement) -> Statement:
    """Return a statement that sets a truth variable by a condition as one with two branches."""
    if not isinstance(statement, SetFlag) or isinstance(statement.value, bool):
        return statement
    yes, no = (SetFlag(statement.name, value) for value in (True, False))
    return If(statement.value, (yes,), (no,))


def literal(x: float, real: str) -> str:
    """Return a constant of a type; infinity is that of <math.h>, of single numbers too."""
    if real == "int32_t":
        return str(int(x))
    if not np.isfinite(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    if real == "double":
        return repr(x)
    text = str(np.float32(min(max(x, -_LARGEST_SINGLE), _LARGEST_SINGLE)))  # the fewest digits
    return f"{text}{'' if any(c in text for c in '.en') else '.0'}f"
