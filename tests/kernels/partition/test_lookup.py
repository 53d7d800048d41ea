"""A flattened policy is the greedy search, to the last bit."""

import numpy as np
import pytest
from gymnasium.spaces import Box
from hypothesis import given, settings
from hypothesis import strategies as st

from nightly import thorough
from spaql.kernels.partition.balls import relevant
from spaql.kernels.partition.equations import greedy
from spaql.kernels.partition.lookup import find_leaf, flatten, thresholds
from spaql.kernels.partition.standardise import StateMap, coordinates, standardise
from spaql.partition import Partition
from spaql.spaces import StandardStates

INTERVAL = Partition.INTERVAL


def searched(partition: Partition, tree: int, state_map: StateMap, raw: np.ndarray) -> tuple:
    """The greedy ball's actions by the plain way: standardise, search all relevant balls, take the best."""
    found, count = relevant(partition.balls, tree, coordinates(standardise(state_map, raw)))
    best = greedy(partition.balls, found, count)
    return found.low[best].tolist(), found.size[best].tolist()


def flat_agrees(partition: Partition, states: StandardStates, points: np.ndarray) -> None:
    flat = flatten(partition.balls, partition.trees, states.state_map, states.thresholds)
    for tree in range(partition.trees):
        for raw in points:
            leaf = find_leaf(flat, tree, raw, len(raw))
            found = flat.low[leaf].tolist(), flat.size[leaf].tolist()
            assert found == searched(partition, tree, states.state_map, raw)


def neighbours(table: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    """Points whose every coordinate is a threshold, or the float before or after one."""
    rows = [rng.choice(row, n) for row in table]
    exact = np.stack(rows, axis=1)
    side = rng.integers(-1, 2, exact.shape)
    return np.where(
        side < 0, np.nextafter(exact, -np.inf), np.where(side > 0, np.nextafter(exact, np.inf), exact)
    )


@settings(max_examples=thorough(60))
@given(
    dims=st.integers(1, 5),
    sizes=st.lists(st.sampled_from([1, 2, 3, 5, INTERVAL]), min_size=1, max_size=2),
    trees=st.integers(1, 3),
    splits=st.integers(0, 60),
    ties=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_flat_look_up_equals_the_search(
    dims: int, sizes: list[int], trees: int, splits: int, ties: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    partition = Partition(dims, sizes, trees=trees)
    for _ in range(splits):
        state = (rng.uniform(-1, 1, dims) ** 3).tolist()
        action = [rng.uniform(-1, 1) if s == INTERVAL else rng.integers(s) for s in sizes]
        partition.split(state, action, tree=int(rng.integers(trees)))
    q = rng.integers(0, 3, partition.n_balls) if ties else rng.normal(size=partition.n_balls)
    partition.balls.q[: partition.n_balls] = q
    box = Box(np.full(dims, -np.inf), np.full(dims, np.inf), dtype=np.float64)
    squash = dict.fromkeys(range(0, dims, 2), 3.0)
    low = box.low.copy()
    high = box.high.copy()
    low[1::2] = -2.0
    high[1::2] = 5.0
    states = StandardStates.of(Box(low, high, dtype=np.float64), squash)
    flat = flatten(partition.balls, trees, states.state_map, states.thresholds)
    cuts = flat.cut[flat.first_child >= 0]
    points = [rng.uniform(-8, 8, (50, dims))]
    if len(cuts):
        points.append(neighbours(cuts.T, rng, 50))
    flat_agrees(partition, states, np.concatenate(points))


@pytest.mark.parametrize("scale", [21.0, 240.0, 0.37, 1e-3])
@pytest.mark.parametrize("squash", [True, False])
def test_thresholds_are_where_the_coordinate_changes(scale: float, squash: bool) -> None:
    """A hundred floats around every threshold of 10 levels: below it the lower half, from it on the upper."""
    state_map = StateMap(np.array([0.1]), np.array([scale]), np.array([squash]))
    table = thresholds(state_map, 10)[0]
    for level in range(10):
        for i in range(2**level):
            at = table[2**level - 1 + i]
            boundary = (2 * i + 1) << (31 - level)
            steps = np.arange(-50, 50)
            around = at + steps * np.spacing(at)
            fixed = [coordinates(standardise(state_map, np.array([x])))[0] for x in around]
            assert np.array_equal(np.array(fixed) >= boundary, around >= at)


def test_cells_with_the_same_action_are_merged() -> None:
    partition = Partition(2, [2])
    for _ in range(5):
        partition.split([0.1, 0.1], [0])
        partition.split([0.1, 0.1], [1])
    partition.balls.q[:] = 0.0  # the highest action everywhere
    states = StandardStates.of(Box(-1, 1, (2,)))
    assert len(flatten(partition.balls, 1, states.state_map, states.thresholds).first_child) == 1
