"""Expressions as functions of numbers that kernels can call.

The source of such a function is written from expressions, one statement for each operation: no part of a
user's text is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from spaql.kernels.jit import callable_by_kernels
from spaql.program.functions import FUNCTIONS, OPERATORS
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

_CALLED = [*OPERATORS.values(), *(form.function for form in FUNCTIONS.values())]


class FunctionSource:
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
        match expression:
            case Number(value):
                return self.set(repr(value))
            case Name(name):
                return self.set(self._places[name])
            case Binary(operator, left, right):
                x = self.add(left)
                y = self.add(right)
                infix = operator in ("+", "-", "*")
                return self.set(f"{x} {operator} {y}") if infix else self._call(OPERATORS[operator], x, y)
            case Function(name, arguments):
                form = FUNCTIONS[name]
                values = [self.add(argument) for argument in arguments]
                if form.most is None:
                    return reduce(lambda x, y: self._call(form.function, x, y), values)
                return self._call(form.function, *values)
            case Select(condition, then, otherwise):
                test = self.condition(condition)
                x = self.add(then)
                y = self.add(otherwise)
                return self.set(f"{x} if {test} else {y}")

    def condition(self, condition: Condition) -> str:
        """Write what a condition compares; returns the condition."""
        match condition:
            case Compare(operator, left, right):
                return f"{self.add(left)} {operator} {self.add(right)}"
            case Not(of):
                return f"not ({self.condition(of)})"
            case All(of) | Some(of):
                word = " and " if isinstance(condition, All) else " or "
                return word.join(f"({self.condition(part)})" for part in of)
        raise TypeError(f"{condition} is none of an expression.")

    def set(self, value: str) -> str:
        """Write a variable that holds a value; returns its name."""
        self.lines.append(f"x{len(self.lines)} = {value}")
        return f"x{len(self.lines) - 1}"

    def function(self, name: str, parameters: str, returned: str) -> Callable[..., Any]:
        """Return the function of the statements, which kernels can call."""
        body = "".join(f"    {line}\n" for line in (*self.lines, f"return {returned}"))
        namespace: dict[str, Any] = {called.__name__: called for called in _CALLED}
        exec(compile(f"def {name}({parameters}):\n{body}", f"<{name}>", "exec"), namespace)
        function: Callable[..., Any] = namespace[name]
        return callable_by_kernels(function)

    def _call(self, function: Callable[..., Any], *arguments: str) -> str:
        return self.set(f"{function.__name__}({', '.join(arguments)})")
