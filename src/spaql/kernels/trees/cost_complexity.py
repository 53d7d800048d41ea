"""Cost-complexity: decision trees on a grid with the least sum of errors and a price for every leaf.

Boxes are numbered as in `optimal_tree`.
"""

import numpy as np

from spaql.kernels.jit import njit_no_inline
from spaql.kernels.numerics import Floats, Ints
from spaql.kernels.trees.optimal_tree import box_index, divide_box, halves, next_box, strides_of


@njit_no_inline
def weigh_boxes(place: Ints, label: Ints, weight: Floats, shape: Ints, labels: int) -> Floats:
    """Return the weight of each label in every box of a grid, from weighted points."""
    dims = shape.shape[0]
    strides = strides_of(shape)
    weights = np.zeros((strides[0] * (shape[0] * (shape[0] + 1) // 2), labels))
    for i in range(place.shape[0]):
        index = 0
        for j in range(dims):
            index += place[i, j] * strides[j]
        weights[index, label[i]] += weight[i]
    begin = np.zeros(dims, np.int64)
    length = np.ones(dims, np.int64)
    for index in range(weights.shape[0]):
        for j in range(dims):
            if length[j] > 1:  # the first place plus the others
                first, others = halves(index, begin, length, shape, strides, j, 1)
                for k in range(labels):
                    weights[index, k] = weights[first, k] + weights[others, k]
                break
        next_box(begin, length, shape)
    return weights


@njit_no_inline
def cheapest_costs(weights: Floats, shape: Ints, price: float) -> Floats:
    """Return the cost of the cheapest tree for every box: its errors, and a price for each of its leaves."""
    dims = shape.shape[0]
    strides = strides_of(shape)
    costs = np.empty(weights.shape[0])
    begin = np.zeros(dims, np.int64)
    length = np.ones(dims, np.int64)
    for index in range(weights.shape[0]):
        best = _leaf_cost(weights, index, price)
        if best > 2 * price:  # the least cost of two leaves
            for j in range(dims):
                for left in range(1, length[j]):
                    lower, upper = halves(index, begin, length, shape, strides, j, left)
                    best = min(best, costs[lower] + costs[upper])
        costs[index] = best
        next_box(begin, length, shape)
    return costs


@njit_no_inline
def _leaf_cost(weights: Floats, index: int, price: float) -> float:
    total = most = 0.0
    for k in range(weights.shape[1]):
        total += weights[index, k]
        most = max(most, weights[index, k])
    return total - most + price


@njit_no_inline
def cheapest_tree(weights: Floats, costs: Floats, shape: Ints, price: float) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the cheapest tree of the whole grid, in the form of `smallest_tree`."""
    dims = shape.shape[0]
    strides = strides_of(shape)
    room = 2 * int(min(costs[-1] / price, np.prod(shape))) + 3
    feature = np.full(room, -1, np.int64)
    cut = np.zeros(room, np.int64)
    children_left = np.full(room, -1, np.int64)
    children_right = np.full(room, -1, np.int64)
    begin = np.zeros((room, dims), np.int64)
    length = np.zeros((room, dims), np.int64)
    for j in range(dims):
        length[0, j] = shape[j]
    nodes = 1
    node = 0
    while node < nodes:
        index = box_index(begin[node], length[node], shape, strides)
        if costs[index] == _leaf_cost(weights, index, price):
            for k in range(weights.shape[1]):
                if weights[index, k] > weights[index, cut[node]]:
                    cut[node] = k
            node += 1
            continue
        for j in range(dims):
            for left in range(1, length[node, j]):
                lower, upper = halves(index, begin[node], length[node], shape, strides, j, left)
                if feature[node] < 0 and costs[lower] + costs[upper] == costs[index]:
                    feature[node] = j
                    cut[node] = begin[node, j] + left
        children_left[node] = nodes
        children_right[node] = nodes + 1
        divide_box(begin, length, node, nodes, feature[node], cut[node])
        nodes += 2
        node += 1
    return feature[:nodes], cut[:nodes], children_left[:nodes], children_right[:nodes]
