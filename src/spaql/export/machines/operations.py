"""How many operations a decision takes at most, counted in the program and not measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spaql.program.ir import (
    All,
    Assign,
    Binary,
    Call,
    Compare,
    Flag,
    If,
    IsLeaf,
    Not,
    Program,
    SetFlag,
    Some,
)


@dataclass(frozen=True)
class Operations:
    """Counts of operations on numbers and truth values."""

    comparisons: int = 0
    additions: int = 0
    """And subtractions."""
    multiplications: int = 0
    divisions: int = 0

    def __add__(self, other: Operations) -> Operations:
        return Operations(*(a + b for a, b in zip(_counts(self), _counts(other), strict=True)))

    def __or__(self, other: Operations) -> Operations:
        """Return the larger of each count."""
        return Operations(*map(max, _counts(self), _counts(other)))


def _counts(one: Operations) -> tuple[int, int, int, int]:
    return one.comparisons, one.additions, one.multiplications, one.divisions


def most_operations(program: Program, parts: Mapping[str, Program]) -> Operations:
    """Return how often each operation is done at most in a sample.

    It is the longest of all paths through the statements, also of those that no sample takes.
    """
    counted: dict[str, Operations] = {}
    for name, part in parts.items():  # each before those that call it
        counted[name] = _statements(part.statements, counted)
    return _statements(program.statements, counted)


def _statements(given: Iterable[object], parts: Mapping[str, Operations]) -> Operations:
    return sum((_operations(part, parts) for part in given), Operations())


def _operations(given: object, parts: Mapping[str, Operations]) -> Operations:
    if isinstance(given, Binary):
        kinds = {"+": Operations(0, 1), "-": Operations(0, 1), "*": Operations(0, 0, 1)}
        sides = _statements((given.left, given.right), parts)
        return kinds.get(given.operator, Operations(0, 0, 0, 1)) + sides
    if isinstance(given, Compare):
        return Operations(1) + _statements((given.left, given.right), parts)
    if isinstance(given, Flag | IsLeaf):
        return Operations(1)
    if isinstance(given, Not):
        return _operations(given.of, parts)
    if isinstance(given, All | Some):
        return _statements(given.of, parts)
    if isinstance(given, Assign | SetFlag):
        return _operations(given.value, parts)
    if isinstance(given, Call):
        return parts[given.part]
    if isinstance(given, If):
        sides = _statements(given.then, parts) | _statements(given.otherwise, parts)
        return _operations(given.condition, parts) + sides
    return Operations()
