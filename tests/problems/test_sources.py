"""What can be given as an environment, and what is said of that which cannot."""

import collections
import copy
import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numba
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils import EzPickle
from gymnasium.wrappers import NormalizeObservation, NormalizeReward, TransformReward

import spaql
from spaql.problems.copies import copied

Env = gymnasium.Env[Any, Any]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: gymnasium.make_vec("CartPole-v1", 2), "A vector environment was given: give"),
        (lambda: gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")]), "A vector env"),
        (lambda: lambda: gymnasium.make("CartPole-v1"), "The function <lambda> was given: call it"),
        (lambda: gymnasium.envs.classic_control.CartPoleEnv, r"class CartPoleEnv .* CartPoleEnv\(\)"),
        (lambda: None, "None is no environment: give an id"),
        (lambda: 7, "7 is no environment: give an id"),
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
    one, other = problem.make(), problem.make()
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


LANDERS: dict[str, tuple[Callable[[], Env], str | None]] = {
    "made": (landing, "LunarLander-v3"),
    "after a reset": (lambda: flown(landing(), 0), "LunarLander-v3"),
    "in flight": (lambda: flown(landing(), 20), "LunarLander-v3"),
    "with options": (lambda: landing(gravity=-5.0), "LunarLander-v3"),
    "in a wrapper": (lambda: TransformReward(landing(), lambda r: r / 2), None),
    "in a wrapper, in flight": (lambda: TransformReward(flown(landing(), 20), lambda r: r / 2), None),
}


@pytest.mark.parametrize("how", LANDERS)
def test_what_cannot_be_copied_is_made_anew_where_that_is_the_same(how: str) -> None:
    make, env_id = LANDERS[how]
    env = make()
    problem = spaql.make_problem(env)
    assert problem.env == env_id
    made, again = problem.make(), problem.make()
    made.reset(seed=1)
    again.reset(seed=1)
    for _ in range(5):
        results = [one.step(2) for one in (made, again)]
        assert results[0][0].tolist() == results[1][0].tolist()
    env.reset(seed=1)
    rewards = [env.step(2)[1] for _ in range(5)]
    assert rewards[-1] == results[0][1]


def test_what_can_be_neither_copied_nor_made_anew_is_refused_with_what_to_do() -> None:
    env = landing()
    env.unwrapped.gravity = -3.0
    with pytest.raises(spaql.BadEnvironmentError, match=r"gravity is -3\.0, not -10\.0") as caught:
        spaql.make_problem(env)
    assert "\n" not in str(caught.value)

    def function(**_: Any) -> Env:  # as the message says
        made = gymnasium.make("LunarLander-v3").unwrapped
        made.gravity = -3.0
        return made

    assert "entry_point=function" in str(caught.value)
    gymnasium.register("Mine-v0", entry_point=function, max_episode_steps=100)
    assert spaql.make_problem("Mine-v0").make().unwrapped.gravity == -3.0


class Anew(gymnasium.Env, EzPickle):
    """An environment that Python copies by making it anew."""

    observation_space = spaces.Box(-1.0, 1.0, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, gain: float = 1.0) -> None:
        EzPickle.__init__(self, gain)
        self.gain = gain

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.float32([0.0]), {}

    def step(self, action):
        return np.float32([0.0]), self.gain, False, False, {}


def test_a_class_that_is_copied_by_its_arguments_keeps_its_changes() -> None:
    env = Anew()
    env.gain = 5.0
    assert copy.deepcopy(env).gain == 1.0
    assert copied(env).gain == 5.0
    problem = spaql.make_problem(env, horizon=5)
    assert problem.make().unwrapped.gain == 5.0
    for apart in ({"parallel": True}, {"step_timeout": 5.0}):
        with pytest.raises(spaql.SettingError, match="lose its changes"):
            spaql.make_problem(env, horizon=5, **apart)
    with pytest.raises(spaql.SettingError, match="lose its changes"):
        spaql.evaluate(spaql.SPAQL(problem), episodes=1, parallel=True)
    assert spaql.make_problem(Anew(3.0), horizon=5, parallel=True).make().unwrapped.gain == 3.0


def test_the_changed_plants_of_a_stress_test_are_changed() -> None:
    from spaql.evaluation.robustness import changed

    problem = spaql.make_problem(Anew(), horizon=5)
    assert changed(problem, {"gain": 2.0}).make().unwrapped.gain == 2.0
    with pytest.raises(spaql.BadEnvironmentError, match=re.escape("must be between -12 and 0")):
        changed(spaql.make_problem("LunarLander-v3"), {"gravity": 2.0}).make()
    lighter = changed(spaql.make_problem("LunarLander-v3"), {"gravity": 0.5})
    assert lighter.make().unwrapped.gravity == -5.0


@numba.njit
def compiled(x: float) -> float:
    return x


class Holder(Anew):
    """An environment with attributes of many kinds."""

    def __init__(self) -> None:
        super().__init__()
        EzPickle.__init__(self)
        self.held: Any = {
            "compiled": compiled,
            "pattern": re.compile("a"),
            "path": Path("a"),
            "queue": collections.deque([1], 3),
            "log": logging.getLogger("a"),
            "rng": np.random.default_rng(3),
            "old rng": np.random.RandomState(3),
            "function": lambda x: x,
        }


gymnasium.register("test/Holder-v0", entry_point=Holder, max_episode_steps=9)


def test_attributes_of_many_kinds_are_compared_and_copied() -> None:
    assert spaql.make_problem(gymnasium.make("test/Holder-v0")).env == "test/Holder-v0"
    for change in (
        lambda held: held["queue"].append(2),
        lambda held: held["rng"].random(),
        lambda held: held["old rng"].random(),
        lambda held: held.update(function=lambda x: -x),
        lambda held: held.update(path=Path("b")),
        lambda held: held.update(more=None),
    ):
        env = gymnasium.make("test/Holder-v0")
        change(env.unwrapped.held)
        problem = spaql.make_problem(env)
        assert problem.env is None
        assert "Holder.held" in problem.runs_on
        assert problem.make().unwrapped.held["compiled"](3.0) == 3.0
    env.unwrapped.held["lock"] = threading.Lock()
    with pytest.raises(spaql.BadEnvironmentError, match=r"held.*: give 'test/Holder-v0' instead if"):
        spaql.make_problem(env)
