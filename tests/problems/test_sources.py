"""What can be given as an environment, and what is said of that which cannot."""

import re
import threading
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import NormalizeObservation, NormalizeReward, TransformReward

import spaql

Env = gymnasium.Env[Any, Any]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: gymnasium.make_vec("CartPole-v1", 2), r"or a vector of several\)"),
        (lambda: lambda: gymnasium.make("CartPole-v1"), r"lambda.* is no environment: give an id"),
        (lambda: gymnasium.envs.classic_control.CartPoleEnv, r"CartPoleEnv.* \(not its class"),
        (lambda: None, "None is no environment: give an id"),
        (lambda: ["CartPole-v1"], "is no environment: give an id"),
    ],
)
@pytest.mark.parametrize("use", [spaql.make_problem, spaql.SPAQL, spaql.PlanTree])
def test_what_is_no_environment_is_refused(
    given: Callable[[], Any], message: str, use: Callable[[Any], Any]
) -> None:
    with pytest.raises(spaql.SettingError, match=message) as caught:
        use(given())
    assert str(caught.value).count("\n") == 0


def test_options_are_for_ids() -> None:
    assert spaql.make_problem("Pendulum-v1", options={"g": 3.0}).options == {"g": 3.0}
    with pytest.raises(spaql.SettingError, match="given by their id"):
        spaql.make_problem(gymnasium.make("Pendulum-v1"), options={"g": 3.0})


@pytest.mark.parametrize(
    ("wrapper", "advice"),
    [(NormalizeObservation, "spaql standardises observations"), (NormalizeReward, "leave it out")],
)
def test_running_statistics_are_refused_and_fixed_ones_are_not(wrapper: Any, advice: str) -> None:
    env = wrapper(gymnasium.make("MountainCar-v0"))
    with pytest.raises(spaql.SettingError, match=advice):
        spaql.PlanTree(env)
    with pytest.raises(spaql.SettingError, match=advice):
        spaql.make_problem(gymnasium.wrappers.TimeLimit(env, 30))
    env.reset(seed=0)
    for _ in range(50):
        env.step(env.action_space.sample())
    env.update_running_mean = False
    problem = spaql.make_problem(env, measured=False)
    one = problem.make()
    other = problem.make()
    for _ in range(2):  # the same after steps were made in one of them
        first, second = (made.reset(seed=3)[0].tolist() for made in (one, other))
        assert first == second == env.reset(seed=3)[0].tolist()
        assert one.step(0)[1] == env.step(0)[1] != -1.0 or wrapper is NormalizeObservation


def landing(**options: Any) -> Env:
    pytest.importorskip("Box2D")
    return gymnasium.make("LunarLander-v3", **options)


def flown(env: Env, steps: int) -> Env:
    env.reset(seed=0)
    for _ in range(steps):
        env.step(2)
    return env


@pytest.mark.parametrize("options", [{}, {"gravity": -5.0}])
def test_a_simulator_is_copied_by_its_constructor_with_a_warning(options: dict[str, float]) -> None:
    env = TransformReward(flown(landing(**options), 20), lambda r: r / 2)
    with pytest.warns(spaql.errors.SpaqlWarning, match="LunarLander is made by its constructor"):
        problem = spaql.make_problem(env)
    made = problem.make()
    again = problem.make()
    assert made.unwrapped.gravity == env.unwrapped.gravity
    for one in (made, again, env):
        one.reset(seed=1)
    for _ in range(5):
        rewards = {one.step(2)[1] for one in (made, again, env)}
    assert len(rewards) == 1


class Plain(gymnasium.Env):
    """An environment with one parameter."""

    observation_space = spaces.Box(-1.0, 1.0, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.float32([0.0]), {}

    def step(self, action):
        return np.float32([0.0]), self.gain, False, False, {}


def test_the_changed_plants_of_a_stress_test_are_changed() -> None:
    from spaql.evaluation.robustness import changed

    problem = spaql.make_problem(Plain(), horizon=5)
    assert changed(problem, {"gain": 2.0}).make().unwrapped.gain == 2.0
    with pytest.raises(spaql.BadEnvironmentError, match=re.escape("must be between -12 and 0")):
        changed(spaql.make_problem("LunarLander-v3"), {"gravity": 2.0}).make()
    lighter = changed(spaql.make_problem("LunarLander-v3"), {"gravity": 0.5})
    assert lighter.make().unwrapped.gravity == -5.0


class Locked(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


gymnasium.register("test/Locked-v0", entry_point=Locked, max_episode_steps=9)


def test_what_cannot_be_copied_is_refused_with_what_to_do() -> None:
    with pytest.raises(spaql.BadEnvironmentError, match="give 'test/Locked-v0' instead if") as caught:
        spaql.make_problem(gymnasium.make("test/Locked-v0"))
    assert "entry_point=function" in str(caught.value)
    assert str(caught.value).count("\n") == 0
    assert spaql.make_problem("test/Locked-v0").env == "test/Locked-v0"
