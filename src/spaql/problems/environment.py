"""Dynamics as Gymnasium environments, one and many."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from spaql.problems.dynamics import DYNAMICS, Dynamics
from spaql.problems.layers import layers
from spaql.problems.meaning import Meaning
from spaql.problems.stage_cost import BROKEN, StageCostEnv

Observation = NDArray[np.float32]


def _info(
    dynamics: Dynamics, states: NDArray[np.float64], actions: NDArray[np.float64]
) -> dict[str, NDArray[np.bool_]]:
    """Return which constraints are broken, if any are declared."""
    return {BROKEN: dynamics.broken(states, actions)} if dynamics.constraints else {}


class DynamicsVectorEnv(VectorEnv[Observation, Any, Any]):
    """Many episodes of compiled dynamics, stepped by one call; a finished one is reset on the next step."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self, dynamics: str | Dynamics, num_envs: int = 1, max_episode_steps: int | None = None
    ) -> None:
        self.dynamics = DYNAMICS[dynamics] if isinstance(dynamics, str) else dynamics
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps or self.dynamics.horizon
        self.single_observation_space = self.dynamics.observation_space
        self.single_action_space = self.dynamics.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._states = np.zeros((num_envs, self.dynamics.state_dims))

    @property
    def states(self) -> NDArray[np.float64]:
        """The states of the plants, one per row."""
        return self._states.copy()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode in each."""
        super().reset(seed=seed)
        self._steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)
        self.dynamics.plant.begin(~self._ended, self.np_random, self._states)
        return self.dynamics.plant.observe(self._states).astype(np.float32), {}

    def step(
        self, actions: Any
    ) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Make a step in each, or a reset where the episode has ended."""
        plant = self.dynamics.plant
        fresh = self._ended
        raw = np.array(actions, np.float64, order="C").reshape(self.num_envs, -1)
        observations, rewards, terminated = plant.step_rows(~fresh, raw, self._states)
        info = _info(self.dynamics, self._states, raw)
        self._steps += 1
        if fresh.any():
            plant.begin(fresh, self.np_random, self._states)
            observations = plant.observe(self._states)
            self._steps[fresh] = 0
        truncated = ~terminated & (self._steps >= self.max_episode_steps)
        self._ended = terminated | truncated
        return observations.astype(np.float32), rewards, terminated, truncated, info


class DynamicsEnv(gymnasium.Env[Any, Any]):
    """One episode of compiled dynamics."""

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(self, dynamics: str, render_mode: str | None = None) -> None:
        self.dynamics = DYNAMICS[dynamics]
        self.observation_space = self.dynamics.observation_space
        self.action_space = self.dynamics.action_space
        self.meaning: Meaning = self.dynamics.meaning
        self.render_mode = render_mode
        self._state = np.zeros((1, self.dynamics.state_dims))
        self._renderer: Any = None
        self._last_action: Any = None

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
        self._last_action = None
        if self.render_mode == "human":
            self.render()
        return self._get_obs(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make a step."""
        raw = np.array(action, np.float64).reshape(1, -1)
        observations, reward, terminated = self.dynamics.plant.step_rows(_ONE, raw, self._state)
        info = {name: rows[0] for name, rows in _info(self.dynamics, self._state, raw).items()}
        self._last_action = action
        if self.render_mode == "human":
            self.render()
        return observations[0].astype(np.float32), float(reward[0]), bool(terminated[0]), False, info

    def render(self) -> Any:
        """Render the state with the environment named by `renderer`."""
        if self.dynamics.renderer is None or self.render_mode is None:
            return None
        if self._renderer is None:
            self._renderer = gymnasium.make(self.dynamics.renderer, render_mode=self.render_mode).unwrapped
            self._renderer.reset()
        self._renderer.state = self._state[0].copy()
        if not isinstance(self.action_space, Discrete):
            self._renderer.last_u = None if self._last_action is None else float(self._last_action[0])
        return self._renderer.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._renderer is not None:
            self._renderer.close()


_ONE = np.ones(1, np.bool_)


def declares_cost(env: gymnasium.Env[Any, Any]) -> bool:
    """Return whether an environment charges a stage cost itself: by a wrapper, or by its equations."""
    plant = env.unwrapped
    equations = isinstance(plant, DynamicsEnv) and plant.dynamics.stage_cost is not None
    return equations or any(isinstance(layer, StageCostEnv) for layer in layers(env))
