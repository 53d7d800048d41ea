"""Programs and expressions evaluated one operation at a time: the slow and obvious reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.program.functions import COMPARISONS, FUNCTIONS, OPERATORS
from spaql.program.ir import (
    All,
    Assign,
    Binary,
    Call,
    Compare,
    Condition,
    Expression,
    Flag,
    Function,
    If,
    IsLeaf,
    Name,
    Not,
    Note,
    Number,
    Program,
    Select,
    SetFlag,
    SetLeaf,
    Some,
    Statement,
)


class Evaluator:
    """The values of expressions and conditions, for all rows of arrays, or for numbers.

    Parameters
    ----------
    values
        Of the variables: arrays, floats of NumPy, or symbols of `spaql.program.symbols`.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)

    def number(self, expression: Expression) -> Any:
        """Return the value of an expression."""
        match expression:
            case Number(value):
                return np.float64(value)
            case Name(name):
                return self.values[name]
            case Binary(operator, left, right):
                return self.computed(OPERATORS[operator], self.number(left), self.number(right))
            case Function(name, arguments):
                form = FUNCTIONS[name]
                values = map(self.number, arguments)
                if form.most is None:
                    return reduce(partial(self.computed, form.function), values)
                return self.computed(form.function, *values)
            case Select(condition, then, otherwise):
                holds = self.holds(condition)
                if isinstance(holds, np.ndarray):
                    return np.where(holds, self.number(then), self.number(otherwise))
                return self.number(then if holds else otherwise)

    def holds(self, condition: Condition) -> Any:
        """Return whether a condition holds."""
        match condition:
            case Compare(operator, left, right):
                return COMPARISONS[operator](self.number(left), self.number(right))
            case Flag(name):
                return self.values[name]
            case IsLeaf(number):
                return self.values["leaf"] == number
            case Not(of):
                return np.logical_not(self.holds(of))
            case All(of):
                return self._joined(np.logical_and, of)
            case Some(of):
                return self._joined(np.logical_or, of)

    def computed(self, function: Callable[..., Any], *values: Any) -> Any:
        """Return the value of a function or an operator."""
        return function(*values)

    def _joined(self, join: np.ufunc, conditions: Sequence[Condition]) -> Any:
        """Return the conjunction or disjunction of conditions; those that cannot change it are not asked."""
        result = self.holds(conditions[0])
        for condition in conditions[1:]:
            if np.any(result == join.identity):
                result = join(result, self.holds(condition))
        return result


class Interpreter(Evaluator):
    """A program that is run sample by sample; its state is in `values`.

    Parameters
    ----------
    parts
        The programs that it calls, by name.

    Examples
    --------
    >>> from spaql.program.ir import State
    >>> total = Assign("sum", Name("sum") + Name("x"))
    >>> copied = Assign("y", Name("sum"))
    >>> adder = Interpreter(Program(("x",), ("y",), (State("sum", 0.0),), (), (), (total, copied)))
    >>> [adder([x])[0].item() for x in (1.0, 2.5)]
    [1.0, 3.5]
    """

    def __init__(self, program: Program, parts: Mapping[str, Program] = MappingProxyType({})) -> None:
        super().__init__({})
        self._program = program
        self._parts = parts
        self.reset()

    def reset(self) -> None:
        """Forget everything, before the first sample."""
        kinds = {"real": np.float64, "flag": bool, "leaf": int}
        for variable in self._program.state:
            self.values[variable.name] = kinds[variable.kind](variable.reset)

    def __call__(self, inputs: Iterable[Any]) -> list[Any]:
        """Return the outputs of a sample.

        With manual mode, the inputs end with the actions that are given by hand and with whether they hold.
        """
        program = self._program
        names = (*program.inputs, *program.manual, *["manual"] * bool(program.manual))
        for name, x in zip(names, inputs, strict=True):
            self.values[name] = np.float64(x) if isinstance(x, int | float) else x
        with np.errstate(all="ignore"):
            self._run(program.statements)
        return [self.values[name] for name in program.outputs]

    def _run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            match statement:
                case Assign(name, value):
                    self.values[name] = self.number(value)
                case SetFlag(name, value):
                    self.values[name] = value if isinstance(value, bool) else self.holds(value)
                case SetLeaf(number):
                    self.values["leaf"] = number
                case If(condition, then, otherwise):
                    self._run(then if self.holds(condition) else otherwise)
                case Call(part, arguments, names):
                    called = type(self)(self._parts[part], self._parts)
                    outputs = called([self.values[name] for name in arguments])
                    self.values.update(zip(names, outputs, strict=True))
                case Note():
                    pass


class RowsInterpreter(Evaluator):
    """Programs of one sample, each run for all rows of arrays at once; their variables are in `values`."""

    def run(self, statements: Sequence[Statement], rows: NDArray[np.bool_]) -> None:
        """Run statements that call no parts, in some of the rows."""
        for statement in statements if rows.any() else ():
            match statement:
                case Assign(name, value):
                    self._set(name, self.number(value), rows)
                case SetFlag(name, value):
                    self._set(name, value if isinstance(value, bool) else self.holds(value), rows)
                case SetLeaf(number):
                    self._set("leaf", number, rows)
                case If(condition, then, otherwise):
                    holds = self.holds(condition)
                    self.run(then, rows & holds)
                    self.run(otherwise, rows & ~holds)

    def _set(self, name: str, value: Any, rows: NDArray[np.bool_]) -> None:
        self.values[name] = np.where(rows, value, self.values.get(name, value))
