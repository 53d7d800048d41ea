"""A problem: how to make an environment, and how its numbers become standard ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SettingError
from spaql.problems.presets import PRESETS, REFERENCES
from spaql.spaces import StandardActions, StandardStates, unbounded

Environment = gymnasium.Env[Any, Any]
SCALE_STEPS = 1_000
"""Random steps by which unbounded observation dimensions are measured."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An environment with a horizon, a standard space and, for regulators, a reference.

    Made by `make_problem`. The policy learned on it carries `states` and `actions`, so it takes raw
    observations and gives raw actions with nothing else to keep.
    """

    name: str
    env: str | None
    """The environment's id, or None for an environment that was given as an object."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment."""
    horizon: int
    states: StandardStates
    actions: StandardActions
    reference: tuple[float, ...] | None = None
    """The observation that a regulator is to reach, in raw units."""
    reward_range: tuple[float, float] | None = None
    """Rewards to learn from are mapped from this range to [0, 1]; returns stay raw."""
    interactions: int = 0
    """Environment steps spent on measuring unbounded dimensions."""
    factory: Callable[[], Environment] | None = field(default=None, repr=False, compare=False)

    def make(self) -> Environment:
        """Make a fresh environment that truncates episodes at the horizon."""
        if self.factory is not None:
            return self.factory()
        if self.env is None:
            raise BadEnvironmentError(
                "This policy was trained on an environment given as an object, which a model file cannot "
                "hold: pass it again, as in spaql.load(path, env=...)."
            )
        return _make(self.env, self.horizon, self.options)

    def make_vector(self, n: int) -> VectorEnv[Any, Any, Any]:
        """Make n environments that are stepped together, Gymnasium's own where it has one."""
        if self.factory is None and self.env is not None:
            spec = gymnasium.spec(self.env)
            if spec.vector_entry_point is not None and not self.options:
                return gymnasium.make_vec(self.env, n, max_episode_steps=self.horizon)
        return SyncVectorEnv([self.make] * n, autoreset_mode=AutoresetMode.NEXT_STEP)

    def learning_reward(self, reward: float) -> float:
        """Give the reward that the algorithm learns from."""
        if self.reward_range is None:
            return reward
        low, high = self.reward_range
        return (reward - low) / (high - low)


EnvironmentLike = str | Environment | Problem


def make_problem(
    env: EnvironmentLike,
    *,
    horizon: int | None = None,
    levels: int | None = None,
    squash: Mapping[int, float] | None = None,
    reference: Sequence[float] | None = None,
    reward_range: tuple[float, float] | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Problem:
    """Make a problem from an environment.

    Parameters
    ----------
    env
        An environment's id, a preset (`pendulum`, `pendulum5`, `cartpole200`), a Gymnasium environment,
        or a problem, which is returned as it is.
    horizon
        Steps after which an episode ends; the environment's own limit by default.
    levels
        Cut a Box of actions into this many levels in each dimension.
    squash
        Observation dimensions to squash by tanh(x / scale), each with its scale. Other dimensions
        without bounds are measured by 1,000 random steps.
    reference
        The observation to reach, in raw units (for SPAQL-TS).
    reward_range
        Learn from rewards mapped from this range to [0, 1].
    options
        Keyword arguments for the environment.
    seed
        Of the random steps.

    Examples
    --------
    >>> problem = make_problem("pendulum5")
    >>> problem.horizon, problem.actions.sizes, problem.reference
    (200, (5,), (1.0, 0.0, 0.0))
    """
    given = {
        "horizon": horizon,
        "levels": levels,
        "squash": squash,
        "reference": reference,
        "reward_range": reward_range,
        "options": options,
    }
    if isinstance(env, Problem):
        extra = [name for name, value in given.items() if value is not None]
        if extra:
            raise SettingError(f"The problem is already made: give {', '.join(extra)} to make_problem.")
        return env
    name = env if isinstance(env, str) else None
    if isinstance(env, str) and env in PRESETS:
        preset = PRESETS[env]
        env = preset.env
        horizon = horizon or preset.horizon
        levels = levels or preset.levels
        squash = squash or preset.squash
    if horizon is not None and horizon < 1:
        raise SettingError("The horizon is a number of steps, 1 or more.")
    options = dict(options or {})
    if isinstance(env, str):
        env_id: str | None = env
        probe = _make(env, horizon, options)
        factory = None
    else:
        spec = env.spec
        env_id = spec.id if spec is not None and not spec.additional_wrappers else None
        options = dict(spec.kwargs) if spec is not None and env_id else {}
        options.pop("render_mode", None)
        probe = env
        factory = None
    limit = horizon or _time_limit(probe)
    if limit is None:
        raise SettingError(
            f"{name or probe} sets no limit to an episode: give a horizon, the number of steps of one."
        )
    if env_id is None:
        factory = _replicator(probe, limit)
    try:
        samples = None
        spent = 0
        endless = unbounded(probe.observation_space)
        endless[list(squash or {})] = False
        if endless.any():
            samples = _random_observations(factory() if factory else probe, limit, seed)
            spent = SCALE_STEPS
        states = StandardStates.of(probe.observation_space, squash, samples)
        actions = StandardActions.of(probe.action_space, levels)
    finally:
        if probe is not env:
            probe.close()
    return Problem(
        name=name or env_id or type(probe.unwrapped).__name__,
        env=env_id,
        options=options,
        horizon=limit,
        states=states,
        actions=actions,
        reference=_reference(reference, env_id, states.dims),
        reward_range=_checked_range(reward_range),
        interactions=spent,
        factory=factory,
    )


def _make(env: str, horizon: int | None, options: Mapping[str, Any]) -> Environment:
    limit = {} if horizon is None else {"max_episode_steps": horizon}
    try:
        return gymnasium.make(env, disable_env_checker=True, **limit, **options)
    except (gymnasium.error.Error, ImportError) as error:
        presets = ", ".join(PRESETS)
        raise BadEnvironmentError(
            f"Gymnasium cannot make {env!r}: {error} (Presets beside Gymnasium's ids: {presets}.)"
        ) from error


def _time_limit(env: Environment) -> int | None:
    return env.spec.max_episode_steps if env.spec is not None else None


def _replicator(env: Environment, horizon: int) -> Callable[[], Environment]:
    """Give a function that makes copies of an environment which has no id."""

    def replica() -> Environment:
        return TimeLimit(copy.deepcopy(env), horizon)

    return replica


def _random_observations(env: Environment, horizon: int, seed: int) -> NDArray[np.float64]:
    """Observe `SCALE_STEPS` steps of random episodes."""
    env.action_space.seed(seed)
    rows, ended = [], True
    for step in range(SCALE_STEPS):
        if ended:
            env.reset(seed=seed + step)
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        ended = terminated or truncated
        rows.append(np.asarray(observation, np.float64).ravel())
    samples = np.array(rows)
    if not np.isfinite(samples).all():
        raise BadEnvironmentError("The environment gave an observation that is infinite or NaN.")
    return samples


def _reference(given: Sequence[float] | None, env_id: str | None, dims: int) -> tuple[float, ...] | None:
    if given is None:
        return REFERENCES.get(env_id.split("-v")[0]) if env_id else None
    if len(given) != dims:
        raise SettingError(f"The reference is an observation of {dims} numbers, and {len(given)} were given.")
    return tuple(float(x) for x in given)


def _checked_range(given: tuple[float, float] | None) -> tuple[float, float] | None:
    if given is not None and not given[0] < given[1]:
        raise SettingError("The reward range is two numbers, the lower one first.")
    return given
