"""Episodes of random actions: of compiled dynamics and of Gymnasium's environment."""

import gymnasium
import numpy as np
import pytest

import spaql
from spaql.simulate import record_random


@pytest.mark.parametrize("compiled", [True, False])
def test_random_episodes_are_those_of_the_environment(compiled: bool) -> None:
    problem = spaql.make_problem(
        "CartPole-v1" if compiled else gymnasium.make("CartPole-v1", sutton_barto_reward=True)
    )
    assert (problem.dynamics is not None) == compiled
    world = gymnasium.make("CartPole-v1").unwrapped
    episodes = record_random(problem, 20, np.random.default_rng(0))
    assert len({episode.length for episode in episodes}) > 5
    assert {int(action) for episode in episodes for action in episode.actions} == {0, 1}
    for episode in episodes:
        assert episode.terminated
        assert np.abs(episode.observations[0]).max() <= 0.05
        world.reset(seed=0)
        world.state = episode.observations[0]
        played = [world.step(int(action)) for action in episode.actions]
        np.testing.assert_allclose([step[0] for step in played], episode.observations[1:], atol=1e-5)
        assert [step[2] for step in played] == [False] * (episode.length - 1) + [True]
