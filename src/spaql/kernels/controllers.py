"""Controllers as trees, fitted to what look-ahead would do, for PlanTree.

The leaf of a tree for listed actions holds the index of one; the leaf of a tree for a Box holds an affine law
of the standardised state, whose result is cut to [-1, 1].
"""

from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit, njit_apart
from spaql.kernels.plants import Floats, Ints, divide, find, solve

_FITTED = 1500
"""Samples by which a cut of a tree of laws is judged."""
_PARTS = 8
"""A cut of a tree of laws is one of the values that divide its samples into so many even parts."""


class Controller(NamedTuple):
    """A tree over standardised states; the right child of a node follows its left one."""

    feature: Ints
    threshold: Floats
    left: Ints
    law: Floats
    """Nodes × numbers of an action × [1, z]; for listed actions nodes × 1 × 1, the index of one."""


@njit
def control(tree: Controller, leaf: int, z: Floats, actions: Floats, action: Floats) -> None:
    """Write what the plant takes as the action of a leaf: u, and its square if there is room for it."""
    if tree.law.shape[2] == 1:
        choice = int(tree.law[leaf, 0, 0])
        for k in range(action.shape[0]):
            action[k] = actions[choice, k]
        return
    numbers = tree.law.shape[1]
    for k in range(numbers):
        u = tree.law[leaf, k, 0]
        for j in range(z.shape[0]):
            u += tree.law[leaf, k, 1 + j] * z[j]
        u = min(max(u, -1.0), 1.0)
        action[k] = u
        if action.shape[0] > numbers:
            action[numbers + k] = u * u


@njit
def find_rule(tree: Controller, z: Floats) -> int:
    """Give the leaf of a state."""
    return find(tree.feature, tree.threshold, tree.left, 0, z)


@njit
def reach(tree: Controller, order: Ints) -> int:
    """Write the nodes that can be reached, parents first; gives how many there are."""
    order[0] = 0
    count, at = 1, 0
    while at < count:
        node = order[at]
        if tree.feature[node] >= 0:
            order[count], order[count + 1] = tree.left[node], tree.left[node] + 1
            count += 2
        at += 1
    return count


@njit_apart
def count_leaves(tree: Controller) -> int:
    """Count the leaves that can be reached."""
    return (reach(tree, np.empty(tree.feature.shape[0], np.int64)) + 1) // 2


@njit_apart
def tidy(tree: Controller) -> Controller:
    """Copy a tree without the nodes that cannot be reached, parents first."""
    order = np.empty(tree.feature.shape[0], np.int64)
    count = reach(tree, order)
    left = np.zeros(count, np.int64)
    following = 1
    for i in range(count):
        if tree.feature[order[i]] >= 0:
            left[i] = following
            following += 2
    kept = order[:count]
    return Controller(tree.feature[kept], tree.threshold[kept], left, tree.law[kept])


@njit_apart
def grow_choices(z: Floats, votes: Floats, leaves: int, least: int) -> Controller:
    """Grow a tree best first, by the fall of the votes' variance; a leaf gives the action with the most."""
    count = z.shape[0]
    room = 2 * leaves - 1
    feature, threshold, left = np.full(room, -1), np.zeros(room), np.zeros(room, np.int64)
    law = np.zeros((room, 1, 1))
    begin, end = np.zeros(room, np.int64), np.zeros(room, np.int64)
    gain, gain_dim, gain_at = np.full(room, -1.0), np.zeros(room, np.int64), np.zeros(room)
    rows = np.arange(count)
    end[0] = count
    nodes, looked_at = 1, 0
    while True:
        for node in range(looked_at, nodes):
            gain[node], gain_dim[node], gain_at[node], law[node, 0, 0] = _best_vote(
                z, votes, rows[begin[node] : end[node]], least
            )
        looked_at = nodes
        node = int(np.argmax(gain[:nodes]))
        if nodes + 2 > room or gain[node] <= 0.0:
            break
        first, last = begin[node], end[node]
        middle = divide(z, rows, first, last, gain_dim[node], gain_at[node])
        feature[node], threshold[node], left[node] = gain_dim[node], gain_at[node], nodes
        gain[node] = -1.0
        begin[nodes], end[nodes], begin[nodes + 1], end[nodes + 1] = first, middle, middle, last
        nodes += 2
    for node in range(nodes - 1, -1, -1):  # two leaves that do the same are one
        if feature[node] >= 0:
            child = left[node]
            same = law[child, 0, 0] == law[child + 1, 0, 0]
            if feature[child] < 0 and feature[child + 1] < 0 and same:
                feature[node], law[node, 0, 0] = -1, law[child, 0, 0]
    return tidy(Controller(feature, threshold, left, law))


@njit_apart
def _best_vote(z: Floats, votes: Floats, rows: Ints, least: int) -> tuple[float, int, float, float]:
    """Find the cut with the greatest fall of variance: its gain, dimension and place; and the winner."""
    size, choices = rows.shape[0], votes.shape[1]
    total = np.zeros(choices)
    for i in range(size):
        total += votes[rows[i]]
    best, best_dim, best_at = -1.0, 0, 0.0
    values, below = np.empty(size), np.empty(choices)
    for dim in range(z.shape[1]):
        for i in range(size):
            values[i] = z[rows[i], dim]
        order = np.argsort(values)
        below[:] = 0.0
        for i in range(size - least):
            for c in range(choices):
                below[c] += votes[rows[order[i]], c]
            lower, upper = values[order[i]], values[order[i + 1]]
            if i + 1 < least or upper <= lower:
                continue
            n, rest, gain = i + 1.0, size - i - 1.0, 0.0
            for c in range(choices):
                above = total[c] - below[c]
                gain += below[c] * below[c] / n + above * above / rest - total[c] * total[c] / size
            if gain > best:
                best, best_dim, best_at = gain, dim, 0.5 * (lower + upper)
                if best_at <= lower:  # two neighbouring floats
                    best_at = upper
    return best, best_dim, best_at, float(np.argmax(total))


@njit_apart
def fit_law(
    z: Floats, u: Floats, weight: Floats, rows: Ints, ridge: float, prior: Floats, law: Floats, rounds: int
) -> float:
    """Fit a law with a ridge towards another; gives the loss.

    A saturated action does not pull a law that is already beyond its bound, which a few more rounds of
    regression allow for.
    """
    inputs = 1 + z.shape[1]
    gram, x = np.zeros((inputs, inputs)), np.ones(inputs)
    for i in range(rows.shape[0]):
        row = rows[i]
        x[1:] = z[row]
        for j in range(inputs):
            for k in range(inputs):
                gram[j, k] += weight[row] * x[j] * x[k]
    law[:] = prior
    pull, loss = np.zeros((inputs, 1)), 0.0
    for done in range(rounds + 1):
        loss = 0.0
        for j in range(inputs):
            pull[j, 0] = ridge * (prior[j] - law[j])
        for i in range(rows.shape[0]):
            row = rows[i]
            x[1:] = z[row]
            said = 0.0
            for j in range(inputs):
                said += law[j] * x[j]
            wanted = u[row]
            if (wanted > 0.995 and said > 1.0) or (wanted < -0.995 and said < -1.0):
                continue
            miss = wanted - said
            for j in range(inputs):
                pull[j, 0] += weight[row] * miss * x[j]
            loss += weight[row] * miss * miss
        if done < rounds:
            step = solve(gram, ridge, pull)
            for j in range(inputs):
                law[j] += step[j, 0] * (1.0 if done == 0 else 1.5)
    return loss


@njit_apart
def fit_laws(
    z: Floats, u: Floats, weight: Floats, rows: Ints, ridge: float, prior: Floats, law: Floats, rounds: int
) -> float:
    """Fit a law for every number of an action; gives the loss of them all."""
    loss = 0.0
    for k in range(u.shape[1]):
        loss += fit_law(z, u[:, k], weight, rows, ridge, prior[k], law[k], rounds)
    return loss


@njit_apart
def grow_laws(
    z: Floats, u: Floats, weight: Floats, leaves: int, least: int, ridge: float, rounds: int
) -> Controller:
    """Grow a tree of laws best first, by the fall of the loss."""
    count, dims = z.shape
    room = 2 * leaves - 1
    feature, threshold, left = np.full(room, -1), np.zeros(room), np.zeros(room, np.int64)
    law, loss = np.zeros((room, u.shape[1], 1 + dims)), np.zeros(room)
    begin, end = np.zeros(room, np.int64), np.zeros(room, np.int64)
    gain, gain_dim, gain_at = np.full(room, -1.0), np.zeros(room, np.int64), np.zeros(room)
    rows = np.arange(count)
    end[0] = count
    loss[0] = fit_laws(z, u, weight, rows, ridge, law[0].copy(), law[0], rounds)
    nodes, looked_at = 1, 0
    while True:
        for node in range(looked_at, nodes):
            some = rows[begin[node] : end[node]]
            gain[node], gain_dim[node], gain_at[node] = _best_law_cut(
                z, u, weight, some, least, ridge, law[node], loss[node], rounds
            )
        looked_at = nodes
        node = int(np.argmax(gain[:nodes]))
        if nodes + 2 > room or gain[node] <= 0.0:
            break
        first, last = begin[node], end[node]
        middle = divide(z, rows, first, last, gain_dim[node], gain_at[node])
        feature[node], threshold[node], left[node] = gain_dim[node], gain_at[node], nodes
        gain[node] = -1.0
        begin[nodes], end[nodes], begin[nodes + 1], end[nodes + 1] = first, middle, middle, last
        for child in range(nodes, nodes + 2):
            some = rows[begin[child] : end[child]]
            loss[child] = fit_laws(z, u, weight, some, ridge, law[node], law[child], 2 * rounds + 1)
        nodes += 2
    return Controller(feature[:nodes], threshold[:nodes], left[:nodes], law[:nodes])


@njit_apart
def _best_law_cut(
    z: Floats,
    u: Floats,
    weight: Floats,
    rows: Ints,
    least: int,
    ridge: float,
    law: Floats,
    loss: float,
    rounds: int,
) -> tuple[float, int, float]:
    """Find the cut with the greatest fall of the loss: what it gains, its dimension and place."""
    stride = max(1, rows.shape[0] // _FITTED)
    taken = rows[::stride].copy()
    size = taken.shape[0]
    best, best_dim, best_at = np.inf, 0, 0.0
    if rows.shape[0] < 2 * least:
        return -1.0, best_dim, best_at
    values, scratch = np.empty(size), np.empty(law.shape)
    for dim in range(z.shape[1]):
        for i in range(size):
            values[i] = z[taken[i], dim]
        ordered = np.sort(values)
        for part in range(1, _PARTS):
            at = ordered[(size * part) // _PARTS]
            if at <= ordered[0]:
                continue
            middle = divide(z, taken, 0, size, dim, at)
            if middle * stride < least or (size - middle) * stride < least:
                continue
            both = fit_laws(z, u, weight, taken[:middle], ridge, law, scratch, rounds)
            both += fit_laws(z, u, weight, taken[middle:], ridge, law, scratch, rounds)
            if both < best:
                best, best_dim, best_at = both, dim, at
    return loss - best * stride, best_dim, best_at
