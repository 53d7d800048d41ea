from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from spaql import BadEnvironmentError, SettingError, make_problem
from spaql.errors import SpaqlWarning
from spaql.problems import PRESETS

GOLDEN = Path(__file__).parents[1] / "golden" / "0.1"


class Corridor(gymnasium.Env):
    """A user's own environment: no id, Discrete observations, ends at the right."""

    observation_space = spaces.Discrete(8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(3))
        return self.at, {}

    def step(self, action):
        self.at = min(max(self.at + (1 if action else -1), 0), 7)
        return self.at, float(self.at == 7), self.at == 7, False, {}


@pytest.mark.parametrize(
    ("given", "resolved"),
    [
        ("CartPole", "CartPole-v1"),
        ("spaql/Oven", "spaql/Oven-v0"),
        ("spaql:spaql/Oven", "spaql:spaql/Oven-v0"),
    ],
)
def test_an_id_without_a_version_is_resolved_once_and_says_so(given: str, resolved: str) -> None:
    with pytest.warns(SpaqlWarning, match=f"{given} has no version: {resolved} is used"):
        problem = make_problem(given)
    assert (problem.name, problem.env) == (resolved, resolved)
    assert problem.dynamics is not None
    problem.make_vector(2).close()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("pendulum-v1", "Pendulum-v1"),
        ("cartpole-V0", "CartPole-v1"),
        ("cartpole", "CartPole-v1"),
        ("pendulm-v1", "Pendulum-v1"),
        ("pendulm", "Pendulum-v1"),
        ("spaql/oven-v0", "spaql/Oven-v0"),
    ],
)
def test_the_suggested_name_is_of_the_same_problem(given: str, meant: str) -> None:
    with pytest.raises(BadEnvironmentError, match=rf"did you mean {meant}\?"):
        make_problem(given)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_the_papers_setups(name: str) -> None:
    problem = make_problem(name)
    assert problem.horizon == 200
    assert problem.reference is not None
    assert problem.interactions == 0
    assert np.abs(problem.states.standardise(problem.reference)).max() <= 1
    assert problem.actions.sizes == {"pendulum5": (5,), "cartpole200": (2,)}.get(name, (2**32,))


def test_an_id_takes_the_environments_own_limit() -> None:
    assert make_problem("CartPole-v1").horizon == 500
    assert make_problem("CartPole-v1", horizon=50).horizon == 50


def test_measuring_unbounded_dimensions_is_counted_and_repeatable() -> None:
    a, b = (make_problem("CartPole-v1") for _ in range(2))
    assert a.interactions == 1000
    assert a.states.state_map.scale.tolist() == b.states.state_map.scale.tolist()
    assert a.states.state_map.squash.tolist() == [False, True, False, True]


def test_an_environment_without_an_id_is_copied() -> None:
    env = Corridor()
    problem = make_problem(env, horizon=30)
    assert problem.env is None
    assert problem.name == "Corridor"
    first = problem.make()
    second = problem.make()
    assert first.reset(seed=1)[0] == second.reset(seed=1)[0]
    assert first.unwrapped is not second.unwrapped
    with pytest.raises(SettingError, match="no limit"):
        make_problem(env)


def test_a_gymnasium_environment_is_copied_with_its_options() -> None:
    with gymnasium.make("CartPole-v1", sutton_barto_reward=True) as env:
        problem = make_problem(env)
    assert problem.env is None
    made = problem.make()
    made.reset(seed=0)
    assert made.step(0)[1] == 0.0


def test_a_wrapped_environment_keeps_its_wrapper() -> None:
    env = gymnasium.wrappers.TransformReward(gymnasium.make("CartPole-v1"), lambda r: 7 * r)
    made = make_problem(env, horizon=20).make()
    made.reset(seed=0)
    assert made.step(0)[1] == 7.0


def test_rewards_to_learn_from_can_be_scaled() -> None:
    problem = make_problem("pendulum", reward_range=(-16.0, 0.0))
    assert problem.learning_reward(-4.0) == 0.75
    with pytest.raises(SettingError, match="lower one first"):
        make_problem("pendulum", reward_range=(0.0, 0.0))


def test_refusals_are_sentences() -> None:
    with pytest.raises(BadEnvironmentError, match="did you mean CartPole-v1"):
        make_problem("CartPol-v1")
    with pytest.raises(SettingError, match="4 numbers, and 2 were given"):
        make_problem("CartPole-v1", reference=[0, 0])
    with pytest.raises(SettingError, match="horizon"):
        make_problem("CartPole-v1", horizon=0)
    for change in ({"horizon": 3}, {"reward_range": (-16.0, 0.0)}, {"compiled": False}):
        with pytest.raises(SettingError, match="already made"):
            make_problem(make_problem("pendulum"), **change)


@pytest.mark.parametrize("path", [r"C:\plants\model", "D:/plants/model", r"c:\plants\model.json"])
def test_a_path_with_a_drive_is_no_module(path: str) -> None:
    with pytest.raises(BadEnvironmentError, match="is a path, and no environment"):
        make_problem(path)
