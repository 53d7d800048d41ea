"""Rule trees changed by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.interpret.minimise import tree_of
from spaql.policy import Choices, Constants, Laws, Leaves, RuleTree
from spaql.policy.nodes import Nodes
from spaql.policy.tree import Lock
from spaql.values import whole_number

Floats = NDArray[np.float64]


def edited(tree: RuleTree, leaf: int, action: int | str | Sequence[float], *, lock: bool = False) -> RuleTree:
    """Change what is done in a leaf.

    Parameters
    ----------
    tree
        What to change; it stays as it is.
    leaf
        The number of the leaf, as in `text(tree, numbered=True)`.
    action
        Of a list, its name or number; of a Box, its numbers.
    lock
        Lock the leaf, too (see `locked`).

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.rule_tree(agent.learn(iterations=100, progress_bar=False))
    >>> other = edited(tree, leaf=1, action="push right")
    >>> other.leaves.number[other.box(1)[2]]  # 0 is push left, 1 is push right
    np.int64(1)
    """
    low, high, _ = _box(tree, leaf)
    if any(np.all(np.maximum(low, one.low) < np.minimum(high, one.high)) for one in tree.locks):
        raise SettingError(
            f"Leaf {leaf} is locked, or a part of it is: begin with a tree in which it is not."
        )
    leaves, row = _with_row(tree, action)
    box = Lock(low, high, row)
    changed = overlaid(dataclasses.replace(tree, leaves=leaves), box)
    return dataclasses.replace(changed, locks=(*tree.locks, box)) if lock else changed


def locked(tree: RuleTree, leaf: int) -> RuleTree:
    """Lock a leaf: whatever is made of the tree, such as a simpler one, does the same there.

    Parameters
    ----------
    tree
        A tree.
    leaf
        The number of the leaf, as in `text(tree, numbered=True)`.
    """
    return dataclasses.replace(tree, locks=(*tree.locks, Lock(*_box(tree, leaf))))


def overlaid(tree: RuleTree, lock: Lock) -> RuleTree:
    """Do in a box what is locked there, and elsewhere what the tree says."""
    nodes = Nodes()
    whole = np.full(tree.dims, np.inf)
    return tree_of(nodes, _Overlay(tree, lock, nodes).lay(0, -whole, whole), tree)


class _Overlay:
    """Writes a tree anew, with a box in it."""

    def __init__(self, tree: RuleTree, lock: Lock, nodes: Nodes) -> None:
        self._tree, self._lock, self._nodes = tree, lock, nodes

    def lay(self, node: int, low: Floats, high: Floats) -> int:
        """Write what is under a node, whose region is `low <= x < high`."""
        lock, nodes = self._lock, self._nodes
        if np.all(lock.low <= low) and np.all(high <= lock.high):
            return nodes.leaf(lock.row)
        j = int(self._tree.feature[node])
        if j >= 0:
            cut = float(self._tree.threshold[node])
            lower, upper = int(self._tree.left[node]), int(self._tree.right[node])
            if cut <= low[j] or high[j] <= cut:  # only one side can be reached
                return self.lay(upper if cut <= low[j] else lower, low, high)
        elif np.any(high <= lock.low) or np.any(lock.high <= low):
            return nodes.leaf(int(self._tree.leaf[node]))
        else:
            lower = upper = node
            outside = np.stack([lock.low > low, lock.high < high])
            j = int(np.flatnonzero(outside.any(axis=0))[0])
            cut = float(lock.low[j] if outside[0, j] else lock.high[j])
        below, above = high.copy(), low.copy()
        below[j] = above[j] = cut
        return nodes.rule(j, cut, self.lay(lower, low, below), self.lay(upper, above, high))


def _box(tree: RuleTree, leaf: int) -> tuple[Floats, Floats, int]:
    leaf = whole_number("leaf", leaf)
    if not 1 <= leaf <= tree.n_leaves:
        raise SettingError(f"The leaves of this tree have the numbers 1 to {tree.n_leaves}.")
    return tree.box(leaf)


def _with_row(tree: RuleTree, action: int | str | Sequence[float]) -> tuple[Leaves, int]:
    """Give the table of leaves with an action in it, and its row."""
    leaves = tree.leaves
    if isinstance(leaves, Choices):
        table = np.append(leaves.number, tree.action_number(action))
        return Choices(table), _first(table[:, np.newaxis])
    value = np.asarray(action, np.float64).ravel() if not isinstance(action, str) else np.empty(0)
    if value.shape != (len(tree.actions),) or not np.isfinite(value).all():
        raise SettingError(f"An action is one number for each of: {', '.join(tree.actions)}.")
    if isinstance(leaves, Constants):
        table = np.vstack([leaves.value, value])
        return Constants(table), _first(table)
    gain = np.concatenate([leaves.gain, np.zeros((1, *leaves.gain.shape[1:]))])
    laws = Laws(gain, np.vstack([leaves.offset, value]), leaves.low, leaves.high)
    return laws, _first(np.hstack([gain.reshape(len(gain), -1), laws.offset]))


def _first(rows: NDArray[Any]) -> int:
    """Give the first row that is equal to the last."""
    return int(np.flatnonzero((rows == rows[-1]).all(axis=1))[0])
