"""A problem: how to make an environment, and how its numbers become standard ones."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SettingError
from spaql.problems.classic import find_dynamics
from spaql.problems.dynamics import Dynamics
from spaql.problems.environment import DynamicsEnv, DynamicsVectorEnv
from spaql.problems.guard import Guard, GuardedEnv, apart
from spaql.problems.named import is_model_file, make_named, spec_of
from spaql.problems.presets import PRESETS, Preset
from spaql.spaces import StandardActions, StandardStates, unbounded
from spaql.values import real_number, whole_number

Environment = gymnasium.Env[Any, Any]
LEARNED = "spaql.model:spaql/LearnedPlant-v0"
"""The environment that a model file of a learned plant is."""
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
    reward_range: tuple[float, float] = (0.0, 1.0)
    """Rewards to learn from are mapped from this range to [0, 1]; returns stay raw."""
    dynamics: Dynamics | None = None
    """What is trained and evaluated on in compiled code, instead of the environment."""
    interactions: int = 0
    """Environment steps spent on measuring unbounded dimensions."""
    parallel: bool = False
    """Step the environments of an evaluation in processes of their own: for slow simulators."""
    step_timeout: float | None = None
    """Seconds that a step of an environment may take."""
    template: Environment | None = field(default=None, repr=False, compare=False)
    """The environment that was given as an object."""

    def make(self) -> Environment:
        """Make a fresh environment that truncates episodes at the horizon."""
        if self.template is not None:
            return _replica(self.template, self.horizon)
        if self.env is None:
            raise BadEnvironmentError(
                "This policy was trained on an environment given as an object, which a model file cannot "
                "hold: pass it again, as in spaql.load(path, env=...)."
            )
        return make_named(self.env, self.horizon, self.options)

    def make_vector(self, n: int) -> VectorEnv[Any, Any, Any]:
        """Make n environments that are stepped together, Gymnasium's own where it has one."""
        if self.dynamics is not None:
            return DynamicsVectorEnv(self.dynamics.id, n, self.horizon)
        if self.parallel or self.step_timeout is not None:
            return apart(self.make, n)
        plain = self.template is None and not self.options
        if plain and self.env is not None and spec_of(self.env).vector_entry_point is not None:
            return gymnasium.make_vec(self.env, n, max_episode_steps=self.horizon)
        return SyncVectorEnv([self.make] * n, autoreset_mode=AutoresetMode.NEXT_STEP)

    def learning_reward(self, reward: float) -> float:
        """Give the reward that the algorithm learns from."""
        low, high = self.reward_range
        return (reward - low) / (high - low)


EnvironmentLike = str | Environment | Dynamics | Problem


def make_problem(
    env: EnvironmentLike,
    *,
    horizon: int | None = None,
    levels: int | None = None,
    squash: Mapping[int, float] | None = None,
    reference: Sequence[float] | None = None,
    reward_range: tuple[float, float] | None = None,
    options: Mapping[str, Any] | None = None,
    compiled: bool = True,
    parallel: bool = False,
    measured: bool = True,
    step_timeout: float | None = None,
    seed: int = 0,
) -> Problem:
    """Make a problem from an environment.

    Parameters
    ----------
    env
        An environment's id, a preset (`pendulum`, `pendulum5`, `cartpole200`), a Gymnasium environment,
        `Dynamics`, the model file of a learned plant (`.spaql`), or a problem, which is returned as it is.
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
        Learn from rewards mapped from this range to [0, 1]; as they are by default.
    options
        Keyword arguments for the environment.
    compiled
        Use compiled dynamics where there are: `Dynamics`, and Gymnasium's CartPole, Pendulum, MountainCar,
        MountainCarContinuous and Acrobot, whose compiled twins agree with them step by step.
    parallel
        Step the environments of an evaluation in processes of their own, one for each of its episodes:
        for simulators that take a millisecond or more a step. The results are the same; compiled dynamics
        need no such help and ignore it.
    measured
        Spend random steps on measuring dimensions without bounds. Otherwise they are squashed by tanh(x),
        which only suits who standardises by other means.
    step_timeout
        Seconds that a step (or reset) may take; past them `BadEnvironmentError` is raised, and what was
        learned before the iteration is kept. All environments then run in processes of their own, which can
        be killed whatever they are at; compiled dynamics, which cannot, are not used. Steps of an evaluation
        are made together, so there it is the time until the last has made its own.
    seed
        Of the random steps.

    Examples
    --------
    >>> problem = make_problem("pendulum5")
    >>> problem.horizon, problem.actions.sizes, problem.reference
    (200, (5,), (1.0, 0.0, 0.0))
    """
    if isinstance(env, Problem):
        asked = (horizon, levels, squash, reference, reward_range, options)
        if any(value is not None for value in (*asked, step_timeout)) or not compiled or parallel:
            raise SettingError("The problem is already made: give what is to change to make_problem.")
        return env
    horizon = None if horizon is None else whole_number("horizon", horizon, least=1)
    levels = None if levels is None else whole_number("levels", levels, least=2)
    step_timeout = None if step_timeout is None else real_number("step_timeout", step_timeout, above=0)
    source, preset = _source(env, options)
    horizon = horizon or (preset.horizon if preset else None)
    levels = levels or (preset.levels if preset else None)
    squash = {
        whole_number("A dimension to squash", j, least=0): real_number("A scale of squash", x, above=0)
        for j, x in (squash or (preset.squash if preset else {})).items()
    }
    if reward_range is None:
        reward_range = preset.reward_range if preset else (0.0, 1.0)
    reward_range = _range(reward_range)
    probe = source.probe(horizon)
    try:
        limit = horizon or _time_limit(probe)
        if limit is None:
            raise SettingError(
                f"{source.name} sets no limit to an episode: give a horizon, the steps of one (--horizon N)."
            )
        endless = unbounded(probe.observation_space)
        endless[[j for j in squash if j in range(len(endless))]] = False
        if not measured:
            squash = {**squash, **{int(j): 1.0 for j in np.flatnonzero(endless)}}
            endless[:] = False
        samples = _random_observations(source, limit, probe, seed, step_timeout) if endless.any() else None
        plant = source.dynamics
        seen, done = (tuple(plant.observations), tuple(plant.actions)) if plant is not None else ((), ())
        states = StandardStates.of(probe.observation_space, squash, samples, seen)
        actions = StandardActions.of(probe.action_space, levels, done)
    finally:
        if probe is not env:
            probe.close()
    if reference is None:
        reference = source.dynamics.reference if source.dynamics else None
    elif len(reference) != states.dims:
        raise SettingError(
            f"The reference is an observation of {states.dims} numbers, and {len(reference)} were given."
        )
    return Problem(
        name=source.name,
        env=source.env,
        options=source.options,
        horizon=limit,
        states=states,
        actions=actions,
        reference=None if reference is None else tuple(real_number("reference", x) for x in reference),
        reward_range=reward_range,
        dynamics=source.dynamics if compiled and step_timeout is None else None,
        interactions=0 if samples is None else len(samples),
        parallel=bool(parallel),
        step_timeout=step_timeout,
        template=source.template,
    )


def _range(given: Sequence[float]) -> tuple[float, float]:
    """Read two numbers, the lower one first."""
    if len(given) != 2 or not given[0] < given[1]:
        raise SettingError(f"reward_range is {given!r}, and must be two numbers, the lower one first.")
    low, high = (real_number("An end of reward_range", end) for end in given)
    return low, high


@dataclass(frozen=True)
class _Source:
    """Where environments come from: an id with options, or an object to copy."""

    name: str
    env: str | None
    options: Mapping[str, Any]
    template: Environment | None
    dynamics: Dynamics | None

    def probe(self, horizon: int | None) -> Environment:
        """Give an environment to look at."""
        if self.template is not None:
            return self.template if horizon is None else _replica(self.template, horizon)
        assert self.env is not None
        return make_named(self.env, horizon, self.options)


def _source(
    env: str | Environment | Dynamics, options: Mapping[str, Any] | None
) -> tuple[_Source, Preset | None]:
    if isinstance(env, Dynamics):
        return _Source(env.id, env.id, {}, None, env), None
    if isinstance(env, str):
        if is_model_file(env):
            return _Source(env, LEARNED, {"model": env, **(options or {})}, None, None), None
        preset = PRESETS.get(env)
        env_id = preset.env if preset else env
        if ":" in env_id:
            spec_of(env_id)  # a module that is imported may define dynamics
        dynamics = None if options else find_dynamics(env_id)
        return _Source(env, env_id, dict(options or {}), None, dynamics), preset
    if not isinstance(env, gymnasium.Env):
        raise SettingError(
            f"env is a {type(env).__name__}, and must be an environment's id, a plant, or one Gymnasium "
            "environment, of which as many copies are made as are needed."
        )
    spec = env.spec
    name = type(env.unwrapped).__name__
    if spec is None or spec.additional_wrappers:
        return _Source(name, None, {}, env, None), None
    plain = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    dynamics = find_dynamics(spec.id)
    if isinstance(env.unwrapped, DynamicsEnv):
        plain.pop("dynamics")
    elif plain:
        dynamics = None
    return _Source(spec.id, spec.id, plain, None, dynamics), None


def _time_limit(env: Environment) -> int | None:
    """Give the steps after which an environment truncates an episode, if it says so."""
    if env.spec is not None and env.spec.max_episode_steps is not None:
        return env.spec.max_episode_steps
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            return env._max_episode_steps
        env = env.env
    return None


def _replica(env: Environment, horizon: int) -> Environment:
    """Copy an environment that has no id."""
    return TimeLimit(copy.deepcopy(env), horizon)


def _random_observations(
    source: _Source, horizon: int, probe: Environment, seed: int, step_timeout: float | None
) -> NDArray[np.float64]:
    """Observe `SCALE_STEPS` steps of random episodes."""
    actions = copy.deepcopy(probe.action_space)
    actions.seed(seed)
    guard = Guard(source.name, probe.observation_space, "a random episode")
    env = GuardedEnv(
        lambda: source.probe(horizon), guard, (probe.observation_space, probe.action_space), step_timeout
    )
    rows, ended = [], True
    with closing(env):
        for step in range(SCALE_STEPS):
            if ended:
                env.reset(seed=seed + step)
            observation, _, terminated, truncated = env.step(actions.sample())
            ended = terminated or truncated
            rows.append(np.asarray(observation, np.float64).ravel())
    return np.array(rows)
