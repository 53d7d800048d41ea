"""Numbers, sums and rules as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spaql.values import whole_number


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
    return weighted_text(start, weights, names, digits, ones=False)


def weighted_text(
    start: str, weights: NDArray[np.float64], names: Sequence[str], digits: int | None, *, ones: bool
) -> str:
    """Return a text continued by a weighted sum, with weights of 1 and -1 written or left out.

    Read from left to right, as programming languages do, it is the sum that `laws.affine` computes.
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
