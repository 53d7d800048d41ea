"""Smaller equivalent trees.

A tree is treated as boxes with labels. Where the grid of its thresholds is small enough, the smallest tree is
found by dynamic programming over every box of the grid, from the small ones to the large
(`kernels.trees.optimal_tree`). A larger grid is cut first, where a greedy tree would then be smallest, until
its parts are small enough.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.controllers.cells import Ints, LabelledBoxes, compressed, merged, tree_cells
from spaql.controllers.controller import Controller
from spaql.controllers.rules import Nodes
from spaql.errors import SettingError
from spaql.kernels.trees.optimal_tree import best_cut, fewest_leaves, smallest_tree

EFFORT = 100_000_000
"""Default number of cuts examined in all: about a second."""
_ALWAYS = 100_000
"""Number of cuts allowed for any part of a tree, however small the effort."""
_ROOM = 8_000_000
"""The most boxes of a table: 64 MB."""
_TRIES = 8
"""Number of cuts tried where a grid is too large."""


def minimised(tree: Controller, within: Box | None = None, effort: int = EFFORT) -> Controller:
    """Return a tree with fewer leaves and the same action everywhere, or within some bounds.

    Parameters
    ----------
    tree
        The tree. It is returned unchanged if nothing smaller is found.
    within
        Bounds of the observations that matter; beyond them, any action is allowed. The result holds within
        both these bounds and those of the tree.
    effort
        Number of cuts to examine in the search for the smallest tree; if it needs more, a good tree is found
        instead. The result's `smallest` is True if it is proven to be the smallest. That is not proven for
        trees of several leaves that compare sums, whose values are not independent, or that hold laws
        of scores, of which different ones may agree in a part of the space. A tree with hysteresis is
        returned unchanged: where a leaf is left depends on its bounds.
    """
    if any(tree.hysteresis):
        return tree
    bounds = None if within is None else _narrower(tree.within, within)
    cells = tree_cells(tree, bounds)
    cells = dataclasses.replace(cells, label=tree.same_laws[cells.label])  # rows may be equal
    small, proven = small_tree(tree, cells, effort)
    result = tree if small.n_leaves > tree.n_leaves else small
    proven = proven and (result.n_leaves == 1 or _independent(result))
    return dataclasses.replace(result, smallest=proven, within=bounds or tree.within)


def _narrower(held: Box | None, asked: Box) -> Box:
    """Return the bounds that two bounds have in common."""
    if held is None or held.shape != asked.shape:  # which `tree_cells` refuses
        return asked
    for inner, outer in ((asked, held), (held, asked)):
        if np.all(outer.low <= inner.low) and np.all(inner.high <= outer.high):
            return inner
    low = np.maximum(held.low.astype(np.float64), asked.low)
    high = np.minimum(held.high.astype(np.float64), asked.high)
    if np.any(low > high):
        raise SettingError("The tree holds within other bounds only, which these do not meet.")
    return Box(low, high, dtype=np.float64)


def _independent(tree: Controller) -> bool:
    """Return whether every box can hold observations, and different rows have different actions in it."""
    if np.any(tree.feature >= tree.dims):
        return False
    return not tree.discrete or bool(tree.laws.constant[tree.leaf[tree.feature < 0]].all())


def small_tree(like: Controller, cells: LabelledBoxes, effort: int = EFFORT) -> tuple[Controller, bool]:
    """Return a small tree for boxes whose labels are laws of another tree."""
    nodes = Nodes()
    root, proven = _grow(nodes, cells, effort)
    return tree_of(nodes, root, like), proven


def tree_of(nodes: Nodes, root: int, like: Controller) -> Controller:
    """Return a tree of the nodes under a root, with everything else from another tree."""
    arrays: dict[str, Any] = nodes.arrays(root)
    return dataclasses.replace(like, smallest=False, **arrays)


def _grow(nodes: Nodes, cells: LabelledBoxes, effort: float) -> tuple[int, bool]:
    """Grow the tree of a region; return it, and whether it is the smallest."""
    cells = compressed(merged(cells))
    if (cells.label == cells.label[0]).all():
        return nodes.leaf(int(cells.label[0])), True
    boxes, cuts = work(cells.shape)
    if boxes <= _ROOM and cuts <= max(effort, _ALWAYS):
        return _grow_smallest(nodes, cells), True
    region = np.stack([np.zeros_like(cells.shape), cells.shape])
    _, label = np.unique(cells.label, return_inverse=True)
    j, place = best_cut(cells.low, cells.high, label.astype(np.int64).ravel(), region, _TRIES)
    halves = [cells.half(j, place, upper=upper) for upper in (False, True)]
    total = sum(len(half.label) for half in halves)
    left, right = (_grow(nodes, half, effort * len(half.label) / total)[0] for half in halves)
    return nodes.rule(int(j), float(cells.thresholds[j][place - 1]), left, right), False


def _grow_smallest(nodes: Nodes, cells: LabelledBoxes) -> int:
    shape = cells.shape
    table = fewest_leaves(cells.low, cells.high, cells.label, shape)
    rows = np.arange(cells.label.max() + 1)
    return add_nodes(nodes, smallest_tree(table, shape), cells.thresholds, rows)


def add_nodes(
    nodes: Nodes, arrays: tuple[Ints, ...], thresholds: Sequence[NDArray[np.float64]], rows: Ints
) -> int:
    """Add a tree in the form that the kernels return; `rows` are the leaves of its labels."""
    feature, cut, left, right = arrays
    numbers: list[int] = [0] * len(feature)
    for i in range(len(feature) - 1, -1, -1):
        j = int(feature[i])
        if j < 0:
            numbers[i] = nodes.leaf(int(rows[cut[i]]))
        else:
            numbers[i] = nodes.rule(j, float(thresholds[j][cut[i] - 1]), numbers[left[i]], numbers[right[i]])
    return numbers[0]


def work(shape: Ints) -> tuple[int, int]:
    """Return the number of boxes of a grid, and of cuts through them."""
    places = [int(m) for m in shape]
    boxes = math.prod(m * (m + 1) // 2 for m in places)
    return boxes, boxes * sum(m - 1 for m in places) // 3
