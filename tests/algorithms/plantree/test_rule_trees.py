"""Controllers written as rules: no cut that the space of observations rules out, no row twice."""

import dataclasses

import numpy as np
from gymnasium.spaces import Box
from hypothesis import given
from hypothesis import strategies as st

from random_trees import random_tree
from spaql.algorithms.plantree.rule_trees import within_space
from spaql.controllers import Controller, Laws


def inside(tree: Controller, rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw observations of the space, many of them on thresholds, beside them, and on the bounds."""
    low = tree.observation_space.low
    high = tree.observation_space.high
    points = rng.normal(size=(count, tree.dims)) * 10.0 ** rng.integers(-3, 4, (count, tree.dims))
    for j, cuts in enumerate(tree.thresholds):
        telling = np.concatenate([cuts, np.nextafter(cuts, -np.inf), [low[j], high[j]]])
        chosen = rng.random(count) < 0.7
        points[chosen, j] = rng.choice(telling, int(chosen.sum()))
    return np.clip(points, low, high)


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 40), st.sampled_from(["choices", "laws"]))
def test_the_actions_inside_the_space_are_the_same(seed: int, dims: int, leaves: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, dims, leaves, kind)
    kept = within_space(tree)
    points = inside(tree, rng, 500)
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_array_equal(kept.act(points), tree.act(points))
    space = tree.observation_space
    for leaf in range(1, kept.n_leaves + 1):
        low, high, _ = kept.box(leaf)
        # An observation of the space that lies in the box of the leaf: so no cut on the way to it is dead.
        assert np.all(np.maximum(low, space.low) <= space.high)
        assert np.all((np.maximum(low, space.low) < high) | (high == np.inf))
    assert np.array_equal(kept.same_laws, np.arange(len(kept.laws)))
    assert set(kept.leaf[kept.feature < 0]) == set(range(len(kept.laws)))


def test_a_cut_beyond_the_sine_is_left_out_and_equal_laws_share_a_row() -> None:
    laws = Laws([[[1.0, 0.0]], [[0.0, 2.0]], [[1.0, 0.0]]], np.zeros((3, 1)))
    tree = Controller(
        feature=[0, -1, 1, -1, -1],
        threshold=[-1.37, 0.0, 0.5, 0.0, 0.0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 2],
        laws=laws,
        observation_space=Box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64),
        action_space=Box(-1.0, 1.0, (1,)),
        observations=("sin(angle)", "speed"),
    )
    assert "sin(angle) < -1.37" in str(tree)
    kept = within_space(tree)
    assert str(kept).startswith("if speed < 0.5:")
    assert (kept.n_leaves, len(kept.laws)) == (2, 2)
    assert len(within_space(dataclasses.replace(tree, threshold=np.zeros(5))).laws) == 2
