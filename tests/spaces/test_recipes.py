"""What a refusal of a space advises can be run as it stands, and learned on."""

import re
from typing import Any

import gymnasium
import numpy
import pytest
from gymnasium import spaces

import spaql
from spaql.spaces import numbers_recipe

Env = gymnasium.Env[Any, Any]


class World(gymnasium.Env):
    """An environment of any spaces: rewarded for actions that lie in its space."""

    def __init__(self, seen: spaces.Space[Any], done: spaces.Space[Any]) -> None:
        self.observation_space = seen
        self.action_space = done

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        return self.observation_space.sample(), 1.0, False, False, {}


def followed(env: Env, advice: str) -> Env:
    """Run the expression in an advice."""
    recipe = re.search(r"gymnasium\.wrappers\..*\)", advice)
    assert recipe, advice
    wrapped: Env = eval(recipe[0], {"gymnasium": gymnasium, "numpy": numpy, "env": env})
    return wrapped


def learned(env: Env, agent: type[spaql.Agent]) -> float:
    few = {"effort": 0.02} if agent is spaql.PlanTree else {"rollouts": 2}
    trained = agent(env, seed=0, horizon=20, **few).learn(total_timesteps=60, progress_bar=False)
    return spaql.evaluate(trained, episodes=3).mean


SEEN = spaces.Box(-1.0, 1.0, (2,))
REFUSED: dict[str, tuple[spaces.Space[Any], spaces.Space[Any]]] = {
    "tuple of lists": (spaces.Tuple((spaces.Discrete(5), spaces.Discrete(3, start=2))), spaces.Discrete(2)),
    "dictionary": (spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(-1, 1, (2,))}), spaces.Discrete(2)),
    "tuple with a box": (spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (1,)))), spaces.Discrete(2)),
    "several lists of observations": (spaces.MultiDiscrete([2, 3]), spaces.Discrete(2)),
    "bits of observations": (spaces.MultiBinary(3), spaces.Discrete(2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_advice_can_be_followed(name: str) -> None:
    env = World(*REFUSED[name])
    with pytest.raises(spaql.UnsupportedSpaceError) as caught:
        spaql.make_problem(env, horizon=20)
    assert "\n" not in str(caught.value)
    assert learned(followed(env, str(caught.value)), spaql.SPAQL) == 20.0


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "Blackjack-v1"])
def test_lists_of_observations_become_numbers_for_plantree(env_id: str) -> None:
    env = gymnasium.make(env_id)
    assert 0.0 <= learned(followed(env, numbers_recipe(env.observation_space)), spaql.PlanTree) + 1.0 <= 2.0
    if env_id == "FrozenLake-v1":
        assert 0.0 <= learned(env, spaql.SPAQL) <= 1.0  # which takes them as they are
        with pytest.raises(spaql.UnsupportedSpaceError, match="PlanTree needs a Box"):
            spaql.PlanTree(env)
