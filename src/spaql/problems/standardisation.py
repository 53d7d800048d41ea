"""How a problem standardises observations, actions and rewards."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.problems.guard import Guard, GuardedEnv
from spaql.problems.sources import EnvironmentSource
from spaql.spaces import StandardStates, unbounded
from spaql.values import real_number, whole_number

Environment = gymnasium.Env[Any, Any]
SCALE_STEPS = 1_000
"""Random steps by which unbounded observation dimensions are measured."""


def checked_scales(squash: Mapping[int, float] | None) -> dict[int, float]:
    """Return the dimensions to squash, each with its scale; anything else is refused."""
    return {
        whole_number("A dimension to squash", j, least=0): real_number("A scale of squash", x, above=0)
        for j, x in (squash or {}).items()
    }


def checked_range(ends: Sequence[float]) -> tuple[float, float]:
    """Return the range of rewards, the lower end first; anything else is refused."""
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise SettingError(f"reward_range is {ends!r}, and must be two numbers, the lower one first.")
    low, high = (real_number("An end of reward_range", end) for end in ends)
    return low, high


def standard_states(
    source: EnvironmentSource,
    probe: Environment,
    horizon: int,
    names: tuple[str, ...],
    scales: Mapping[int, float],
    *,
    measured: bool,
    seed: int,
) -> tuple[StandardStates, int]:
    """Return the standard space of observations, and the random steps that measured it.

    Dimensions that have neither bounds nor a scale are measured, or squashed by tanh(x).
    """
    space = probe.observation_space
    without_scale = unbounded(space)
    without_scale[[j for j in scales if j in range(len(without_scale))]] = False
    if measured and without_scale.any():
        samples = _random_observations(source, horizon, probe, seed)
        return StandardStates.of(space, scales, samples, names), len(samples)
    squash = {**scales, **{int(j): 1.0 for j in np.flatnonzero(without_scale)}}
    return StandardStates.of(space, squash, None, names), 0


def _random_observations(
    source: EnvironmentSource, horizon: int, probe: Environment, seed: int
) -> NDArray[np.float64]:
    """Return the observations of `SCALE_STEPS` steps of random episodes."""
    actions = copy.deepcopy(probe.action_space)
    actions.seed(seed)
    guard = Guard(source.name, probe.observation_space, "a random episode")
    env = GuardedEnv(lambda: source.probe(horizon), guard, (probe.observation_space, probe.action_space))
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
