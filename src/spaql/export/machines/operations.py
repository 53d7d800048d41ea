"""How many operations a decision takes at most, counted in the rules and not measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from spaql.export.conditions import terms
from spaql.export.memory.program import (
    All,
    Assign,
    Binary,
    Compare,
    Flag,
    If,
    IsLeaf,
    Not,
    Program,
    SetFlag,
    Some,
)
from spaql.export.target_controller import MachineController
from spaql.policy import Laws


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


def most_operations(controller: MachineController) -> Operations:
    """Return the largest count of each operation over all leaves of a rule tree, tests of NaN included.

    They are those of the form "rules"; loops of the form "table" have further ones to control them.

    Examples
    --------
    >>> from gymnasium.spaces import Box, Discrete
    >>> from spaql.export.target_controller import controller_of
    >>> from spaql.policy import Choices, RuleTree
    >>> tree = RuleTree(
    ...     [0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [-1, 0, 1],
    ...     Choices(np.array([0, 1])), Box(-1.0, 1.0, (1,)), Discrete(2),
    ... )
    >>> most_operations(controller_of(tree))
    Operations(comparisons=2, additions=0, multiplications=0, divisions=0)
    """
    tree = controller.tree
    depth, most = np.zeros(tree.n_nodes, np.int64), Operations()
    for node in range(tree.n_nodes):  # children come after their parents
        if tree.feature[node] < 0:
            most |= Operations(int(depth[node])) + _leaf(controller, int(tree.leaf[node]))
            continue
        for child in (tree.left[node], tree.right[node]):
            depth[child] = max(depth[child], depth[node] + 1)
    start = Operations(0 if controller.number.name == "fixed" else tree.dims)
    for weights in tree.combinations:
        n = len(terms(weights))
        start += Operations(additions=max(0, n - 1), multiplications=n)
    return start + most


def _leaf(controller: MachineController, row: int) -> Operations:
    """Return the operations of a leaf: each law is cut by three comparisons, and each score has one."""
    laws = controller.tree.leaves
    if isinstance(laws, Laws):
        gains, comparisons = list(laws.gain[row]), 3 * len(laws.gain[row])
    else:
        gains = [gain for _, _, gain in controller.scores(row)]
        comparisons = len(gains)
    n = sum(len(terms(gain)) for gain in gains)
    return Operations(comparisons, n, n)


def most_operations_of_sample(program: Program) -> Operations:
    """Return how often each operation is done at most in a sample of a controller with memory.

    It is the longest of all paths through the statements, also of those that no sample takes.
    """
    return _statements(program.statements)


def _statements(given: Iterable[object]) -> Operations:
    return sum(map(_operations, given), Operations())


def _operations(given: object) -> Operations:
    if isinstance(given, Binary):
        kinds = {"+": Operations(0, 1), "-": Operations(0, 1), "*": Operations(0, 0, 1)}
        return kinds.get(given.operator, Operations(0, 0, 0, 1)) + _statements((given.left, given.right))
    if isinstance(given, Compare):
        return Operations(1) + _statements((given.left, given.right))
    if isinstance(given, Flag | IsLeaf):
        return Operations(1)
    if isinstance(given, Not):
        return _operations(given.of)
    if isinstance(given, All | Some):
        return _statements(given.of)
    if isinstance(given, Assign | SetFlag):
        return _operations(given.value)
    if isinstance(given, If):
        return _operations(given.condition) + (_statements(given.then) | _statements(given.otherwise))
    return Operations()
