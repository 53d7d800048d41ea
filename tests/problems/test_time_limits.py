"""The time limit that acts is the horizon, in training and in evaluation."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit, TransformReward

import spaql

Env = gymnasium.Env[Any, Any]


def twice(outer: int, inner: int) -> Env:
    return TimeLimit(gymnasium.make("Pendulum-v1", max_episode_steps=inner), outer)


LIMITED: dict[str, tuple[Callable[[], Env], int]] = {
    "made with a limit": (lambda: gymnasium.make("CartPole-v1", max_episode_steps=20), 20),
    "wrapped by a shorter one": (lambda: TimeLimit(gymnasium.make("MountainCar-v0"), 77), 77),
    "wrapped by a longer one": (lambda: TimeLimit(gymnasium.make("MountainCar-v0"), 777), 200),
    "the shorter one within": (lambda: twice(40, 30), 30),
    "the shorter one outside": (lambda: twice(30, 40), 30),
    "under a wrapper": (lambda: RecordEpisodeStatistics(twice(40, 30)), 30),
    "over a wrapper": (
        lambda: TimeLimit(RecordEpisodeStatistics(gymnasium.make("Pendulum-v1")), 30),
        30,
    ),
    "of a plant": (lambda: gymnasium.make("spaql/Pendulum-v1", max_episode_steps=12), 12),
}


@pytest.mark.parametrize("how", LIMITED)
def test_the_limit_that_acts_is_the_horizon(how: str) -> None:
    make, limit = LIMITED[how]
    assert spaql.make_problem(make(), measured=False).horizon == limit


@pytest.mark.parametrize("wrapped", [False, True])
def test_episodes_are_as_long_as_the_limit_says(wrapped: bool) -> None:
    env = gymnasium.make("Pendulum-v1", max_episode_steps=9)
    env = TransformReward(env, lambda r: r / 2) if wrapped else env
    agent = spaql.SPAQL(env, seed=0, rollouts=2).learn(iterations=2, progress_bar=False)
    assert agent.history["training_steps"].tolist() == [0, 9, 18]
    assert spaql.evaluate(agent, episodes=3).lengths.tolist() == [9, 9, 9]
    assert spaql.evaluate(agent, TimeLimit(env, 4), episodes=3).lengths.tolist() == [4, 4, 4]


def test_a_horizon_replaces_the_limit_of_an_id_and_is_refused_beyond_that_of_a_copy() -> None:
    assert spaql.make_problem("Pendulum-v1", horizon=300).horizon == 300
    env = gymnasium.make("Pendulum-v1", max_episode_steps=9)
    assert spaql.make_problem(env, horizon=5).horizon == 5
    with pytest.raises(spaql.SettingError, match=r"300 steps cannot be reached: .* after 9"):
        spaql.make_problem(env, horizon=300)


def test_whole_numbers_of_numpy_are_whole_numbers(tmp_path: Any) -> None:
    problem = spaql.make_problem("Pendulum-v1", horizon=np.int64(7), levels=np.int32(3), seed=np.uint8(2))
    assert (type(problem.horizon), problem.horizon) == (int, 7)
    assert (type(problem.actions.levels), problem.actions.levels) == (int, 3)
    spaql.SPAQL(problem, seed=0, rollouts=1).learn(iterations=1, progress_bar=False).save(
        tmp_path / "a.spaql"
    )
    assert spaql.load(tmp_path / "a.spaql").problem.horizon == 7
    for wrong in ({"horizon": 7.5}, {"levels": "3"}, {"horizon": True + 0.5}):
        with pytest.raises(spaql.SettingError, match="must be a whole number"):
            spaql.make_problem("Pendulum-v1", **wrong)
    with pytest.raises(spaql.SettingError, match="levels is 0, and must be a whole number, at least 2"):
        spaql.make_problem("Pendulum-v1", levels=0)
