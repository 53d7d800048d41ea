"""Rule trees with tests added or removed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.policy import Choices, Constants, Laws, Leaves, RuleTree, SwitchingLaws
from spaql.problems.guard import MARGIN

TOLERANCE = MARGIN
"""Share of its range by which an observation may be out of bounds before the safe action is taken: the same
as is accepted of an environment in training, because sensor noise carries observations over a bound."""
_ENDLESS = 1e30
"""Bounds beyond this count as infinite: environments use the largest float32 for no bound."""


def constants(leaves: Choices | Constants | Laws) -> NDArray[Any]:
    """Return the constants of the leaves, or the offsets of laws."""
    if isinstance(leaves, Choices):
        return leaves.number
    return leaves.value if isinstance(leaves, Constants) else leaves.offset


def only_action(leaves: SwitchingLaws, row: int) -> int | None:
    """Return the action of a switching law that is the same for all observations, and None for others.

    The score of a single action may be -infinity for infinite observations, unless its gains are 0.
    """
    return None if leaves.gain[row].any() else leaves.constant(row)


def bounds(space: Box | Discrete) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and the highest observation of a space."""
    if isinstance(space, Discrete):
        return np.array([float(space.start)]), np.array([float(space.start + space.n - 1)])
    return space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()


def limits(
    space: Box | Discrete, tolerance: float = TOLERANCE
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds of a space, each moved outwards by a share of the range between them.

    Bounds of a Discrete space stay, and so does a bound whose opposite is infinite.

    Examples
    --------
    >>> limits(Box(np.array([-1.0, 0.0, -np.inf]), np.array([1.0, np.inf, np.inf]), dtype=np.float64))
    (array([-1.2,  0. , -inf]), array([1.2, inf, inf]))
    """
    low, high = bounds(space)
    low, high = np.where(low < -_ENDLESS, -np.inf, low), np.where(high > _ENDLESS, np.inf, high)
    if isinstance(space, Discrete):
        return low, high
    reach = high - low
    margin = tolerance * np.where(np.isfinite(reach), reach, 0.0)
    return low - margin, high + margin


def guarded(
    tree: RuleTree, safe: tuple[float, ...], low: NDArray[np.float64], high: NDArray[np.float64]
) -> RuleTree:
    """Return the tree preceded by tests whether the observation is within limits, ends included."""
    questions = [(j, low[j], True) for j in range(tree.dims) if low[j] > -np.inf]
    questions += [(j, np.nextafter(high[j], np.inf), False) for j in range(tree.dims) if high[j] < np.inf]
    if not questions:
        return tree
    first, last = len(questions), len(questions) + tree.n_nodes
    onward = np.arange(1, first + 1)
    below = np.array([is_low for _, _, is_low in questions], bool)
    inner = tree.feature >= 0
    return dataclasses.replace(
        tree,
        feature=np.concatenate([[j for j, _, _ in questions], tree.feature, [-1]]),
        threshold=np.concatenate([[t for _, t, _ in questions], tree.threshold, [0.0]]),
        left=np.concatenate([np.where(below, last, onward), np.where(inner, tree.left + first, -1), [-1]]),
        right=np.concatenate([np.where(below, onward, last), np.where(inner, tree.right + first, -1), [-1]]),
        leaf=np.concatenate([np.full(first, -1), tree.leaf, [len(tree.leaves)]]),
        leaves=_with_row(tree.leaves, np.array(safe)),
        smallest=False,
    )


def _with_row(leaves: Leaves, safe: NDArray[np.float64]) -> Leaves:
    """Return the table of leaves with the safe action as its last row."""
    if isinstance(leaves, Choices):
        return Choices(np.append(leaves.number, int(safe[0])))
    if isinstance(leaves, Constants):
        return Constants(np.vstack([leaves.value, safe]))
    gain = np.concatenate([leaves.gain, np.zeros((1, *leaves.gain.shape[1:]))])
    offset = safe
    if isinstance(leaves, SwitchingLaws):
        offset = np.full(leaves.offset.shape[1], -np.inf)
        offset[int(safe[0]) - leaves.start] = 0.0
    return dataclasses.replace(leaves, gain=gain, offset=np.vstack([leaves.offset, offset]))


def decided(tree: RuleTree) -> RuleTree:
    """Return the tree without tests against -infinity, which never hold."""
    keep = (tree.feature < 0) | (tree.threshold > -np.inf)
    return tree if keep.all() else skipping(tree, ~keep, np.zeros(tree.n_nodes, bool))


def skipping(tree: RuleTree, wanted: NDArray[np.bool_], to_left: NDArray[np.bool_]) -> RuleTree:
    """Return the tree without some tests, each replaced by its left or its right child."""
    goes_to = np.arange(tree.n_nodes)
    for i in np.flatnonzero(wanted)[::-1]:
        goes_to[i] = goes_to[tree.left[i] if to_left[i] else tree.right[i]]
    inner = tree.feature >= 0
    left, right = (np.where(inner, goes_to[np.where(inner, side, 0)], -1) for side in (tree.left, tree.right))
    reached = np.zeros(tree.n_nodes, bool)
    reached[goes_to[0]] = True
    for i in range(tree.n_nodes):
        if reached[i] and inner[i]:
            reached[[left[i], right[i]]] = True
    order = np.flatnonzero(reached)
    place = np.full(tree.n_nodes + 1, -1)
    place[order] = np.arange(len(order))
    return dataclasses.replace(
        tree,
        feature=tree.feature[order],
        threshold=tree.threshold[order],
        left=place[left[order]],
        right=place[right[order]],
        leaf=tree.leaf[order],
    )


def without_unused_sums(tree: RuleTree) -> RuleTree:
    """Return the tree without the sums that no rule compares, and then without locks, which are over all."""
    used = np.unique(tree.feature[tree.feature >= tree.dims]) - tree.dims
    if len(used) == len(tree.combinations):
        return tree
    place = np.arange(tree.width)
    place[tree.dims + used] = tree.dims + np.arange(len(used))
    feature = np.where(tree.feature >= 0, place[tree.feature], -1)
    return dataclasses.replace(tree, feature=feature, combinations=tree.combinations[used], locks=())


def written_out(tree: RuleTree) -> RuleTree:
    """Return the tree with shared subtrees copied, so that every node has one parent."""
    source, left, right = [0], [-1], [-1]
    i = 0
    while i < len(source):
        if tree.feature[source[i]] >= 0:
            left[i], right[i] = len(source), len(source) + 1
            source += [int(tree.left[source[i]]), int(tree.right[source[i]])]
            left += [-1, -1]
            right += [-1, -1]
        i += 1
    parts = {name: getattr(tree, name)[source] for name in ("feature", "threshold", "leaf")}
    return dataclasses.replace(tree, left=np.array(left), right=np.array(right), **parts)
