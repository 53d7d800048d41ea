"""Environments with other parameters, which are declared or named."""

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import spaql
from spaql.evaluation import Bench, parameters_of, robustness, with_parameters
from spaql.problems import make_problem


class Cart(gymnasium.Env[Any, Any]):
    """A cart that is pushed left or right; how it is made differs by class."""

    action_space = Discrete(2)

    def __init__(self) -> None:
        self.observation_space = Box(-9.0, 9.0, (1,))
        self.push = 0.1
        self.mass = 2.0
        self.x = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(0.5, 1.0)
        return np.array([self.x], np.float32), {}

    def step(self, action):
        self.x += (1 if action else -1) * self.push / self.mass
        return np.array([self.x], np.float32), -abs(self.x), False, False, {}


class Argument(Cart):
    def __init__(self, mass: float = 2.0, links: int = 3, grams: float = 5.0) -> None:
        super().__init__()
        self.mass = mass
        self.double = 2 * mass
        self.grams = grams / 1000
        self.lengths = [1.0] * links


class Forgets(Cart):
    def reset(self, *, seed=None, options=None):
        self.mass = 2.0
        return super().reset(seed=seed)


def problem_of(kind: type[Cart]) -> spaql.Problem:
    return make_problem(kind(), horizon=10)


@pytest.fixture(scope="module")
def argument() -> spaql.Problem:
    gymnasium.register("test/Argument-v0", Argument, max_episode_steps=10)
    return make_problem("test/Argument-v0")


def test_what_classic_control_computes_from_a_parameter_follows() -> None:
    plant: Any = (
        with_parameters(make_problem("CartPole-v1"), {"masspole": 0.3, "length": 1.0}).make().unwrapped
    )
    assert (plant.total_mass, plant.polemass_length) == pytest.approx((1.3, 0.3))
    plant = with_parameters(make_problem("spaql/CartPole-v1"), {"masspole": 0.3}).make().unwrapped
    assert plant.total_mass == pytest.approx(1.3)


def test_a_bench_says_how_it_is_computed() -> None:
    bench = Bench(region={"x": (-1, 1)}, derived={"speed": lambda plant: plant.push / plant.mass})
    plant: Any = with_parameters(problem_of(Cart), {"push": 0.4}, bench).make().unwrapped
    assert (plant.push, plant.speed) == (0.4, 0.2)


def test_arguments_are_given_to_the_constructor(argument: spaql.Problem) -> None:
    assert parameters_of(argument)["grams"] == 5.0  # the argument, not the attribute
    plant: Any = with_parameters(argument, {"mass": 4.0, "links": 5.0, "grams": 7.0}).make().unwrapped
    assert (plant.mass, plant.double, plant.lengths, plant.grams) == (4.0, 8.0, [1.0] * 5, 0.007)


def test_an_environment_that_sets_it_back_is_refused() -> None:
    with pytest.raises(spaql.SettingError, match=r"resets mass to 2.0"):
        with_parameters(problem_of(Forgets), {"mass": 3.0})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"masspol": 1.0}, "did you mean masspole"),
        ({"wheels": 1.0}, "its parameters are force_mag, gravity"),
        ({"length": math.nan}, "finite number, such as 0.5"),
        ({"length": math.inf}, "finite number"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, float], said: str) -> None:
    with pytest.raises(spaql.SettingError, match=said):
        with_parameters(make_problem("CartPole-v1"), values)


def test_an_environment_without_a_bench_is_varied_disturbed_and_delayed() -> None:
    problem = problem_of(Cart)
    policy = spaql.SPAQL(problem, seed=0).policy  # plays the first action, left
    rows = robustness(policy, problem, values={"push": [0.2, 0.4]}, episodes=10)
    assert [row.change for row in rows] == [
        "nominal", "push = 0.2", "push = 0.4", "noise 1 %", "noise 5 %", "actions 5 % off", "one step late",
    ]  # fmt: skip
    # From the same x, steps of 0.1 instead of 0.05 towards 0.
    assert rows[1].difference > 0.5
    assert rows[1].difference != rows[2].difference
    assert rows[5].difference != 0


def test_declared_parameters_of_a_plant_are_changed_by_name() -> None:
    oven = make_problem("spaql/Oven-v0")
    assert parameters_of(oven) == {"gain [K]": 240.0, "time constant [s]": 120.0, "loss [1/K]": 0.0006}
    slow = with_parameters(oven, {"time constant [s]": 180.0})
    assert slow.dynamics is not None
    assert slow.dynamics.parameters["time constant [s]"] == 180.0
    with pytest.raises(spaql.SettingError, match="no parameter 'gain': did you mean gain"):
        with_parameters(oven, {"gain": 2.0})
