"""Rule trees as readable if-then rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.policy.leaves import Choices, Constants, SwitchingLaws
from spaql.policy.mirrored import folded
from spaql.values import whole_number

if TYPE_CHECKING:
    from spaql.policy.tree import RuleTree


def text(tree: RuleTree, digits: int | None = None, *, numbered: bool = False) -> str:
    """Return a rule tree as indented rules.

    Parameters
    ----------
    tree
        The tree; shared subtrees are written at every place. One that is its own mirror image is written for
        one half only (see `mirrored.folded`).
    digits
        Round numbers to this many digits. By default each has as many as identify it, so that the text is
        exact; only numbers below 1e-300 in magnitude are written as 0.
    numbered
        Write the number of each leaf and of each rule after it, from 1 on; of a tree that is its own mirror
        image, those of the half that is written.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("pendulum", seed=0).learn(iterations=10, progress_bar=False)
    >>> print(text(spaql.rule_tree(agent), digits=3).splitlines()[0])
    if sin(angle) < 0.5:
    """
    if (fold := folded(tree)) is not None:
        lines = _lines(fold.half, digits, numbered=numbered)
        return "\n".join([fold.heading, *(f"    {line}" for line in lines)])
    return "\n".join(_lines(tree, digits, numbered=numbered))


def _lines(tree: RuleTree, digits: int | None, *, numbered: bool) -> Iterator[str]:
    """Return the lines of all rules of a tree."""
    leaves, rules = count(1), count(1)

    def leaf(node: int) -> list[str]:
        remark = f"  # leaf {next(leaves)}" if numbered else ""
        return [leaf_text(tree, int(tree.leaf[node]), digits) + remark]

    def remark() -> str:
        return f"  # rule {next(rules)}" if numbered else ""

    return rule_lines(tree, tree.number_names(digits), digits, leaf, remark)


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
    if isinstance(leaves, SwitchingLaws):
        return _switching_text(tree, leaves, row, digits)
    laws = []
    for i, name in enumerate(names):
        offset = number_text(float(leaves.offset[row, i]), digits)
        sum_ = _sum(offset, leaves.gain[row, i], tree.observations, digits, ones=True)
        bounds = (number_text(float(bound[i]), digits) for bound in (leaves.low, leaves.high))
        laws.append(f"{name} = clip({sum_}, {', '.join(bounds)})")
    return ", ".join(laws)


def _switching_text(tree: RuleTree, leaves: SwitchingLaws, row: int, digits: int | None) -> str:
    """Return a switching law as text: of two actions a condition, of more the score of each."""
    if (only := leaves.constant(row)) is not None:
        return tree.actions[only - leaves.start]
    taken = np.flatnonzero(leaves.offset[row] > -np.inf).tolist()
    names = [tree.actions[i] for i in taken]
    gain, offset = leaves.gain[row, taken], leaves.offset[row, taken]
    if len(taken) == 2:
        return f"{names[1]} if {_condition(gain, offset, tree.observations, digits)} else {names[0]}"
    scores = [
        sum_text(weights, tree.observations, digits, constant)
        for weights, constant in zip(gain, offset, strict=True)
    ]
    return f"highest of {', '.join(f'{name}: {score}' for name, score in zip(names, scores, strict=True))}"


def _condition(
    gain: NDArray[np.float64], offset: NDArray[np.float64], names: Sequence[str], digits: int | None
) -> str:
    """Return the condition on which the second of two scores is higher, as text."""
    if digits is not None:
        # Differences are easier to read, but have rounding errors of their own: exact text has both scores.
        weights, constant = gain[1] - gain[0], offset[0] - offset[1]
        if weights.any() and weights[weights != 0.0][0] < 0.0:
            return f"{sum_text(-weights, names, digits)} < {number_text(float(-constant), digits)}"
        return f"{sum_text(weights, names, digits)} > {number_text(float(constant), digits)}"
    first, second = (sum_text(gain[i], names, digits, offset[i]) for i in (0, 1))
    # A score without gains is on the right.
    return f"{second} > {first}" if gain[1].any() or not gain[0].any() else f"{first} < {second}"


def sum_text(
    weights: NDArray[np.float64], names: Sequence[str], digits: int | None, offset: float = 0.0
) -> str:
    """Return a weighted sum as text, without terms that are 0.

    Examples
    --------
    >>> sum_text(np.array([0.5, 0.0, -1.0]), ("x", "v", "angle"), None)
    '0.5 * x - angle'
    >>> sum_text(np.zeros(3), ("x", "v", "angle"), None)
    '0.0'
    """
    start = number_text(float(offset), digits) if offset != 0.0 or not weights.any() else ""
    return _sum(start, weights, names, digits, ones=False)


def _sum(
    start: str, weights: NDArray[np.float64], names: Sequence[str], digits: int | None, *, ones: bool
) -> str:
    """Return a text continued by a weighted sum, with weights of 1 and -1 written or left out.

    Read from left to right, as programming languages do, it is the sum that `leaves.affine` computes.
    """
    text = start
    for weight, name in zip(weights.tolist(), names, strict=True):
        if weight == 0.0:
            continue
        size = number_text(abs(weight), digits)
        term = name if float(size) == 1.0 and not ones else f"{size} * {name}"
        sign = "-" if weight < 0 else "+"
        text = f"{text} {sign} {term}" if text else term if weight > 0 else f"-{term}"
    return text


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
