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


def _counts(operations: Operations) -> tuple[int, int, int, int]:
    return operations.comparisons, operations.additions, operations.multiplications, operations.divisions


def most_operations(program: Program, parts: Mapping[str, Program]) -> Operations:
    """Return how often each operation is done at most in a sample.

    It is the longest of all paths through the statements, also of those that no sample takes.
    """
    counted: dict[str, Operations] = {}
    for name, part in parts.items():  # each before those that call it
        counted[name] = _statements(part.statements, counted)
    return _statements(program.statements, counted)


def _statements(statements: Iterable[object], parts: Mapping[str, Operations]) -> Operations:
    return sum((_operations(part, parts) for part in statements), Operations())


def _operations(node: object, parts: Mapping[str, Operations]) -> Operations:
    if isinstance(node, Binary):
        kinds = {"+": Operations(0, 1), "-": Operations(0, 1), "*": Operations(0, 0, 1)}
        sides = _statements((node.left, node.right), parts)
        return kinds.get(node.operator, Operations(0, 0, 0, 1)) + sides
    if isinstance(node, Compare):
        return Operations(1) + _statements((node.left, node.right), parts)
    if isinstance(node, Flag | IsLeaf):
        return Operations(1)
    if isinstance(node, Not):
        return _operations(node.of, parts)
    if isinstance(node, All | Some):
        return _statements(node.of, parts)
    if isinstance(node, Assign | SetFlag):
        return _operations(node.value, parts)
    if isinstance(node, Call):
        return parts[node.part]
    if isinstance(node, If):
        sides = _statements(node.then, parts) | _statements(node.otherwise, parts)
        return _operations(node.condition, parts) + sides
    return Operations()
