"""How C writes the statements of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spaql.export.syntax import Syntax
from spaql.languages import C as WORDS
from spaql.program.ir import Binary, Call, Expression, If, Program, SetFlag, Statement

_LARGEST_SINGLE = 3.4028234663852886e38


class CSyntax(Syntax):
    """C; the variables of the state are in a struct. Numbers are `real`.

    By MISRA C:2012, every chain of conditions ends with `else`, and conditions are not assigned.
    """

    truths = ("0", "1")
    flag = "{} != 0"
    in_leaf = "state->leaf == {}"
    comment = "/* {} */"
    no_other_case = comment.format("no other case")
    kept = "state->{}"
    reserved = f"{WORDS} action observation state rounded"

    def __init__(self, program: Program, real: str, used: set[str], *, direct: bool = False) -> None:
        """If products are rounded by the function, "rounded" is added to what is `used`."""
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
        if self.real == "int32_t":
            return str(int(x))
        if self.real == "double":
            return repr(x)
        text = str(np.float32(min(max(x, -_LARGEST_SINGLE), _LARGEST_SINGLE)))  # the fewest digits
        return f"{text}{'' if any(c in text for c in '.en') else '.0'}f"

    def expression(self, expression: Expression, *, inner: bool = False) -> str:
        """Return an expression, in which every product is rounded on its own."""
        if isinstance(expression, Binary) and expression.operator == "*":
            self.used.add("rounded")
            return f"rounded({super().expression(expression)})"
        return super().expression(expression, inner=inner)

    def called(self, call: Call) -> str:
        """Return the statement that sets numbers by the outputs of a part of the program."""
        passed = [*self.plain(call.arguments), *(f"&{self.name(word)}" for word in call.outputs)]
        return f"{call.part}({', '.join(passed)});"

    def lines(self, statements: Sequence[Statement], level: int) -> Iterator[str]:
        """Yield the lines of statements."""
        return super().lines([_branched(statement) for statement in statements], level)


def _branched(statement: Statement) -> Statement:
    """Return a statement that sets a truth variable by a condition as one with two branches."""
    if not isinstance(statement, SetFlag) or isinstance(statement.value, bool):
        return statement
    yes, no = (SetFlag(statement.name, value) for value in (True, False))
    return If(statement.value, (yes,), (no,))
