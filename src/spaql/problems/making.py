"""Making a problem: what the environment declares, and what is asked for instead; also in other processes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.problems.classic import find_dynamics
from spaql.problems.environment import declares_cost
from spaql.problems.guard import Guard, GuardedEnv
from spaql.problems.meaning import check_meaning, meaning_of, renamed_meaning
from spaql.problems.plant_hash import environment_hash, equations_hash
from spaql.problems.problem import EnvironmentLike, Problem
from spaql.problems.registry import plant_of_file, spec_of
from spaql.problems.sources import EnvironmentSource, find_source, refuse_running_statistics, with_cost_option
from spaql.problems.stage_cost import ConstraintLike, StageCost, expression_names
from spaql.problems.variants import with_other_cost
from spaql.spaces import StandardActions, StandardStates, count_actions, given_names, unbounded
from spaql.values import real_number, whole_number


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
    parallel: bool | str = False,
    measured: bool = True,
    seed: int = 0,
    observation_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    setpoints: Mapping[str, str] | None = None,
    angles: Sequence[str] | None = None,
    sample_time: float | None = None,
    cost: str | None = None,
    constraints: Iterable[ConstraintLike] = (),
) -> Problem:
    """Return the problem of an environment.

    Parameters
    ----------
    env
        An environment's id (without a version, the newest one is used), a preset (`pendulum`, `pendulum5`,
        `cartpole200`), a Gymnasium environment, `Dynamics`, an FMU (`.fmu`, whose `options` are those of
        `spaql.plugins.fmu.FMUEnv`), or a problem, which is returned as it is.
        Of a Gymnasium environment copies are used, which a model file cannot name.
    horizon
        Steps after which an episode ends; the environment's own limit by default, the smallest if it has
        several. A longer one than the limit of an environment that is copied is refused.
    levels
        Discretise every component of a Box action into n levels.
    squash
        Observation dimensions to squash by tanh(x / scale), each with its scale. Other dimensions
        without bounds are measured by 1,000 random steps.
    reference
        Observation to reach, in raw units (for SPAQL-TS).
    reward_range
        Learn from rewards mapped from this range to [0, 1]; as they are by default.
    options
        Keyword arguments for the environment.
    compiled
        Use compiled dynamics if there are any: `Dynamics`, and Gymnasium's CartPole, Pendulum, MountainCar,
        MountainCarContinuous and Acrobot by their ids, whose compiled versions agree with them step by step.
    parallel
        Step the environments of an evaluation in separate processes, one for each of its episodes: for
        simulators that take a millisecond or more per step. The episodes of `TreeSearch` are played by a
        worker process for every core; or on a Ray cluster, if this is its address: `HOST:PORT`, `auto`, or
        `local` for a new one on this machine. The results are the same; compiled dynamics ignore it.
    measured
        Spend random steps on measuring dimensions without bounds. Otherwise they are squashed by tanh(x),
        which only suits algorithms that standardise by other means.
    seed
        Of the random steps.
    observation_names
        Names of the observations, with their units, such as `"position [m]"`: rules, pictures, exported code
        and the model file have them. Those of the plant by default, if it has any.
    action_names
        Names of the discrete actions, or of the components of an action, such as `"force [N]"`.
    setpoints
        Which observed number is to follow which observed set-point, by their names: evaluations then measure
        the closed loop. That of the plant by default, as `angles` and `sample_time` are.
    angles
        Observations that are angles in radians; or `x`, of which cos(x) and sin(x) are observed.
    sample_time
        Seconds between two actions.
    cost
        Cost of a step, instead of the reward: an expression such as `"angle**2 + u**2"`. It has the named
        observations at the end of the step and the action; names are written without units, with `_` for what
        is no letter or digit, and `action` is the number of a discrete action.
    constraints
        Expression that should hold after each step: episodes that violate it are counted. A pair of an
        expression and a price makes each step that violates it cost more.

    Examples
    --------
    >>> problem = make_problem("pendulum5")
    >>> problem.horizon, problem.actions.sizes, problem.reference
    (200, (5,), (1.0, 0.0, 0.0))
    """
    if isinstance(env, Problem):
        spaces = horizon, levels, squash, reference, reward_range, options, observation_names, action_names
        means = setpoints, angles, sample_time, cost, constraints or None
        _refuse_changes(*spaces, *means, not compiled, parallel or None)
        return env
    horizon = None if horizon is None else whole_number("horizon", horizon, least=1)
    if (cost is not None or constraints) and isinstance(env, str) and plant_of_file(env) is not None:
        options = with_cost_option(options or {}, cost, constraints)
        cost = None
        constraints = ()
    source, preset = find_source(env, options)
    if preset is not None:
        horizon = preset.horizon if horizon is None else horizon
        levels = preset.levels if levels is None else levels
        squash = squash or preset.squash
        reward_range = preset.reward_range if reward_range is None else reward_range
    levels = None if levels is None else whole_number("levels", levels, least=2)
    scales = checked_scales(squash)
    reward_range = (0.0, 1.0) if reward_range is None else checked_range(reward_range)
    seed = whole_number("seed", seed, least=0)
    with source.opened(horizon) as probe:
        refuse_running_statistics(probe)
        limit = source.horizon(horizon, probe)
        meaning = meaning_of(probe) if source.dynamics is None else source.dynamics.meaning
        plant = environment_hash(probe) if source.dynamics is None else equations_hash(source.dynamics)
        if source.dynamics is not None:
            source.dynamics.refuse_if_changed()
        states, interactions = standard_states(
            source, probe, limit, meaning.observations, scales, measured=measured, seed=seed
        )
        actions = StandardActions.of(probe.action_space, levels, meaning.actions)
        has_cost = bool(meaning.constraints) or declares_cost(probe)
    states, actions = _named(states, actions, observation_names, action_names)
    if reference is None and source.dynamics is not None:
        reference = source.dynamics.reference
    names = states.labels
    meaning = renamed_meaning(meaning, names)
    setpoints = dict(meaning.setpoints if setpoints is None else setpoints)
    angles = tuple(meaning.angles if angles is None else angles)
    sample_time = meaning.sample_time if sample_time is None else sample_time
    check_meaning(names, setpoints, angles, sample_time)
    dynamics = source.dynamics if compiled else None
    stage = None
    if cost is not None or constraints:
        if has_cost or (source.dynamics is not None and source.dynamics.stage_cost is not None):
            raise SettingError(f"{source.name} declares a cost or constraints itself: change them there.")
        stage = StageCost.of(cost, constraints, names, expression_names(actions))
        dynamics = None if dynamics is None else with_other_cost(dynamics, stage)
    return Problem(
        name=source.name,
        env=source.env,
        options=source.options,
        horizon=limit,
        states=states,
        actions=actions,
        reference=checked_reference(reference, states),
        reward_range=reward_range,
        dynamics=dynamics,
        setpoints=setpoints,
        angles=angles,
        sample_time=sample_time,
        interactions=interactions,
        parallel=parallel if isinstance(parallel, str) else bool(parallel),
        stage_cost=stage,
        constraints=meaning.constraints if stage is None else stage.constraints,
        plant=plant,
        template=source.template,
    )


def _refuse_changes(*settings: Any) -> None:
    """Refuse settings for a problem that is made already."""
    if any(setting is not None and setting is not False for setting in settings):
        raise SettingError("The problem is already made: give what is to change to make_problem.")


def _named(
    states: StandardStates,
    actions: StandardActions,
    observation_names: Sequence[str] | None,
    action_names: Sequence[str] | None,
) -> tuple[StandardStates, StandardActions]:
    """Return the spaces with the names that were asked for, if there are any."""
    if observation_names is not None:
        names = given_names("observation_names", observation_names, states.dims)
        states = replace(states, names=names)
    if action_names is not None:
        names = given_names("action_names", action_names, count_actions(actions.space))
        actions = replace(actions, names=names)
    return states, actions


def checked_reference(reference: Sequence[float] | None, states: StandardStates) -> tuple[float, ...] | None:
    """Return the observation to reach; anything else is refused."""
    if reference is None:
        return None
    if len(reference) != states.dims:
        raise SettingError(
            f"The reference is an observation of {states.dims} numbers, and {len(reference)} were given."
        )
    return tuple(real_number("reference", x) for x in reference)


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


def send(problem: Problem, instead: str) -> bytes:
    """Return a problem pickled for another process, which finds compiled dynamics by their module and id.

    `instead` says in an error what else to do.
    """
    plant = problem.dynamics
    spec = None
    if plant is not None and problem.stage_cost is not None:  # made again there from the plant without it
        assert problem.env is not None
        plant = find_dynamics(problem.env)
    if problem.env is not None and ":" not in problem.env:
        spec = spec_of(problem.env)
    home = None if plant is None else (plant.step.__module__, plant.id, plant.digest)
    try:
        return pickle.dumps((dataclasses.replace(problem, dynamics=None), spec, home))
    except Exception as error:  # pickle, and what it is given, may raise anything
        raise SettingError(
            f"{problem.name} cannot be sent to a worker process ({error}): define it in a module and give "
            f"its name, or {instead}."
        ) from error


def receive(sent: bytes, instead: str) -> Problem:
    """Return the problem that `send` pickled in another process."""
    try:
        problem: Problem
        spec: EnvSpec | None
        problem, spec, home = pickle.loads(sent)
    except Exception as error:
        raise SettingError(f"The problem cannot be made in a worker process ({error}): {instead}.") from error
    if problem.env is not None and ":" in problem.env:
        spec_of(problem.env)  # imports its module
    if home is not None:
        module, name, digest = home
        if find_dynamics(name) is None:
            import_module(module)
        plant = find_dynamics(name)
        if plant is None or plant.digest != digest:
            raise SettingError(
                f"{name} is not made, or not as it was, when {module} is imported in a worker process: make "
                f"it at the top level of a module, or {instead}."
            )
        if problem.stage_cost is not None:
            plant = with_other_cost(plant, problem.stage_cost)
        problem = dataclasses.replace(problem, dynamics=plant)
    if spec is not None:
        gymnasium.registry.setdefault(spec.id, spec)
    return problem
