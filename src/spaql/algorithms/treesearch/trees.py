"""Candidate trees of TreeSearch: a structure, and numbers of which some are free."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.saved import Arrays, require, restored
from spaql.archive import is_tree
from spaql.kernels.numerics import Bools, Floats, Ints, Rng
from spaql.kernels.treesearch.candidates import Units, in_raw_units


@dataclass(frozen=True, eq=False)
class CandidateTree:
    """A tree in the units of the search; the right child of a node follows its left one.

    See `spaql.kernels.treesearch.candidates` for what the numbers mean.
    """

    left: Ints
    """The left child of each node; -1 for a leaf."""
    numbers: Floats
    """Nodes × rows × (1 + numbers of an observation)."""
    free: Bools
    """Which numbers are searched."""
    allowed: Bools
    """Nodes × rows: which actions of a list a leaf may take; all True for a Box."""
    locked: Bools
    """Nodes that must stay as they are."""
    exact: Floats
    """The numbers of locked nodes in raw units."""
    listed: bool
    """Whether actions are a list."""
    side: int = -1
    """The observation whose absolute value cuts use, of a tree that is its own mirror image; -1 for none."""

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.left < 0).sum())

    @property
    def n_numbers(self) -> int:
        """Number of numbers that are not 0, besides those that are fixed at 1 by convention."""
        return int((self.numbers != 0.0).sum())

    @cached_property
    def place(self) -> Ints:
        """The index of each free number in a vector, -1 for others."""
        place = np.full(self.numbers.shape, -1)
        place[self.free] = np.arange(int(self.free.sum()))
        return place

    @property
    def vector(self) -> Floats:
        """The free numbers."""
        return self.numbers[self.free]

    def with_vector(self, vector: Floats) -> CandidateTree:
        """Return the tree with other free numbers."""
        numbers = self.numbers.copy()
        numbers[self.free] = vector
        return replace(self, numbers=numbers)

    def raw(self, units: Units, digits: int = 0, vectors: Floats | None = None) -> Floats:
        """Return the numbers of this tree, or of candidates, in raw units, rounded unless digits are 0.

        The largest weight of a cut is 1 or -1.
        """
        vectors = self.vector[np.newaxis] if vectors is None else vectors
        numbers = np.empty((len(vectors), *self.numbers.shape))
        in_raw_units(self.left, vectors, self.place, self.numbers, units, numbers)
        if digits:
            numbers = np.array([float(f"{x:.{digits}g}") for x in numbers.ravel()]).reshape(numbers.shape)
        numbers[:, self.locked] = self.exact[self.locked]
        return numbers

    def unfolded(self, numbers: Floats) -> tuple[Ints, Bools, Floats]:
        """Return children, allowed actions and raw numbers of candidates, without absolute values.

        The root then tells the sign of the observation; where that is negative, so are its weights in cuts.
        """
        weights = self.numbers[self.left >= 0, 0, 1 + self.side]
        if self.side < 0 or not weights.any():
            return self.left, self.allowed, numbers
        n = len(self.left)
        half = np.arange(1, n)
        order = np.concatenate([[0, 0], half, half])
        first_child = np.concatenate([[2, n + 1], np.full(n - 1, 2), np.full(n - 1, n + 1)])
        left = np.where(self.left[order] < 0, -1, self.left[order] + first_child)
        both = numbers[:, order]
        negative = np.concatenate([[True, False], np.full(n - 1, True), np.full(n - 1, False)])
        both[:, negative & (left >= 0), 0, 1 + self.side] *= -1.0
        root = np.zeros_like(numbers[:, :1])
        root[:, 0, 0, 1 + self.side] = 1.0
        allowed = np.concatenate([np.ones_like(self.allowed[:1]), self.allowed[order]])
        return np.append(1, left), allowed, np.concatenate([root, both], axis=1)

    def arrays(self) -> Arrays:
        """Return everything as arrays (see `from_arrays`)."""
        names = ("left", "numbers", "free", "allowed", "locked", "exact")
        return {**{name: getattr(self, name) for name in names}, "side": np.array([self.side])}

    @classmethod
    def from_arrays(cls, arrays: Arrays, like: CandidateTree) -> CandidateTree:
        """Return the tree of `arrays`, for the problem of another tree."""
        left = restored(arrays, "left", (None,), np.int64)
        shape = (len(left), *like.numbers.shape[1:])
        side = int(restored(arrays, "side", (1,), np.int64)[0])
        tree = replace(
            like,
            left=left,
            numbers=restored(arrays, "numbers", shape),
            free=restored(arrays, "free", shape, np.bool_),
            allowed=restored(arrays, "allowed", shape[:2], np.bool_),
            locked=restored(arrays, "locked", shape[:1], np.bool_),
            exact=restored(arrays, "exact", shape),
            side=side,
        )
        require(
            "tree",
            is_tree(left, left + 1, left >= 0),
            tree.allowed.any(axis=1).all(),
            -1 <= side < shape[2] - 1,
            side < 0 or not tree.locked.any(),
        )
        return tree

    def depths(self) -> Ints:
        """Return the depth of each node."""
        depths = np.zeros(len(self.left), np.int64)
        for node, child in enumerate(self.left.tolist()):
            if child >= 0:
                depths[[child, child + 1]] = depths[node] + 1
        return depths

    def leaf_nodes(self) -> list[int]:
        """Return the leaves."""
        return [int(node) for node in np.flatnonzero(self.left < 0)]

    def free_cuts(self) -> list[int]:
        """Return the cuts that are not locked."""
        return [int(node) for node in np.flatnonzero((self.left >= 0) & ~self.locked)]


def pick(some: Any, rng: Rng) -> Any:
    """Return one of several, drawn at random."""
    return some[int(rng.integers(len(some)))]


def one_leaf(rows: int, dims: int, *, listed: bool) -> CandidateTree:
    """Return a tree of one leaf with all numbers 0; of a list of actions the first score stays 0."""
    free = np.ones((1, rows, 1 + dims), bool)
    if listed:
        free[:, 0] = False
    numbers = np.zeros((1, rows, 1 + dims))
    allowed = np.ones((1, rows), bool)
    return CandidateTree(np.full(1, -1), numbers, free, allowed, np.zeros(1, bool), numbers, listed)


def split(tree: CandidateTree, leaf: int, cut: Floats, free: Bools) -> CandidateTree:
    """Return the tree with a leaf cut in two that have its law."""
    left = np.append(tree.left, [-1, -1])
    left[leaf] = len(tree.left)

    def grown(array: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([array, array[[leaf, leaf]]])

    numbers = grown(tree.numbers)
    freedom = grown(tree.free)
    allowed = grown(tree.allowed)
    numbers[leaf] = 0.0
    freedom[leaf] = False
    allowed[leaf] = True
    numbers[leaf, 0] = cut
    freedom[leaf, 0] = free
    return replace(
        tree,
        left=left,
        numbers=numbers,
        free=freedom,
        allowed=allowed,
        locked=grown(tree.locked),
        exact=grown(tree.exact),
    )


def switch_like(tree: CandidateTree, states: Floats, row: int) -> CandidateTree | None:
    """Return the switch between two constants that is most like a number of a tree's action in some states.

    The cut of one number of the observation is that of a regression tree: it leaves the least squared error.
    Other numbers of the action are 0. None if there is no cut.
    """
    laws = [tree.numbers[find_leaf(tree, state), row] for state in states]
    wishes = [law[0] + math.fsum((law[1:] * state).tolist()) for law, state in zip(laws, states, strict=True)]
    actions = np.clip(np.array(wishes), -1.0, 1.0)
    n = len(actions)
    best: tuple[float, int, float, float, float] | None = None
    for j in range(states.shape[1]):
        order = np.argsort(states[:, j], kind="stable")
        x = states[order, j]
        sums = np.add.accumulate(actions[order])
        for i in np.flatnonzero(x[1:] > x[:-1]).tolist():
            low = sums[i] / (i + 1)
            high = (sums[-1] - sums[i]) / (n - i - 1)
            gain = low * sums[i] + high * (sums[-1] - sums[i])  # what the squared error loses
            if best is None or gain > best[0]:
                best = (float(gain), j, float(x[i] + x[i + 1]) / 2, float(low), float(high))
    if best is None:
        return None
    _, main, threshold, low, high = best
    shape = tree.numbers.shape[1:]
    root = one_leaf(shape[0], shape[1] - 1, listed=False)
    cut = np.zeros(shape[1])
    free = np.ones(shape[1], bool)
    cut[0] = threshold
    cut[1 + main] = 1.0
    free[1 + main] = False
    grown = split(root, 0, cut, free)
    numbers = grown.numbers.copy()
    freedom = grown.free.copy()
    freedom[1:, :, 1:] = False
    numbers[1, row, 0] = low
    numbers[2, row, 0] = high
    return replace(grown, numbers=numbers, free=freedom)


def with_constants(tree: CandidateTree) -> CandidateTree:
    """Return a tree of laws with their constants only."""
    numbers = tree.numbers.copy()
    free = tree.free.copy()
    leaves = tree.left < 0
    numbers[leaves, :, 1:] = 0.0
    free[leaves, :, 1:] = False
    return replace(tree, numbers=numbers, free=free)


def without_cut(tree: CandidateTree, node: int, side: int) -> CandidateTree:
    """Return the tree with a cut replaced by one of its sides."""
    source = [0 if node else int(tree.left[node]) + side]
    left: list[int] = []
    i = 0
    while i < len(source):
        child = int(tree.left[source[i]])
        if child < 0:
            left.append(-1)
        else:
            left.append(len(source))
            for kept in (child, child + 1):
                source.append(int(tree.left[kept]) + side if kept == node else kept)
        i += 1
    return replace(
        tree,
        left=np.array(left),
        numbers=tree.numbers[source],
        free=tree.free[source],
        allowed=tree.allowed[source],
        locked=tree.locked[source],
        exact=tree.exact[source],
    )


def random_cut(through: Floats, rng: Rng, used: Bools | None = None) -> tuple[Floats, Bools]:
    """Return an oblique cut through a state, and which of its numbers are free: its largest weight is not.

    It uses all numbers of an observation, or some.
    """
    dims = len(through)
    used = np.ones(dims, bool) if used is None else used
    cut = np.zeros(1 + dims)
    free = np.array([True, *used])
    main = int(np.flatnonzero(used)[rng.integers(int(used.sum()))])
    cut[1:] = np.where(used, 0.3 * rng.standard_normal(dims), 0.0)
    cut[1 + main] = 1.0
    free[1 + main] = False
    for j in range(dims):
        cut[0] += cut[1 + j] * through[j]
    return cut, free


def in_cut_units(cut: Floats, used: Bools) -> tuple[Floats, Bools]:
    """Return a cut whose largest weight is 1 or -1, and which of its numbers are free: all others in use."""
    free = np.array([True, *used])
    main = 1 + int(np.argmax(np.abs(cut[1:])))
    free[main] = False
    return cut / abs(cut[main]), free


def random_tree(
    tree: CandidateTree,
    leaves: int,
    states: Floats,
    rng: Rng,
    *,
    idle: bool = False,
    used: Bools | None = None,
) -> CandidateTree:
    """Return a tree with random laws, or with laws of 0, grown from one leaf by cuts through states.

    The cuts use all numbers of an observation, or some.
    """
    size = 0.0 if idle else 1.0
    tree = tree.with_vector(size * rng.standard_normal(int(tree.free.sum())))
    while tree.n_leaves < leaves:
        depths = tree.depths()
        ends = tree.leaf_nodes()
        shallow = [i for i in ends if depths[i] == min(depths[ends])]
        leaf = pick(shallow, rng)
        state = pick(states, rng)
        tree = split(tree, leaf, *random_cut(seen_by_cuts(tree, state), rng, used))
        numbers = tree.numbers.copy()
        for child in (len(tree.left) - 2, len(tree.left) - 1):
            some = tree.free[child]
            numbers[child][some] = size * rng.standard_normal(int(some.sum()))
        tree = replace(tree, numbers=numbers)
    return tree


def seen_by_cuts(tree: CandidateTree, state: Floats) -> Floats:
    """Return an observation as the cuts of a tree use it."""
    if tree.side < 0:
        return state
    return np.where(np.arange(len(state)) == tree.side, np.abs(state), state)


def find_leaf(tree: CandidateTree, state: Floats) -> int:
    """Return the leaf of an observation in the units of the search."""
    node = 0
    state = seen_by_cuts(tree, state)
    while (child := int(tree.left[node])) >= 0:
        total = 0.0
        for weight, x in zip(tree.numbers[node, 0, 1:].tolist(), state.tolist(), strict=True):
            total += weight * x
        node = child + (0 if total < tree.numbers[node, 0, 0] else 1)
    return node
