"""How a problem standardises observations, actions and rewards."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.problems.guard import Guard, GuardedEnv
from spaql.problems.meaning import Meaning
from spaql.problems.presets import Preset
from spaql.problems.sources import EnvironmentSource
from spaql.spaces import StandardActions, StandardStates, unbounded
from spaql.values import real_number, whole_number

Environment = gymnasium.Env[Any, Any]
SCALE_STEPS = 1_000
"""Random steps by which unbounded observation dimensions are measured."""


@dataclass(frozen=True, kw_only=True)
class Standardisation:
    """The settings of `make_problem` for its standard spaces, checked."""

    levels: int | None
    squash: Mapping[int, float]
    reward_range: tuple[float, float]
    measured: bool
    seed: int

    @classmethod
    def of(
        cls,
        preset: Preset | None,
        *,
        levels: int | None,
        squash: Mapping[int, float] | None,
        reward_range: tuple[float, float] | None,
        measured: bool,
        seed: int,
    ) -> Standardisation:
        """Return the settings, by default those of the preset."""
        levels = None if levels is None else whole_number("levels", levels, least=2)
        if preset is not None:
            levels = preset.levels if levels is None else levels
            squash = squash or preset.squash
            reward_range = preset.reward_range if reward_range is None else reward_range
        scales = {
            whole_number("A dimension to squash", j, least=0): real_number("A scale of squash", x, above=0)
            for j, x in (squash or {}).items()
        }
        return cls(
            levels=levels,
            squash=scales,
            reward_range=(0.0, 1.0) if reward_range is None else _range(reward_range),
            measured=measured,
            seed=whole_number("seed", seed, least=0),
        )

    def samples(
        self, source: EnvironmentSource, probe: Environment, horizon: int, step_timeout: float | None
    ) -> NDArray[np.float64] | None:
        """Return observations of random steps; None if no dimension is to be measured by them."""
        if not self.measured or not self._without_scale(probe).any():
            return None
        return _random_observations(source, horizon, probe, self.seed, step_timeout)

    def spaces(
        self, probe: Environment, samples: NDArray[np.float64] | None, meaning: Meaning
    ) -> tuple[StandardStates, StandardActions]:
        """Return the standard spaces of an environment, with the names that it declares."""
        squash = dict(self.squash)
        if not self.measured:
            squash |= {int(j): 1.0 for j in np.flatnonzero(self._without_scale(probe))}
        states = StandardStates.of(probe.observation_space, squash, samples, meaning.observations)
        return states, StandardActions.of(probe.action_space, self.levels, meaning.actions)

    def _without_scale(self, probe: Environment) -> NDArray[np.bool_]:
        """Return which dimensions of an observation have neither bounds nor a scale in the settings."""
        dimensions = unbounded(probe.observation_space)
        dimensions[[j for j in self.squash if j in range(len(dimensions))]] = False
        return dimensions


def _range(ends: Sequence[float]) -> tuple[float, float]:
    """Return a pair of numbers, the lower one first; anything else is refused."""
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise SettingError(f"reward_range is {ends!r}, and must be two numbers, the lower one first.")
    low, high = (real_number("An end of reward_range", end) for end in ends)
    return low, high


def _random_observations(
    source: EnvironmentSource, horizon: int, probe: Environment, seed: int, step_timeout: float | None
) -> NDArray[np.float64]:
    """Return the observations of `SCALE_STEPS` steps of random episodes."""
    actions = copy.deepcopy(probe.action_space)
    actions.seed(seed)
    guard = Guard(source.name, probe.observation_space, "a random episode")
    env = GuardedEnv(
        lambda: source.probe(horizon), guard, (probe.observation_space, probe.action_space), step_timeout
    )
    rows = []
    ended = True
    with closing(env):
        for step in range(SCALE_STEPS):
            if ended:
                env.reset(seed=seed + step)
            observation, _, terminated, truncated = env.step(actions.sample())
            ended = terminated or truncated
            rows.append(np.asarray(observation, np.float64).ravel())
    return np.array(rows)
