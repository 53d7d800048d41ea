"""How many numbers each algorithm takes: partitions at most 16, PlanTree any."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import spaql


class Drift(gymnasium.Env[Any, Any]):
    """Numbers that drift, of which the first says which action is rewarded."""

    def __init__(self, dims: int, action_space: gymnasium.Space[Any]) -> None:
        self.observation_space = Box(-1.0, 1.0, (dims,), np.float32)
        self.action_space = action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, self.observation_space.shape).astype(np.float32)
        return self.state, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        moved = self.state + self.np_random.normal(0, 0.05, self.state.shape)
        self.state = np.clip(moved, -1, 1).astype(np.float32)
        return self.state, float((np.sum(action) > 0) == (self.state[0] > 0)), False, False, {}


def drift(dims: int, actions: gymnasium.Space[Any] | None = None) -> gymnasium.Env[Any, Any]:
    return gymnasium.wrappers.TimeLimit(Drift(dims, actions or Discrete(2)), 20)


@pytest.mark.parametrize("kind", [spaql.AQL, spaql.SPAQL, spaql.SPAQLTS])
def test_partitions_take_16_with_the_actions(kind: type[spaql.Agent]) -> None:
    for dims, actions in ((15, Discrete(2)), (13, Box(-1.0, 1.0, (3,)))):
        given = {"reference": [0.0] * dims} if kind is spaql.SPAQLTS else {}
        kind(drift(dims, actions), seed=0, **given)
        more = {"reference": [0.0] * (dims + 1)} if kind is spaql.SPAQLTS else {}
        with pytest.raises(spaql.SettingError, match="16 dimensions are the most"):
            kind(drift(dims + 1, actions), seed=0, **more)


def test_plantree_takes_more() -> None:
    agent = spaql.PlanTree(drift(20), seed=0, effort=0.02).learn(total_timesteps=200, progress_bar=False)
    assert agent.policy.n_leaves >= 1
