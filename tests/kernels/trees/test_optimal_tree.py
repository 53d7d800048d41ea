"""Trees on a grid, against trying everything."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nightly import thorough
from spaql.kernels.trees.cost_complexity import cheapest_costs, cheapest_tree, weigh_boxes
from spaql.kernels.trees.optimal_tree import best_cut, fewest_leaves, smallest_tree

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda shape: np.prod(shape) <= 24)
SEEDS = st.integers(0, 2**32 - 1)
ANY = -1


def halves(grid: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (np.take(grid, range(cut), j), np.take(grid, range(cut, grid.shape[j]), j))
        for j in range(grid.ndim)
        for cut in range(1, grid.shape[j])
    ]


def fewest(grid: np.ndarray) -> int:
    """The leaves of the smallest tree for a grid of labels."""
    if len(set(grid.ravel()) - {ANY}) <= 1:
        return 1
    return min(fewest(left) + fewest(right) for left, right in halves(grid))


def say(tree: tuple[np.ndarray, ...], place: np.ndarray) -> int:
    feature, cut, left, right = tree
    node = 0
    while feature[node] >= 0:
        node = left[node] if place[feature[node]] < cut[node] else right[node]
    return int(cut[node])


@settings(max_examples=thorough(40))
@given(shape=SHAPES, labels=st.integers(1, 3), gaps=st.booleans(), seed=SEEDS)
def test_no_tree_is_smaller_than_the_smallest(shape: list[int], labels: int, gaps: bool, seed: int) -> None:
    grid = np.random.default_rng(seed).integers(ANY if gaps else 0, labels, size=shape)
    low = np.ascontiguousarray(np.argwhere(grid != ANY))
    sizes = np.array(shape, np.int64)
    tree = smallest_tree(fewest_leaves(low, low + 1, grid[grid != ANY].astype(np.int64), sizes), sizes)
    assert (tree[0] < 0).sum() == fewest(grid)
    for place in low:
        assert say(tree, place) == grid[tuple(place)]


def test_boxes_may_be_large() -> None:
    low = np.array([[0, 0], [2, 0], [2, 3]])
    high = np.array([[2, 4], [5, 3], [5, 4]])
    shape = np.array([5, 4])
    tree = smallest_tree(fewest_leaves(low, high, np.array([0, 1, 2]), shape), shape)
    assert tree[0].tolist() == [0, -1, 1, -1, -1]
    assert tree[1].tolist() == [2, 0, 3, 1, 2]


def test_of_the_smallest_trees_the_shortest_ways_are_taken() -> None:
    low = np.arange(8)[:, None]
    shape = np.array([8])
    feature, _, left, right = smallest_tree(fewest_leaves(low, low + 1, np.arange(8), shape), shape)
    depth = np.zeros(15, np.int64)
    for node in np.flatnonzero(feature >= 0):
        depth[[left[node], right[node]]] = depth[node] + 1
    assert depth[feature < 0].tolist() == [3] * 8


def cheapest(weights: np.ndarray, price: float) -> float:
    """The cost of the cheapest tree for a grid with weights of labels on its last axis."""
    total = weights.reshape(-1, weights.shape[-1]).sum(axis=0)
    costs = [price + total.sum() - total.max()]
    for left, right in halves(weights):
        if left.shape[-1] == right.shape[-1] == weights.shape[-1]:  # labels are not to be cut
            costs.append(cheapest(left, price) + cheapest(right, price))
    return float(min(costs))


@settings(max_examples=thorough(40))
@given(
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=3).filter(lambda shape: np.prod(shape) <= 12),
    labels=st.integers(1, 3),
    price=st.sampled_from([0.1, 0.7, 1.3, 3.1]),
    seed=SEEDS,
)
def test_no_tree_is_cheaper_than_the_cheapest(shape: list[int], labels: int, price: float, seed: int) -> None:
    grid = np.random.default_rng(seed).integers(0, 4, size=(*shape, labels)).astype(np.float64)
    where = np.argwhere(grid > 0).T.copy()
    sizes = np.array(shape, np.int64)
    weights = weigh_boxes(where[:-1].T.copy(), where[-1], grid[grid > 0], sizes, labels)
    costs = cheapest_costs(weights, sizes, price)
    assert np.isclose(costs[-1], cheapest(grid, price))
    tree = cheapest_tree(weights, costs, sizes, price)
    errors = 0.0
    for place in np.ndindex(*shape):
        errors += grid[place].sum() - grid[place][say(tree, np.array(place))]
    assert np.isclose(costs[-1], errors + price * (tree[0] < 0).sum())


@settings(max_examples=thorough(30))
@given(seed=SEEDS, tries=st.integers(1, 4))
def test_a_cut_separates(seed: int, tries: int) -> None:
    rng = np.random.default_rng(seed)
    low = np.unique(rng.integers(0, 6, (12, 2)), axis=0)
    label = rng.integers(0, 2, len(low))
    label[:2] = 0, 1
    dimension, place = best_cut(low, low + 1, label, np.array([[0, 0], [6, 6]]), tries)
    assert 0 < (low[:, dimension] < place).sum() < len(low)


def test_the_cut_that_leaves_least_is_chosen() -> None:
    """Two labels side by side in dimension 1, whatever dimension 0 is."""
    low = np.ascontiguousarray(np.argwhere(np.ones((4, 6))))
    label = (low[:, 1] >= 2).astype(np.int64)
    assert best_cut(low, low + 1, label, np.array([[0, 0], [4, 6]]), 8) == (1, 2)
