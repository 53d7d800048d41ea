"""Rule trees as nested conditions, or as rows of a table, for all languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.policy import RuleTree

RULES_UP_TO = 256
"""Leaves up to which rules are written as nested conditions by default."""

MOST_LEAVES = 100_000
"""Of an exported tree, with shared subtrees written out."""


@dataclass(frozen=True)
class Keywords:
    """The conditional statement of a language; {} is the condition."""

    first: str
    further: str
    otherwise: str
    end: str


def nested(
    tree: RuleTree,
    keywords: Keywords,
    condition: Callable[[int, float, bool], str],
    leaf: Callable[[int], Sequence[str]],
    exception: tuple[str, Sequence[str]] | None = None,
    level: int = 0,
) -> Iterator[str]:
    """Yield the lines of a rule tree.

    The child with fewer leaves stands under the condition and the other one after it, so that conditions are
    never nested deeper than the logarithm of the number of leaves.

    Parameters
    ----------
    tree
        The tree; shared subtrees are written wherever they stand.
    keywords
        Of the language.
    condition
        Returns `number < threshold`, or, with False, its negation, which holds for a sum that is NaN.
    leaf
        Returns the lines for a row in the table of leaves.
    exception
        A condition to test first, and the lines if it holds.
    level
        Indentation of the first line.
    """
    sizes = printed_sizes(tree)
    # The stack holds nodes to write, and the ends of chains of conditions.
    waiting: list[tuple[int, int, str]] = [(0, level, "start")]
    if exception is not None:
        yield "    " * level + keywords.first.format(exception[0])
        yield from ("    " * (level + 1) + line for line in exception[1])
        waiting = [(0, level, "end"), (0, level, "else")]
    while waiting:
        node, depth, role = waiting.pop()
        indent = "    " * depth
        j = int(tree.feature[node])
        if role == "end":
            if keywords.end:
                yield indent + keywords.end
        elif j < 0:
            if role == "else":
                yield indent + keywords.otherwise
                indent += "    "
            yield from (indent + line for line in leaf(int(tree.leaf[node])))
        else:
            left, right = int(tree.left[node]), int(tree.right[node])
            below = sizes[left] <= sizes[right]
            word = keywords.further if role == "else" else keywords.first
            yield indent + word.format(condition(j, float(tree.threshold[node]), below))
            if role != "else":
                waiting.append((node, depth, "end"))
            waiting.append((right if below else left, depth, "else"))
            waiting.append((left if below else right, depth + 1, "then"))


def printed_sizes(tree: RuleTree) -> list[int]:
    """Return the leaves under each node with shared subtrees written out; raises if there are too many."""
    sizes = [1] * tree.n_nodes
    for i in range(tree.n_nodes - 1, -1, -1):
        if tree.feature[i] >= 0:
            sizes[i] = sizes[tree.left[i]] + sizes[tree.right[i]]
    if sizes[0] > MOST_LEAVES:
        raise SettingError(
            f"The tree has {sizes[0]:,} leaves with its shared subtrees written out, more than the "
            f"{MOST_LEAVES:,} that can be exported: simplify it first."
        )
    return sizes


def terms(weights: NDArray[np.float64]) -> list[tuple[int, float]]:
    """Return the terms of a weighted sum in the order in which they are added: observation and weight.

    Those whose weight is 0 are left out: 0 times infinity is NaN.
    """
    return [(j, weight) for j, weight in enumerate(weights.tolist()) if weight != 0.0]


@dataclass(frozen=True)
class Table:
    """The inner nodes of a tree as rows; indices after the last of them are rows in the table of leaves."""

    feature: list[int]
    threshold: list[float]
    after: list[tuple[int, int]]
    """The next index if the number that is compared is below the threshold, and otherwise."""


def numbered(tree: RuleTree) -> Table:
    """Return the inner nodes of a tree as a table, those of shared subtrees once."""
    inner = np.flatnonzero(tree.feature >= 0)
    place = len(inner) + tree.leaf.astype(np.int64)
    place[inner] = np.arange(len(inner))
    after = zip(place[tree.left[inner]].tolist(), place[tree.right[inner]].tolist(), strict=True)
    return Table(tree.feature[inner].tolist(), tree.threshold[inner].tolist(), list(after))


def refuse_form(form: str | None) -> None:
    """Raise if a form of code is requested for a controller with memory, which has one only."""
    if form is not None:
        raise SettingError(f"form is {form!r}, and a controller with memory has one form only: leave it out.")


def chosen_form(tree: RuleTree, form: str | None) -> str:
    """Return the requested form of code, or the default for the size of the tree."""
    if form not in (None, "rules", "table"):
        raise SettingError(f"form is {form!r}, and must be 'rules' or 'table'.")
    # C has no arrays of length 0.
    if tree.depth == 0:
        return "rules"
    return form or ("rules" if tree.n_leaves <= RULES_UP_TO else "table")
