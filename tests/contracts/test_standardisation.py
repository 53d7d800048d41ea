"""Every shipped problem is mapped into the standard cube and back."""

import numpy as np
import pytest
from gymnasium.spaces import Box

import spaql
from spaql.kernels.partition.balls import INTERVAL
from spaql.problems import PRESETS


@pytest.mark.parametrize("name", [*PRESETS, "CartPole-v1", "Acrobot-v1", "MountainCarContinuous-v0"])
def test_points_of_the_cube_come_back_and_the_ends_of_actions_are_reached(name: str) -> None:
    problem = spaql.make_problem(name)
    rng = np.random.default_rng(0)
    for point in rng.uniform(-0.99, 0.99, (100, problem.states.dims)):
        there = problem.states.standardise(problem.states.restore(point))
        np.testing.assert_allclose(there, point, rtol=0, atol=1e-6)
    actions = problem.actions
    ends = [(-1.0, 1.0) if size == INTERVAL else (0.0, size - 1.0) for size in actions.sizes]
    raw = actions.restore(np.array(ends).T)
    assert all(actions.space.contains(action) for action in raw)
    if isinstance(actions.space, Box):
        np.testing.assert_allclose(raw[0], actions.space.low)
        np.testing.assert_allclose(raw[1], actions.space.high)
