"""Building trees of rules from the leaves up, with equal subtrees stored once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Key = tuple[int, float, int, int]
"""Feature, threshold and children of a rule; for a leaf -1, its row in the table of leaves, -1, -1."""


class Nodes:
    """Unique nodes, identified by number; children have lower numbers than their parents."""

    def __init__(self) -> None:
        self._keys: list[Key] = []
        self._number: dict[Key, int] = {}
        self.leaves: list[int] = []
        """Number of leaves under each node, with shared subtrees counted each time."""

    def leaf(self, row: int) -> int:
        """Return the leaf of a row in the table of leaves."""
        return self._node((-1, float(row), -1, -1), 1)

    def rule(self, feature: int, threshold: float, left: int, right: int) -> int:
        """Return the node of a rule; if both sides are equal, that side."""
        if left == right:
            return left
        return self._node((feature, threshold, left, right), self.leaves[left] + self.leaves[right])

    def _node(self, key: Key, leaves: int) -> int:
        number = self._number.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
            self.leaves.append(leaves)
        return number

    def arrays(self, root: int) -> dict[str, NDArray[np.generic]]:
        """Return the arrays of a `Controller`: the nodes under a root, parents first."""
        reached = {root}
        for number in range(root, -1, -1):
            if number in reached and self._keys[number][0] >= 0:
                reached.update(self._keys[number][2:])
        order = sorted(reached, reverse=True)
        place = {number: i for i, number in enumerate(order)} | {-1: -1}
        keys = [self._keys[number] for number in order]
        return {
            "feature": np.array([key[0] for key in keys]),
            "threshold": np.array([key[1] if key[0] >= 0 else 0.0 for key in keys]),
            "left": np.array([place[key[2]] for key in keys]),
            "right": np.array([place[key[3]] for key in keys]),
            "leaf": np.array([-1 if key[0] >= 0 else int(key[1]) for key in keys]),
        }
