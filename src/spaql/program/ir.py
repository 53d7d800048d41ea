"""The intermediate representation: what a controller, a plant or an expression computes, as data.

Numbers are doubles, and every operation is rounded on its own, as in `spaql.kernels.controller`. A comparison
with NaN does not hold, but for `!=`. `docs/programs.md` has all of the semantics.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any


class Arithmetic:
    """The operators of what is computed with."""

    __slots__ = ()

    def operated(self, operator: str, first: Any, second: Any) -> Any:
        """Return the result of an operation, of which one operand is this object."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return self.operated("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.operated("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return self.operated("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.operated("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.operated("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.operated("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.operated("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.operated("/", other, self)


class Operand(Arithmetic):
    """An expression: its operators return expressions and conditions, and numbers stand for constants."""

    def operated(self, operator: str, first: Expression | float, second: Expression | float) -> Binary:
        """Return an operation."""
        return Binary(operator, expression(first), expression(second))

    def __lt__(self, other: Expression | float) -> Compare:
        return Compare("<", self, expression(other))  # type: ignore[arg-type]

    def __le__(self, other: Expression | float) -> Compare:
        return Compare("<=", self, expression(other))  # type: ignore[arg-type]

    def __gt__(self, other: Expression | float) -> Compare:
        return Compare(">", self, expression(other))  # type: ignore[arg-type]

    def __ge__(self, other: Expression | float) -> Compare:
        return Compare(">=", self, expression(other))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Number(Operand):
    """A finite constant."""

    value: float


@dataclass(frozen=True)
class Name(Operand):
    """The value of a variable."""

    name: str


@dataclass(frozen=True)
class Binary(Operand):
    """An operation of two numbers: `+`, `-`, `*` or `/`; in expressions of users also `%` or `**`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Function(Operand):
    """The value of a function of `spaql.program.functions`; controllers use none."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Select(Operand):
    """One of two numbers, by a condition; controllers use none."""

    condition: Condition
    then: Expression
    otherwise: Expression


Expression = Number | Name | Binary | Function | Select


@dataclass(frozen=True)
class Compare:
    """Whether one number is below or above another, or equal, which is never so for NaN; or differs (!=)."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Flag:
    """The value of a truth variable."""

    name: str


@dataclass(frozen=True)
class IsLeaf:
    """Whether the leaf is the one with this number."""

    number: int


@dataclass(frozen=True)
class Not:
    """The negation of a condition."""

    of: Condition


@dataclass(frozen=True)
class All:
    """Whether all of some conditions hold, one at least."""

    of: tuple[Condition, ...]


@dataclass(frozen=True)
class Some:
    """Whether one of some conditions holds, of one at least."""

    of: tuple[Condition, ...]


Condition = Compare | Flag | IsLeaf | Not | All | Some


@dataclass(frozen=True)
class Note:
    """A comment."""

    text: str


@dataclass(frozen=True)
class Assign:
    """Set a number."""

    name: str
    value: Expression


@dataclass(frozen=True)
class SetFlag:
    """Set a truth variable."""

    name: str
    value: Condition | bool


@dataclass(frozen=True)
class SetLeaf:
    """Set the leaf to a number."""

    number: int


@dataclass(frozen=True)
class If:
    """Statements for a condition that holds, and for one that does not."""

    condition: Condition
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Call:
    """Set numbers by the outputs of a part of the program, which is a function of its own."""

    part: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]


Statement = Note | Assign | SetFlag | SetLeaf | If | Call


@dataclass(frozen=True)
class State:
    """A variable that is kept between samples, in the order of the memory in the kernels."""

    name: str
    reset: float
    """Its value at a reset: of a flag 0 or 1, of the leaf its number, -1 for none."""
    kind: str = "real"
    """"real", "flag" or "leaf"."""
    note: str = ""


@dataclass(frozen=True)
class Program:
    """One sample of a controller."""

    inputs: tuple[str, ...]
    """The numbers of the observation, as doubles."""
    outputs: tuple[str, ...]
    """The numbers of the action, as doubles."""
    state: tuple[State, ...]
    numbers: tuple[str, ...]
    """Further variables: numbers."""
    flags: tuple[str, ...]
    """Further variables: truth values."""
    statements: tuple[Statement, ...]
    manual: tuple[str, ...] = ()
    """Further inputs: the actions given by hand while the truth variable `manual`, an input too, is set;
    empty without manual mode."""

    @cached_property
    def read(self) -> frozenset[str]:
        """The numbers that are read anywhere."""
        return frozenset(names_in(self.statements))


def digest(program: Program, parts: Mapping[str, Program]) -> str:
    """Return the SHA-256 of a program, with the parts that it calls; comments do not count.

    Examples
    --------
    >>> half, third = (Program(("x",), ("y",), (), (), (), (Assign("y", Number(c)),)) for c in (1 / 2, 1 / 3))
    >>> digest(half, {}) == digest(third, {})
    False
    """
    return hashlib.sha256(repr([_content(program), _content(tuple(parts.items()))]).encode()).hexdigest()


def _content(part: object) -> object:
    """Return nested lists of what a program is made of, without comments."""
    if isinstance(part, tuple):
        return [_content(item) for item in part if not isinstance(item, Note)]
    if isinstance(part, str | int | float):
        return part
    named = {name: _content(value) for name, value in vars(part).items() if name != "note"}
    return [type(part).__name__, named]


def expression(value: Expression | float) -> Expression:
    """Return a constant as an expression, and an expression as it is."""
    return value if isinstance(value, Operand) else Number(value)


def weighted(weights: Sequence[float | Name], names: Sequence[str], start: float | Name = 0.0) -> Expression:
    """Return a number plus a weighted sum, added one term after the other; terms of 0 are left out.

    Examples
    --------
    >>> weighted([2.0, 0.0], ["x", "y"]) == 2.0 * Name("x")
    True
    """
    terms: list[Expression] = [expression(start)] if start != 0.0 else []
    for weight, name in zip(weights, names, strict=True):
        if weight != 0.0:
            terms.append(Name(name) if weight == 1.0 else expression(weight) * Name(name))
    total: Expression = terms[0] if terms else Number(0.0)
    for term in terms[1:]:
        total = total + term
    return total


def clamped(name: str, low: Expression | None, high: Expression | None) -> Iterator[Statement]:
    """Yield the statements that bring a number into a range; an end that is None is not there."""
    if low is not None:
        yield If(Name(name) < low, (Assign(name, low),))
    if high is not None:
        yield If(Name(name) > high, (Assign(name, high),))


def names_in(node: object) -> Iterator[str]:
    """Yield the names of numbers that are read in statements, conditions or expressions."""
    if isinstance(node, Name):
        yield node.name
    elif isinstance(node, tuple):
        for part in node:
            yield from names_in(part)
    elif isinstance(node, Binary | Compare):
        yield from names_in((node.left, node.right))
    elif isinstance(node, Not | All | Some):
        yield from names_in(node.of)
    elif isinstance(node, Function):
        yield from names_in(node.arguments)
    elif isinstance(node, Select):
        yield from names_in((node.condition, node.then, node.otherwise))
    elif isinstance(node, Assign | SetFlag):
        yield from names_in(node.value)
    elif isinstance(node, If):
        yield from names_in((node.condition, node.then, node.otherwise))
    elif isinstance(node, Call):
        yield from node.arguments
