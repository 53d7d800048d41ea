"""Where episodes end: a classification tree over next states, for PlanTree."""

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit_apart
from spaql.kernels.plants import Floats, Ints, divide

_ROOM = 4096


@njit_apart
def grow_ends(z: Floats, ended: NDArray[np.bool_]) -> tuple[Ints, Floats, Ints, Floats]:
    """Grow a tree by the greatest falls of Gini's impurity, until every leaf holds one kind only."""
    feature, threshold, left = np.full(_ROOM, -1), np.zeros(_ROOM), np.zeros(_ROOM, np.int64)
    chance = np.zeros(_ROOM)
    begin, end = np.zeros(_ROOM, np.int64), np.zeros(_ROOM, np.int64)
    rows = np.arange(z.shape[0])
    end[0] = z.shape[0]
    nodes, node = 1, 0
    while node < nodes:
        first, last = begin[node], end[node]
        size = last - first
        ends = 0
        for i in range(first, last):
            ends += ended[rows[i]]
        chance[node] = ends / size
        if 0 < ends < size and nodes + 2 <= _ROOM:
            dim, at = _best_cut(z, ended, rows[first:last], ends)
            if dim >= 0:
                middle = divide(z, rows, first, last, dim, at)
                feature[node], threshold[node], left[node] = dim, at, nodes
                begin[nodes], end[nodes], begin[nodes + 1], end[nodes + 1] = first, middle, middle, last
                nodes += 2
        node += 1
    return feature[:nodes], threshold[:nodes], left[:nodes], chance[:nodes]


@njit_apart
def _best_cut(z: Floats, ended: NDArray[np.bool_], rows: Ints, ends: int) -> tuple[int, float]:
    size = rows.shape[0]
    before = ends * (size - ends) / size
    best, best_dim, best_at = 1e-9, -1, 0.0
    values = np.empty(size)
    for dim in range(z.shape[1]):
        for i in range(size):
            values[i] = z[rows[i], dim]
        order = np.argsort(values)
        below = 0
        for i in range(size - 1):
            below += ended[rows[order[i]]]
            lower, upper = values[order[i]], values[order[i + 1]]
            if upper > lower:
                n, rest = i + 1, size - i - 1
                above = ends - below
                gain = before - below * (n - below) / n - above * (rest - above) / rest
                if gain > best:
                    best, best_dim, best_at = gain, dim, 0.5 * (lower + upper)
                    if best_at <= lower:  # two neighbouring floats
                        best_at = upper
    return best_dim, best_at
