"""Rules as nested conditions, or as rows of a table: one walk each for all languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spaql.errors import SettingError
from spaql.policy import RuleTree

RULES_UP_TO = 256
"""Leaves up to which rules are written as nested conditions, where the form is left open."""

MOST_LEAVES = 100_000
"""Of rules that are written out."""


@dataclass(frozen=True)
class Words:
    """How a language says it; {} is the condition."""

    first: str
    further: str
    otherwise: str
    end: str


def nested(
    tree: RuleTree,
    words: Words,
    condition: Callable[[int, float, bool], str],
    leaf: Callable[[int], Sequence[str]],
    exception: tuple[str, Sequence[str]] | None = None,
    level: int = 0,
) -> Iterator[str]:
    """Write a rule tree line by line.

    The side with fewer leaves stands under the condition and the other one after it, so that conditions are
    never nested deeper than the logarithm of the number of leaves.

    Parameters
    ----------
    tree
        What to write; parts that it shares are written wherever they stand.
    words
        How the language says it.
    condition
        Writes `observation < threshold`, or, with False, its contrary.
    leaf
        Writes what a row in the table of leaves says.
    exception
        A condition to ask first of all, and what to do if it holds.
    level
        To begin at, of indentation.
    """
    sizes = printed_sizes(tree)
    # What waits is a node to write, or the end of a chain of conditions.
    waiting: list[tuple[int, int, str]] = [(0, level, "start")]
    if exception is not None:
        yield "    " * level + words.first.format(exception[0])
        yield from ("    " * (level + 1) + line for line in exception[1])
        waiting = [(0, level, "end"), (0, level, "else")]
    while waiting:
        node, depth, role = waiting.pop()
        indent = "    " * depth
        j = int(tree.feature[node])
        if role == "end":
            if words.end:
                yield indent + words.end
        elif j < 0:
            if role == "else":
                yield indent + words.otherwise
                indent += "    "
            yield from (indent + line for line in leaf(int(tree.leaf[node])))
        else:
            left, right = int(tree.left[node]), int(tree.right[node])
            below = sizes[left] <= sizes[right]
            word = words.further if role == "else" else words.first
            yield indent + word.format(condition(j, float(tree.threshold[node]), below))
            if role != "else":
                waiting.append((node, depth, "end"))
            waiting.append((right if below else left, depth, "else"))
            waiting.append((left if below else right, depth + 1, "then"))


def printed_sizes(tree: RuleTree) -> list[int]:
    """Give the leaves under each node, shared parts written out; too many of them are refused."""
    sizes = [1] * tree.n_nodes
    for i in range(tree.n_nodes - 1, -1, -1):
        if tree.feature[i] >= 0:
            sizes[i] = sizes[tree.left[i]] + sizes[tree.right[i]]
    if sizes[0] > MOST_LEAVES:
        raise SettingError(
            f"The rules share parts, and written out they have {sizes[0]:,} leaves, which are too many to "
            "prove: simplify the tree first."
        )
    return sizes


@dataclass(frozen=True)
class Table:
    """The questions of a tree as rows; places after the last question are rows in the table of leaves."""

    feature: list[int]
    threshold: list[float]
    after: list[tuple[int, int]]
    """Where to go if the observation is below the threshold, and where otherwise."""


def numbered(tree: RuleTree) -> Table:
    """Number the questions of a tree, those of shared parts once."""
    inner = np.flatnonzero(tree.feature >= 0)
    place = len(inner) + tree.leaf.astype(np.int64)
    place[inner] = np.arange(len(inner))
    after = zip(place[tree.left[inner]].tolist(), place[tree.right[inner]].tolist(), strict=True)
    return Table(tree.feature[inner].tolist(), tree.threshold[inner].tolist(), list(after))


def chosen_form(tree: RuleTree, form: str | None) -> str:
    """Give the form of code that was asked for, or that suits the size."""
    if form not in (None, "rules", "table"):
        raise SettingError(f"Code has the forms rules and table, not {form!r}.")
    # A table of no rules would be one of no length.
    if tree.depth == 0:
        return "rules"
    return form or ("rules" if tree.n_leaves <= RULES_UP_TO else "table")
