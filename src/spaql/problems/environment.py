"""Dynamics as a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from spaql.problems.dynamics import DYNAMICS
from spaql.problems.layers import layers
from spaql.problems.meaning import Meaning
from spaql.problems.stage_cost import BROKEN, StageCostEnv

Observation = NDArray[np.float32]


class DynamicsEnv(gymnasium.Env[Any, Any]):
    """One episode of compiled dynamics."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, dynamics: str) -> None:
        self.dynamics = DYNAMICS[dynamics]
        self.observation_space = self.dynamics.observation_space
        self.action_space = self.dynamics.action_space
        self.meaning: Meaning = self.dynamics.meaning
        self._state = np.zeros((1, self.dynamics.state_dims))

    @property
    def state(self) -> tuple[float, ...]:
        """The simulated state; it may be set, also to a state of the plant: disturbances are kept."""
        return tuple(self._state[0].tolist())

    @state.setter
    def state(self, state: tuple[float, ...]) -> None:
        self._state[0, : len(state)] = state

    def _get_obs(self) -> Observation:
        """Return the observation; the method has the name that Gymnasium's own environments use."""
        observation: Observation = self.dynamics.plant.observe(self._state)[0].astype(np.float32)
        return observation

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self.dynamics.plant.begin(_ONE, self.np_random, self._state)
        return self._get_obs(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make a step."""
        raw = np.array(action, np.float64).reshape(1, -1)
        observations, reward, terminated = self.dynamics.plant.step_rows(_ONE, raw, self._state)
        info = {BROKEN: self.dynamics.broken(self._state, raw)[0]} if self.dynamics.constraints else {}
        return observations[0].astype(np.float32), float(reward[0]), bool(terminated[0]), False, info


_ONE = np.ones(1, np.bool_)


def declares_cost(env: gymnasium.Env[Any, Any]) -> bool:
    """Return whether an environment charges a stage cost itself: by a wrapper, or by its equations."""
    plant = env.unwrapped
    equations = isinstance(plant, DynamicsEnv) and plant.dynamics.stage_cost is not None
    return equations or any(isinstance(layer, StageCostEnv) for layer in layers(env))
