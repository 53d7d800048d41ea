"""The kernels of controllers with memory against a slow, obvious definition, and their arithmetic."""

import math

import numpy as np
import pytest

from feature_controllers import ALL, Reference, random_controller
from nightly import thorough
from spaql.controllers.features import FEATURES, SinceChange
from spaql.kernels.controller import COUNT, LAST, LEAF, act_rows
from spaql.kernels.numerics import arc_tangent


def walk(seed: int, steps: int) -> np.ndarray:
    """Return observations that stay for a while, wander, and jump now and then."""
    rng = np.random.default_rng(seed)
    seen = np.cumsum(rng.normal(size=(steps, 4)) * 0.2 * (rng.random((steps, 1)) < 0.8), axis=0)
    return np.clip(seen + (rng.random((steps, 4)) < 0.05) * rng.normal(size=(steps, 4)) * 3, -4, 4)


@pytest.mark.parametrize("seed", range(12))
def test_samples_are_those_of_the_slow_definition(seed):
    controller = random_controller(seed)
    slow = Reference(controller)
    memory = controller.new_memory(1)
    leaves = set()
    for observation in walk(seed, 150):
        x, wish, action = slow.act(observation)
        found = controller.sample(observation[np.newaxis], memory)
        np.testing.assert_allclose(found.inputs[0], x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.wish[0], wish, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.action[0], action, rtol=1e-9, atol=1e-12)
        leaves.add(memory[0, LEAF])
    assert len(leaves) > 1
    assert memory[0, COUNT] == 1.0


def test_every_kind_of_feature_is_tried():
    of_discrete_actions = {SinceChange}  # tests/controllers/test_memory.py
    assert {type(feature) for feature in ALL} | of_discrete_actions == set(FEATURES.values())
    assert len({made.kind for made in FEATURES.values()}) == len(FEATURES)


def test_a_closed_loop_takes_samples_with_scratch_arrays_of_its_own():
    controller = random_controller(3)
    memory = controller.new_memory(1)
    other = controller.new_memory(1)
    x = np.empty((1, 4 + len(controller.arrays.arrays.feature)))
    work = np.empty((1, 4 + x.shape[1]))
    action = np.empty((1, 2))
    for observation in walk(3, 20):
        x[0, :4] = observation
        act_rows(*controller.arrays, memory, x, work, action)
        found = controller.sample(observation[np.newaxis], other)
        assert np.array_equal(action, found.action)
    assert np.array_equal(memory, other)


def test_rows_are_separate_episodes():
    controller = random_controller(5)
    together = controller.new_memory(3)
    seen = [walk(i, 30) for i in range(3)]
    alone = [controller.new_memory(1) for _ in range(3)]
    for step in range(30):
        batch = controller.sample(np.array([one[step] for one in seen]), together)
        for i in range(3):
            single = controller.sample(seen[i][step : step + 1], alone[i])
            assert np.array_equal(batch.action[i], single.action[0])
    assert np.array_equal(together, np.concatenate(alone))


def test_an_action_out_of_range_that_was_set_by_hand_is_brought_back_at_once():
    controller = random_controller(0, rate_limit=(0.1, 0.1))
    memory = controller.new_memory(1)
    memory[0, LAST] = 5.0
    action = controller.sample(np.zeros((1, 4)), memory).action[0]
    assert action[0] == 1.0


def test_a_wish_that_is_nan_leaves_the_action():
    controller = random_controller(1, form="position", dead_band=(0.0, 0.0))
    memory = controller.new_memory(1)
    found = controller.computed(np.full((1, 4), math.nan), memory)
    assert np.array_equal(found.action[0], controller.start)


def test_the_angle_is_that_of_the_mathematical_library():
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(thorough(20_000), 2)) * 10 ** rng.uniform(-9, 9, (thorough(20_000), 2))
    ends = [(0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0), (1.0, 1.0), (-1.0, -1.0), (0.0, 0.0)]
    for y, x in [*pairs.tolist(), *ends]:
        assert math.isclose(arc_tangent(y, x), math.atan2(y, x), rel_tol=3e-16)
