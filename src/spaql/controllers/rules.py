"""The rules of a controller: a decision tree with laws in its leaves, which is built from the leaves up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.laws import Laws, affine
from spaql.errors import BadEnvironmentError, SettingError
from spaql.kernels.numerics import Floats

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


_LOCKS = 2**14
"""The most locks of a controller: each takes many times more memory than in a file."""
_MOST = 2**62
"""Leaves that are counted: of shared subtrees there may be more."""


@dataclass(frozen=True, eq=False)
class Lock:
    """A box `low <= x < high` of the numbers that rules compare, in which a person has fixed the action."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    row: int
    """The row in the table of laws."""

    def holds(self, numbers: Floats) -> NDArray[np.bool_]:
        """Return whether each row of the numbers that rules compare is in the box."""
        return np.asarray(np.all((self.low <= numbers) & (numbers < self.high), axis=1))


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionTree:
    """A binary decision tree over the inputs of a controller, as parallel arrays (see `Controller`)."""

    laws: Laws
    """The table of laws; actions instead, one a row, are laws that are constant."""
    feature: NDArray[np.int32] = (-1,)  # type: ignore[assignment]
    """The number that a node compares; -1 for a leaf. By default there is one leaf."""
    threshold: NDArray[np.float64] = (0.0,)  # type: ignore[assignment]
    left: NDArray[np.int32] = (-1,)  # type: ignore[assignment]
    right: NDArray[np.int32] = (-1,)  # type: ignore[assignment]
    leaf: NDArray[np.int32] = (0,)  # type: ignore[assignment]
    """The row of a leaf in the table of laws; -1 for inner nodes."""
    combinations: NDArray[np.float64] = ()  # type: ignore[assignment]
    """The weights of sums that rules compare: sums × inputs."""
    locks: tuple[Lock, ...] = ()
    """Boxes in which controllers made from this one must have the same actions."""

    @property
    def dims(self) -> int:
        """How many inputs there are."""
        raise NotImplementedError

    def _set_nodes(self) -> None:
        """Take the arrays as they are to be; nobody can write them then."""
        set_ = object.__setattr__
        kinds = {"feature": np.int32, "threshold": np.float64}
        kinds |= dict.fromkeys(("left", "right", "leaf"), np.int32)
        for name, kind in kinds.items():
            array = np.array(getattr(self, name), kind)
            array.setflags(write=False)
            set_(self, name, array)
        combinations = np.array(self.combinations, np.float64)
        if not combinations.size:
            combinations = combinations.reshape(0, self.dims)
        combinations.setflags(write=False)
        set_(self, "combinations", combinations)

    @property
    def width(self) -> int:
        """How many numbers rules can compare: the inputs, and their weighted sums."""
        return self.dims + len(self.combinations)

    def numbers(self, batch: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for rows of inputs, the numbers that rules compare."""
        if not len(self.combinations):
            return batch
        gain = np.broadcast_to(self.combinations, (len(batch), *self.combinations.shape))
        with np.errstate(invalid="ignore", over="ignore"):
            sums = affine(np.zeros((len(batch), len(self.combinations))), gain, batch)
        return np.concatenate([batch, sums], axis=1)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of the printed tree, with shared subtrees counted each time."""
        return int(self.sizes[0])

    @property
    def n_nodes(self) -> int:
        """Number of different nodes, with shared subtrees counted once."""
        return len(self.feature)

    @property
    def depth(self) -> int:
        """The largest number of comparisons before an action."""
        return int(self._depths[0])

    def find(self, batch: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the law of each row of inputs."""
        return self.leaf[self.find_nodes(batch)].astype(np.int64)

    def find_nodes(self, batch: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the leaf node of each row of inputs."""
        nan = np.isnan(batch).any(axis=1)
        if nan.any():
            row = int(np.flatnonzero(nan)[0])
            raise BadEnvironmentError(f"Observation {row} of the batch holds NaN: {batch[row]}.")
        numbers = self.numbers(batch)
        node = np.zeros(len(batch), np.int64)
        on_the_way = np.flatnonzero(self.feature[node] >= 0)
        while len(on_the_way):
            at = node[on_the_way]
            lower = numbers[on_the_way, self.feature[at]] < self.threshold[at]
            node[on_the_way] = np.where(lower, self.left[at], self.right[at])
            on_the_way = on_the_way[self.feature[node[on_the_way]] >= 0]
        return node

    @cached_property
    def thresholds(self) -> tuple[NDArray[np.float64], ...]:
        """The different thresholds of each number that rules compare, in ascending order."""
        inner = self.feature >= 0
        return tuple(np.unique(self.threshold[inner & (self.feature == j)]) for j in range(self.width))

    def leaf_number(self, point: NDArray[np.float64]) -> int:
        """Return the number of the leaf of one observation; leaves are counted from 1 in printed order."""
        node = 0
        before = 0
        numbers = self.numbers(point[np.newaxis])[0]
        while (j := int(self.feature[node])) >= 0:
            if numbers[j] < self.threshold[node]:
                node = int(self.left[node])
            else:
                before += int(self.sizes[self.left[node]])
                node = int(self.right[node])
        return before + 1

    def box(self, leaf: int) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """Return the bounds `low <= x < high` of a leaf, given by its number, and its row in the table.

        x are the numbers that rules compare.
        """
        low = np.full(self.width, -np.inf)
        high = np.full(self.width, np.inf)
        node = 0
        left_of = leaf - 1
        while (j := int(self.feature[node])) >= 0:
            cut = float(self.threshold[node])
            lower = int(self.left[node])
            if left_of < self.sizes[lower]:
                high[j] = min(high[j], cut)
                node = lower
            else:
                low[j] = max(low[j], cut)
                left_of -= int(self.sizes[lower])
                node = int(self.right[node])
        return low, high, int(self.leaf[node])

    def way_to(self, rule: int) -> list[tuple[int, bool]]:
        """Return the path to a rule, given by its number: each node, and whether it continues to the left.

        Rules are counted from 1 in printed order; the last node is the rule itself.
        """
        node = 0
        left_of = rule - 1
        way = []
        while left_of:
            lower = int(self.left[node])
            before = int(self.sizes[lower]) - 1  # a binary tree has one rule fewer than leaves
            way.append((node, left_of <= before))
            left_of -= 1 if left_of <= before else before + 1
            node = lower if way[-1][1] else int(self.right[node])
        return [*way, (node, True)]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of leaves under each node."""
        sizes = np.ones(self.n_nodes, np.int64)
        for i in range(self.n_nodes - 1, -1, -1):
            if self.feature[i] >= 0:
                sizes[i] = min(sizes[self.left[i]] + sizes[self.right[i]], _MOST)
        return sizes

    @cached_property
    def _depths(self) -> NDArray[np.int64]:
        """The largest number of comparisons from each node on."""
        depths = np.zeros(self.n_nodes, np.int64)
        for i in range(self.n_nodes - 1, -1, -1):
            if self.feature[i] >= 0:
                depths[i] = 1 + max(depths[self.left[i]], depths[self.right[i]])
        return depths

    def _check_nodes(self) -> None:
        """Refuse arrays that are not a tree, so that a lookup always ends."""
        n = self.n_nodes
        arrays = (self.threshold, self.left, self.right, self.leaf)
        if n < 1 or any(array.shape != (n,) for array in arrays) or self.feature.ndim != 1:
            raise SettingError("A controller has a row for each node in every array, and one node at least.")
        inner = self.feature >= 0
        place = np.arange(n)
        children = np.stack([self.left, self.right])[:, inner]
        shape = self.combinations.shape
        if shape[1:] != (self.dims,) or not np.isfinite(self.combinations).all():
            raise SettingError(f"Sums of observations have {self.dims} finite weights each.")
        if not self.combinations.any(axis=1).all():
            raise SettingError("A sum of observations has a weight that is not 0.")
        if np.any(self.feature >= self.width) or np.isnan(self.threshold[inner]).any():
            raise SettingError(f"Rules compare the numbers 0 to {self.width - 1}, with a threshold each.")
        if np.any(children <= place[inner]) or np.any(children >= n):
            raise SettingError("The children of a node come after it.")
        reached = np.zeros(n, np.bool_)
        reached[0] = True
        reached[children] = True  # a child comes after its parent: by induction the root reaches it
        if not reached.all():
            raise SettingError("Every node but the root is the child of another.")
        if np.any(self.leaf[~inner] < 0) or np.any(self.leaf[~inner] >= len(self.laws)):
            raise SettingError("Every leaf names a row in the table of laws.")
        if len(self.locks) > _LOCKS:
            raise SettingError(f"A tree has at most {_LOCKS} locks.")
        shapes = {array.shape for lock in self.locks for array in (lock.low, lock.high)}
        if shapes - {(self.width,)} or any(not 0 <= lock.row < len(self.laws) for lock in self.locks):
            raise SettingError(
                "Every lock names a row in the table of laws, and a box of the numbers that rules compare."
            )


def bisect(
    which: Callable[[NDArray[Any]], NDArray[Any]], near: NDArray[Any], other: NDArray[Any]
) -> NDArray[np.bool_]:
    """Move rows of inputs to both sides of a boundary between them, at which a row of `which` changes.

    Returns between which there is one.
    """
    here = which(near)
    crossed = (which(other) != here).any(axis=1)
    for _ in range(80):
        with np.errstate(over="ignore", invalid="ignore"):
            middle = near / 2 + other / 2
        same = (which(middle) == here).all(axis=1)
        near[same] = middle[same]
        other[~same] = middle[~same]
    return np.asarray(crossed)
