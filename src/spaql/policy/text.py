"""Rule trees as readable if-then rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.policy.leaves import Choices, Constants
from spaql.values import whole_number

if TYPE_CHECKING:
    from spaql.policy.tree import RuleTree


def text(tree: RuleTree, digits: int | None = None, *, numbered: bool = False) -> str:
    """Return a rule tree as indented rules.

    Parameters
    ----------
    tree
        The tree; shared subtrees are written at every place.
    digits
        Round numbers to this many digits. By default each has as many as identify it, so that the text is
        exact; only numbers below 1e-300 in magnitude are written as 0.
    numbered
        Write the number of each leaf and of each rule after it, from 1 on.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("pendulum", seed=0).learn(iterations=10, progress_bar=False)
    >>> print(text(spaql.rule_tree(agent), digits=3).splitlines()[0])
    if sin(angle) < 0.5:
    """
    leaves, rules = count(1), count(1)

    def leaf(node: int) -> list[str]:
        remark = f"  # leaf {next(leaves)}" if numbered else ""
        return [leaf_text(tree, int(tree.leaf[node]), digits) + remark]

    def remark() -> str:
        return f"  # rule {next(rules)}" if numbered else ""

    return "\n".join(rule_lines(tree, tree.observations, digits, leaf, remark))


class BinaryTree(Protocol):
    """A binary tree as parallel arrays; each node compares a number with a threshold."""

    @property
    def feature(self) -> NDArray[np.integer[Any]]:
        """The number that a node compares; -1 for a leaf."""

    @property
    def threshold(self) -> NDArray[np.float64]:
        """The threshold of each node."""

    @property
    def left(self) -> NDArray[np.integer[Any]]:
        """The child for numbers below the threshold."""

    @property
    def right(self) -> NDArray[np.integer[Any]]:
        """The child for all others."""


def rule_lines(
    tree: BinaryTree,
    names: Sequence[str],
    digits: int | None,
    leaf: Callable[[int], Sequence[str]],
    remark: Callable[[], str] = lambda: "",
) -> Iterator[str]:
    """Yield the lines of a tree, with those of each leaf as `leaf` returns them and a remark after each rule.

    It uses a stack of its own, because a tree may be deeper than Python's recursion limit.
    """
    waiting: list[tuple[int, int, str]] = [(0, 0, "start")]
    while waiting:
        node, level, role = waiting.pop()
        indent = "    " * level
        if tree.feature[node] < 0:
            if role == "else":
                yield f"{indent}else:"
                indent += "    "
            for line in leaf(node):
                yield indent + line
            continue
        keyword = "elif" if role == "else" else "if"
        threshold = number_text(float(tree.threshold[node]), digits)
        yield f"{indent}{keyword} {names[tree.feature[node]]} < {threshold}:{remark()}"
        waiting.append((int(tree.right[node]), level, "else"))
        waiting.append((int(tree.left[node]), level + 1, "then"))


def leaf_text(tree: RuleTree, row: int, digits: int | None = None) -> str:
    """Return the action of a leaf as text, given its row in the table of leaves."""
    leaves, names = tree.leaves, tree.actions
    if isinstance(leaves, Choices):
        assert isinstance(tree.action_space, Discrete)
        return names[int(leaves.number[row]) - int(tree.action_space.start)]
    if isinstance(leaves, Constants):
        return values_text(names, leaves.value[row].tolist(), digits)
    laws = []
    for i, name in enumerate(names):
        sum_ = number_text(float(leaves.offset[row, i]), digits)
        for j, seen in enumerate(tree.observations):
            gain = float(leaves.gain[row, i, j])
            if gain != 0.0:
                sum_ += f" {'-' if gain < 0 else '+'} {number_text(abs(gain), digits)} * {seen}"
        bounds = (number_text(float(bound[i]), digits) for bound in (leaves.low, leaves.high))
        laws.append(f"{name} = clip({sum_}, {', '.join(bounds)})")
    return ", ".join(laws)


def values_text(names: Sequence[str], values: Sequence[float], digits: int | None) -> str:
    """Return the numbers of an action as text, each with its name."""
    return ", ".join(f"{name} = {number_text(x, digits)}" for name, x in zip(names, values, strict=True))


def number_text(x: float, digits: int | None) -> str:
    """Return a number as text: the shortest that is read as the same number, or rounded.

    A threshold at 0 may be the float next to it, where 0 is mapped into the cube with a rounding error.
    """
    if abs(x) < 1e-300:
        x = 0.0
    return repr(x) if digits is None else f"{x:.{whole_number('digits', digits, 1)}g}"
