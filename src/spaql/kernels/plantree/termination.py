"""The termination tree: where in the state space episodes end."""

from __future__ import annotations

import math

import numpy as np

from spaql.kernels.jit import njit_no_inline
from spaql.kernels.numerics import Bools, Floats, Ints, solve, sorted_rows, weighted_sum
from spaql.kernels.plantree.pwa_model import divide

_ROOM = 4096
_ROUNDS = 12
"""Iterations of Newton's method."""
_LARGEST_LOGIT = 30.0
"""Bound on the log-odds."""


@njit_no_inline
def logistic(x: Floats, ended: Bools, ridge: float) -> Floats:
    """Return the weights of a logistic regression by Newton's method, with balanced class weights."""
    count, inputs = x.shape
    ends = 0
    for i in range(count):
        ends += 1 if ended[i] else 0
    weights = np.zeros(inputs)
    slope = np.empty((inputs, 1))
    curvature = np.empty((inputs, inputs))
    lower = np.empty((inputs, inputs))
    for _ in range(_ROUNDS):
        for j in range(inputs):
            slope[j, 0] = -ridge * weights[j]
            for k in range(inputs):
                curvature[j, k] = 0.0
        for i in range(count):
            score = 0.0
            for j in range(inputs):
                score += x[i, j] * weights[j]
            chance = 1.0 / (1.0 + math.exp(-min(max(score, -_LARGEST_LOGIT), _LARGEST_LOGIT)))
            weight = 0.5 * count / (ends if ended[i] else count - ends)
            residual = weight * ((1.0 if ended[i] else 0.0) - chance)
            hessian_weight = weight * chance * (1.0 - chance)
            for j in range(inputs):
                slope[j, 0] += residual * x[i, j]
                for k in range(j + 1):
                    curvature[j, k] += hessian_weight * x[i, j] * x[i, k]
        solve(curvature, ridge, slope, lower)  # reads the lower triangle only
        for j in range(inputs):
            weights[j] += slope[j, 0]
    return weights


def grow_termination(z: Floats, ended: Bools) -> tuple[Ints, Floats, Ints, Floats]:
    """Return a tree grown by reduction of the Gini impurity until every leaf is pure."""
    feature = np.full(_ROOM, -1)
    threshold = np.zeros(_ROOM)
    left = np.zeros(_ROOM, np.int64)
    chance = np.zeros(_ROOM)
    rows = np.arange(len(z))
    cells = [(0, len(z))]
    for node, (first, last) in enumerate(cells):  # which grows
        ends = int(np.count_nonzero(ended[rows[first:last]]))
        chance[node] = ends / (last - first)
        if 0 < ends < last - first and len(cells) + 2 <= _ROOM:
            dim, at = best_gini_cut(z, ended, rows, first, last, ends)
            if dim >= 0:
                feature[node] = dim
                threshold[node] = at
                left[node] = len(cells)
                middle = divide(z, rows, first, last, dim, at)
                cells += [(first, middle), (middle, last)]
    nodes = len(cells)
    return feature[:nodes], threshold[:nodes], left[:nodes], chance[:nodes]


@njit_no_inline
def best_gini_cut(z: Floats, ended: Bools, rows: Ints, first: int, last: int, ends: int) -> tuple[int, float]:
    """Return the dimension (or -1) and threshold of the cut that reduces the Gini impurity most."""
    size = last - first
    values = np.empty(size)
    order = np.empty(2 * size, np.int64)
    before = ends * (size - ends) / size
    best = 1e-9
    best_dim = -1
    best_at = 0.0
    for dim in range(z.shape[1]):
        for i in range(size):
            values[i] = z[rows[first + i], dim]
        sorted_rows(values, size, order)
        below = 0
        for i in range(size - 1):
            below += 1 if ended[rows[first + order[i]]] else 0
            lower = values[order[i]]
            upper = values[order[i + 1]]
            if upper > lower:
                n = i + 1
                rest = size - i - 1
                above = ends - below
                gain = before - below * (n - below) / n - above * (rest - above) / rest
                if gain > best:
                    best = gain
                    best_dim = dim
                    best_at = 0.5 * (lower + upper)
                    if best_at <= lower:  # two neighbouring floats
                        best_at = upper
    return best_dim, best_at


_RIDGE = 0.01


def fit_termination(after: Floats, ended: Bools) -> tuple[Ints, Floats, Ints, Floats, Floats]:
    """Fit a tree that predicts the probability that an episode terminates in a state.

    The tree may also test a score, quadratic in the state, by which logistic regression separates terminal
    states from others, so that a curved boundary, as the height of a linkage, needs one cut. Returns the
    nodes, the probabilities, and the weights of the score, which are empty if it is not tested.
    """
    if ended.any() and not ended.all():
        x = quadratic(after)
        weights = logistic(x, ended, _RIDGE)
        nodes = grow_termination(
            np.concatenate([after, weighted_sum(x, weights)[:, np.newaxis]], axis=1), ended
        )
        if (nodes[0] == after.shape[1]).any():
            return *nodes, weights
    return *grow_termination(after, ended), np.zeros(0)


def quadratic(z: Floats) -> Floats:
    """Return 1, z, and the pairwise products of its numbers, for each state."""
    first, second = np.triu_indices(z.shape[1])
    return np.concatenate([np.ones((len(z), 1)), z, z[:, first] * z[:, second]], axis=1)
