"""Controllers as trees, fitted to the labels of look-ahead, for PlanTree.

A leaf holds the index of a Discrete action, or, for a Box, an affine law of the standardised state whose
result is cut to [-1, 1].
"""

from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit_inlined, njit_no_inline
from spaql.kernels.numerics import Floats, Ints, solve, sorted_rows
from spaql.kernels.plantree.pwa_model import divide, find

_FITTED = 1500
"""Samples by which the cuts of a tree of laws are compared."""
_PARTS = 8
"""The cuts of a tree of laws are the quantiles that divide its samples into so many equal parts."""


class ControllerTree(NamedTuple):
    """A tree over standardised states; the right child of a node follows its left one."""

    feature: Ints
    threshold: Floats
    left: Ints
    law: Floats
    """Nodes × numbers of an action × [1, z]; for Discrete actions nodes × 1 × 1, the index."""


@njit_inlined
def decide(tree: ControllerTree, leaf: int, z: Floats, actions: Floats, inputs: Floats) -> None:
    """Write the plant's inputs by the law of a leaf: u, and its squares if the plant takes them.

    `actions` are the inputs for each Discrete action; for a Box only their width matters.
    """
    numbers = tree.law.shape[1]
    if tree.law.shape[2] == 1:
        choice = int(tree.law[leaf, 0, 0])
        for k in range(inputs.shape[0]):
            inputs[k] = actions[choice, k]
    else:
        for k in range(numbers):
            u = tree.law[leaf, k, 0]
            for j in range(z.shape[0]):
                u += tree.law[leaf, k, 1 + j] * z[j]
            u = min(max(u, -1.0), 1.0)
            inputs[k] = u
            if inputs.shape[0] > numbers:
                inputs[numbers + k] = u * u


@njit_no_inline
def controls(tree: ControllerTree, z: Floats, actions: Floats) -> Floats:
    """Return the plant's inputs at each state (see `decide`)."""
    inputs = np.empty((z.shape[0], actions.shape[1]))
    for i in range(z.shape[0]):
        leaf = find(tree.feature, tree.threshold, tree.left, 0, z[i])
        decide(tree, leaf, z[i], actions, inputs[i])
    return inputs


def reached(tree: ControllerTree) -> Ints:
    """Return the reachable nodes, parents first."""
    order = [0]
    for node in order:  # which grows
        if tree.feature[node] >= 0:
            child = int(tree.left[node])
            order += [child, child + 1]
    return np.array(order)


def count_leaves(tree: ControllerTree) -> int:
    """Return the number of reachable leaves."""
    return (len(reached(tree)) + 1) // 2


def tidy(tree: ControllerTree) -> ControllerTree:
    """Return a copy of the tree without unreachable nodes, parents first."""
    kept = reached(tree)
    inner = tree.feature[kept] >= 0
    left = np.where(inner, 2 * np.cumsum(inner) - 1, 0)
    return ControllerTree(tree.feature[kept], tree.threshold[kept], left, tree.law[kept])


class _Growth:
    """A tree that is grown best first: the node whose cut reduces the loss most is cut next."""

    def __init__(self, z: Floats, leaves: int, law: tuple[int, int]) -> None:
        room = 2 * leaves - 1
        self.z = z
        self.rows = np.arange(len(z))
        self.room = room
        self.feature = np.full(room, -1)
        self.threshold = np.zeros(room)
        self.left = np.zeros(room, np.int64)
        self.law = np.zeros((room, *law))
        self.cells = [(0, len(z))]
        """The rows of each node."""
        self.cuts: list[tuple[float, int, float]] = []
        """The best cut of each node: its gain, dimension and threshold."""

    def cut(self) -> int | None:
        """Cut the best node, whose children become the last nodes; returns it, or None if no cut gains."""
        gains = [cut[0] if self.feature[node] < 0 else -1.0 for node, cut in enumerate(self.cuts)]
        node = int(np.argmax(gains))
        nodes = len(self.cells)
        if gains[node] <= 0.0 or nodes + 2 > self.room:
            return None
        (first, last), (_, dim, at) = self.cells[node], self.cuts[node]
        middle = divide(self.z, self.rows, first, last, dim, at)
        self.feature[node] = dim
        self.threshold[node] = at
        self.left[node] = nodes
        self.cells += [(first, middle), (middle, last)]
        return node

    def tree(self) -> ControllerTree:
        """Return the tree."""
        nodes = len(self.cells)
        return ControllerTree(
            self.feature[:nodes], self.threshold[:nodes], self.left[:nodes], self.law[:nodes]
        )


def grow_choices(z: Floats, votes: Floats, leaves: int, least: int = 2) -> ControllerTree:
    """Return a tree grown best first by reduction of the votes' variance; a leaf has the action with most.

    A leaf has at least `least` samples.
    """
    growth = _Growth(z, leaves, (1, 1))
    while True:
        for node in range(len(growth.cuts), len(growth.cells)):
            gain, dim, at, winner = best_vote(z, votes, growth.rows, *growth.cells[node], least)
            growth.cuts.append((gain, dim, at))
            growth.law[node] = winner
        if growth.cut() is None:
            break
    tree = growth.tree()
    for node in range(len(tree.feature) - 1, -1, -1):  # merge siblings with the same action
        children = tree.left[node] + np.arange(2)
        leaves_below = tree.feature[node] >= 0 and (tree.feature[children] < 0).all()
        if leaves_below and tree.law[children[0]] == tree.law[children[1]]:
            tree.feature[node] = -1
            tree.law[node] = tree.law[children[0]]
    return tidy(tree)


@njit_no_inline
def best_vote(
    z: Floats,
    votes: Floats,
    rows: Ints,
    first: int,
    last: int,
    least: int,
) -> tuple[float, int, float, float]:
    """Return the gain, dimension and threshold of the cut that reduces variance most, and the best action."""
    size = last - first
    choices = votes.shape[1]
    values = np.empty(size)
    order = np.empty(2 * size, np.int64)
    below = np.zeros(choices)
    total = np.zeros(choices)
    for i in range(first, last):
        for c in range(choices):
            total[c] += votes[rows[i], c]
    best = -1.0
    best_dim = 0
    best_at = 0.0
    for dim in range(z.shape[1]):
        for i in range(size):
            values[i] = z[rows[first + i], dim]
        sorted_rows(values, size, order)
        for c in range(choices):
            below[c] = 0.0
        for i in range(size - least):
            for c in range(choices):
                below[c] += votes[rows[first + order[i]], c]
            lower = values[order[i]]
            upper = values[order[i + 1]]
            if i + 1 < least or upper <= lower:
                continue
            n = i + 1.0
            rest = size - i - 1.0
            gain = 0.0
            for c in range(choices):
                above = total[c] - below[c]
                gain += below[c] * below[c] / n + above * above / rest - total[c] * total[c] / size
            if gain > best:
                best = gain
                best_dim = dim
                best_at = 0.5 * (lower + upper)
                if best_at <= lower:  # two neighbouring floats
                    best_at = upper
    winner = 0
    for c in range(choices):
        if total[c] > total[winner]:
            winner = c
    return best, best_dim, best_at, float(winner)


@njit_no_inline
def _fit_law(
    z: Floats,
    u: Floats,
    number: int,
    weight: Floats,
    rows: Ints,
    first: int,
    last: int,
    ridge: float,
    prior: Floats,
    law: Floats,
    rounds: int,
) -> float:
    """Fit the law of one number of an action with a ridge penalty towards another law; returns the loss.

    Further rounds of regression leave out saturated actions where the law is beyond their bound.
    """
    inputs = 1 + z.shape[1]
    gram = np.zeros((inputs, inputs))
    lower = np.empty((inputs, inputs))
    x = np.ones(inputs)
    step = np.empty((inputs, 1))
    for i in range(first, last):
        row = rows[i]
        for j in range(1, inputs):
            x[j] = z[row, j - 1]
        for j in range(inputs):
            for k in range(inputs):
                gram[j, k] += weight[row] * x[j] * x[k]
    for j in range(inputs):
        law[number, j] = prior[number, j]
    loss = 0.0
    for done in range(rounds + 1):
        loss = 0.0
        for j in range(inputs):
            step[j, 0] = ridge * (prior[number, j] - law[number, j])
        for i in range(first, last):
            row = rows[i]
            said = law[number, 0]
            for j in range(1, inputs):
                x[j] = z[row, j - 1]
                said += law[number, j] * x[j]
            wanted = u[row, number]
            if (wanted > 0.995 and said > 1.0) or (wanted < -0.995 and said < -1.0):
                continue
            miss = wanted - said
            for j in range(inputs):
                step[j, 0] += weight[row] * miss * x[j]
            loss += weight[row] * miss * miss
        if done < rounds:
            solve(gram, ridge, step, lower)
            for j in range(inputs):
                law[number, j] += step[j, 0] * (1.0 if done == 0 else 1.5)
    return loss


@njit_no_inline
def fit_and_cut(
    z: Floats,
    u: Floats,
    weight: Floats,
    rows: Ints,
    first: int,
    last: int,
    least: int,
    ridge: float,
    prior: Floats,
    law: Floats,
    rounds: int,
    rounds_of_cuts: int,
) -> tuple[float, int, float]:
    """Fit the laws of a node, and find the cut that reduces the loss most, by some of its samples.

    Returns the gain, dimension and threshold of the cut.
    """
    numbers = u.shape[1]
    loss = 0.0
    best = np.inf
    best_dim = 0
    best_at = 0.0
    for k in range(numbers):
        loss += _fit_law(z, u, k, weight, rows, first, last, ridge, prior, law, rounds)
    if last - first < 2 * least:
        return -1.0, best_dim, best_at
    stride = max(1, (last - first) // _FITTED)
    size = (last - first + stride - 1) // stride
    values = np.empty(size)
    order = np.empty(2 * size, np.int64)
    taken = np.empty(size, np.int64)
    scratch = np.empty(law.shape)
    for i in range(size):
        taken[i] = rows[first + i * stride]
    for dim in range(z.shape[1]):
        for i in range(size):
            values[i] = z[taken[i], dim]
        sorted_rows(values, size, order)
        for part in range(1, _PARTS):
            at = values[order[(size * part) // _PARTS]]
            if at <= values[order[0]]:
                continue
            middle = divide(z, taken, 0, size, dim, at)
            if middle * stride < least or (size - middle) * stride < least:
                continue
            both = 0.0
            for k in range(2 * numbers):
                begin, end = (0, middle) if k < numbers else (middle, size)
                both += _fit_law(
                    z, u, k % numbers, weight, taken, begin, end, ridge, law, scratch, rounds_of_cuts
                )
            if both < best:
                best = both
                best_dim = dim
                best_at = at
    return loss - best * stride, best_dim, best_at


def grow_laws(
    z: Floats, u: Floats, weight: Floats, leaves: int, least: int = 10, ridge: float = 0.1, rounds: int = 2
) -> ControllerTree:
    """Return a tree of laws, grown best first by reduction of the loss.

    A leaf has at least `least` samples. Rounds are regressions, after the first, that leave out saturated
    actions.
    """
    growth = _Growth(z, leaves, (u.shape[1], 1 + z.shape[1]))
    prior = np.zeros(growth.law.shape[1:])
    more = rounds
    while True:
        for node in range(len(growth.cuts), len(growth.cells)):
            growth.cuts.append(
                fit_and_cut(
                    z,
                    u,
                    weight,
                    growth.rows,
                    *growth.cells[node],
                    least,
                    ridge,
                    prior,
                    growth.law[node],
                    more,
                    rounds,
                )
            )
        parent = growth.cut()
        if parent is None:
            return growth.tree()
        prior = growth.law[parent]
        more = 2 * rounds + 1
