"""Dynamics as a Gymnasium environment, and the disturbances of a plant for any environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import UnsupportedSpaceError
from spaql.problems.disturbances import checked
from spaql.problems.dynamics import DYNAMICS
from spaql.problems.meaning import Meaning
from spaql.problems.sources import layers
from spaql.problems.stage_cost import BROKEN, StageCostEnv
from spaql.spaces import space_bounds

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


Environment = gymnasium.Env[Any, Any]


class DisturbedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment with disturbances, which `spaql.Dynamics` declares for a plant.

    They are drawn by a generator of their own, which a reset with a seed seeds: the environment starts as
    without them.

    Parameters
    ----------
    env
        The environment.
    noise
        Standard deviation of the noise on observations, by their numbers; noisy integers are rounded, and
        stay in their range.
    late_observations
        Whether an observation is that of the step before; the first one is observed twice.
    action_noise
        Standard deviation of the noise on actions, by their numbers, before the actuator; of discrete
        actions, the probability that a random action replaces one.
    delay
        Dead time of the action in samples.
    gain
        Every episode draws the gain of each actuator between 1 - gain and 1 + gain.

    Examples
    --------
    >>> env = DisturbedEnv(gymnasium.make("Pendulum-v1"), noise={2: 0.1}, delay=1)
    >>> env.reset(seed=0)[0].shape
    (3,)
    """

    def __init__(
        self,
        env: Environment,
        *,
        noise: Mapping[int, float] | None = None,
        late_observations: bool = False,
        action_noise: Mapping[int, float] | None = None,
        delay: int = 0,
        gain: float = 0.0,
    ) -> None:
        super().__init__(env)
        observations = env.observation_space
        done = env.action_space
        if len(done.shape or ()) > 1:
            raise UnsupportedSpaceError(f"Disturbances need simple actions, not {done}.")
        self._observations = _ranges(observations)
        self._declared = checked(
            self._observations,
            [str(j) for j in range(int(done.n))] if isinstance(done, Discrete) else _ranges(done),
            noise=_by_name(noise),
            late_observations=late_observations,
            action_noise=_by_name(action_noise),
            delay=delay,
            gain=gain,
        )
        self._generator = np.random.default_rng()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, and draw what disturbs it."""
        observation, info = super().reset(seed=seed, options=options)
        if seed is not None:
            self._generator = np.random.default_rng([seed, 3])
        declared = self._declared
        rng = self._generator
        low = np.array(declared.low)
        high = np.array(declared.high)
        self._gains = rng.uniform(1.0 - declared.gain, 1.0 + declared.gain, len(low))
        resting = np.clip(np.zeros(len(low)), low, high) if declared.low else self.action_space.start  # type: ignore[attr-defined]
        self._line = [resting] * (1 + declared.delay[1])
        self._waiting = observation
        return self._noisy(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Make a step with the action that reaches the plant."""
        self._line = [self._sent(action), *self._line[:-1]]
        applied = self._line[-1]
        if self._declared.low:
            applied = applied.astype(self.action_space.dtype)
        observation, reward, terminated, truncated, info = super().step(applied)
        shown = self._waiting if self._declared.late_observations else observation
        self._waiting = observation
        return self._noisy(shown), reward, terminated, truncated, info

    def _sent(self, action: Any) -> Any:
        """Return what the actuator makes of an action: noise, range and gain."""
        declared = self._declared
        space = self.action_space
        noise = declared.action_noise
        rng = self._generator
        if isinstance(space, Discrete):
            is_replaced = any(noise) and rng.random() < noise[int(action - space.start)]
            return space.start + rng.integers(space.n) if is_replaced else action
        low = np.array(declared.low)
        high = np.array(declared.high)
        wanted = np.asarray(action, np.float64)
        if any(noise):
            wanted = wanted + rng.normal(size=len(noise)) * noise
        return np.clip(np.clip(wanted, low, high) * self._gains, low, high)

    def _noisy(self, observation: Any) -> Any:
        if not any(self._declared.noise):
            return observation
        most = np.array(self._declared.most_noise)
        noise = np.clip(self._generator.normal(size=len(most)) * self._declared.noise, -most, most)
        array = np.asarray(observation)
        noisy = array.ravel() + noise
        if array.dtype.kind in "iu":
            low, high = np.array(list(self._observations.values())).T
            noisy = np.clip(np.rint(noisy), low, high)
        return noisy.reshape(array.shape).astype(array.dtype)[()]


def _ranges(space: gymnasium.Space[Any]) -> dict[str, tuple[float, float]]:
    """Return the range of each number of a space, by its place."""
    if not isinstance(space, Box | Discrete):
        raise UnsupportedSpaceError(f"Disturbances need a Box or Discrete space, not {space}.")
    low, high = (ends.tolist() for ends in space_bounds(space))
    return {str(j): ends for j, ends in enumerate(zip(low, high, strict=True))}


def _by_name(values: Mapping[int, Any] | None) -> dict[str, Any]:
    return {str(j): value for j, value in (values or {}).items()}
