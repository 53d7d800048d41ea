"""A problem: how to make an environment, and how to standardise its observations and actions."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SettingError
from spaql.problems.classic import find_dynamics
from spaql.problems.disturbed_env import DisturbedEnv
from spaql.problems.dynamics import Dynamics, check_meaning
from spaql.problems.environment import DynamicsEnv, DynamicsVectorEnv
from spaql.problems.given import layers
from spaql.problems.guard import CheckedResults, Guard, GuardedEnv, in_processes
from spaql.problems.meaning import meaning_of
from spaql.problems.perturbed import with_other_cost
from spaql.problems.plant_hash import PlantHash, environment_hash, equations_hash, file_hash, warn_of_change
from spaql.problems.registry import make_named, plant_of_file, spec_of
from spaql.problems.sources import (
    Source,
    file_option,
    find_source,
    limited_copy,
    refuse_running_statistics,
)
from spaql.problems.stage_cost import (
    LISTED,
    Constraint,
    ConstraintLike,
    StageCost,
    StageCostEnv,
    constraints_of,
)
from spaql.spaces import StandardActions, StandardStates, count_actions, given_names, unbounded
from spaql.spaces import action_names as all_action_names
from spaql.spaces import observation_names as all_names
from spaql.values import real_number, whole_number

Environment = gymnasium.Env[Any, Any]
SCALE_STEPS = 1_000
"""Random steps by which unbounded observation dimensions are measured."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An environment with a horizon, a standard space and, for regulators, a reference.

    Made by `make_problem`. The policy learned on it contains `states` and `actions`, so it maps raw
    observations to raw actions on its own.
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
    """Compiled dynamics for training and evaluation, instead of the environment."""
    setpoints: Mapping[str, str] = field(default_factory=dict)
    """Which observed number is to follow which observed set-point, by name."""
    angles: tuple[str, ...] = ()
    """Observations that are angles in radians; or `x`, of which cos(x) and sin(x) are observed."""
    sample_time: float | None = None
    """Seconds between two actions, if known."""
    interactions: int = 0
    """Environment steps spent on measuring unbounded dimensions."""
    parallel: bool | str = False
    """Whether to step the environments of an evaluation in separate processes: for slow simulators. If it is
    the address of a Ray cluster, the episodes of a search are played there."""
    step_timeout: float | None = None
    """Seconds that a step of an environment may take."""
    stage_cost: StageCost | None = None
    """Cost and constraints that were given for an environment that declares none, as expressions."""
    constraints: tuple[Constraint, ...] = ()
    """All that evaluations count, those that the plant declares included."""
    disturbances: Mapping[str, Any] = field(default_factory=dict)
    """Disturbances of an environment that declares none, as `DisturbedEnv` takes them."""
    plant: PlantHash = field(default_factory=dict)
    """Hashes of the plant that it was made from, as a model file keeps them."""
    log: Mapping[str, Any] | None = None
    """How it was made from a log, as plain data, for a problem without an environment (see `spaql.fit`)."""
    template: Environment | None = field(default=None, repr=False, compare=False)
    """A copy of the environment that was given as an object."""

    @property
    def setpoint_places(self) -> list[tuple[int, int]]:
        """The places in an observation of each number that has a set-point, and of its set-point."""
        names = all_names(self.states.space, self.states.names)
        return [(names.index(number), names.index(goal)) for number, goal in self.setpoints.items()]

    @property
    def runs_on(self) -> str:
        """What is trained and evaluated on, as text.

        Examples
        --------
        >>> make_problem("Pendulum-v1").runs_on
        'the compiled dynamics spaql/Pendulum-v1'
        >>> make_problem("Pendulum-v1", compiled=False).runs_on
        "gymnasium.make('Pendulum-v1')"
        >>> make_problem(gymnasium.make("Pendulum-v1")).runs_on.partition(" (")[0]
        'copies of the PendulumEnv that was given'
        """
        return self._runs_on + ("" if self.stage_cost is None else f", with {self.stage_cost}")

    @property
    def _runs_on(self) -> str:
        if self.dynamics is not None:
            return f"the compiled dynamics {self.dynamics.id}"
        if self.template is not None:
            plant = self.template.unwrapped
            copies = f"copies of the {type(plant).__name__} that was given"
            if plant.spec is None or find_dynamics(plant.spec.id) is None:
                return copies
            return f'{copies} ("{plant.spec.id}" as an id trains on compiled dynamics, which is faster)'
        if self.env is None and self.log is not None:
            return "no environment: it was made from a log"
        if self.env is None:
            return "an environment that was given as an object, and is to be given again"
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"gymnasium.make({self.env!r}{options})"

    def make(self) -> Environment:
        """Return a new environment that truncates episodes at the horizon."""
        env = self._make()
        if self.stage_cost is not None and not _is_judged(env):
            env = StageCostEnv(env, self.stage_cost)
        return DisturbedEnv(env, **self.disturbances) if self.disturbances else env

    def _make(self) -> Environment:
        if self.template is not None:
            return limited_copy(self.template, self.horizon)
        if self.env is None and self.log is not None:
            raise BadEnvironmentError(
                "This policy was fitted to a log, so there is no environment to run it in: give one with the "
                "same observations and actions.",
                settings={"env": "ID"},
            )
        if self.env is None:
            raise BadEnvironmentError(
                "This policy was trained on an environment given as an object, which a model file cannot "
                "hold: pass it again, as in spaql.load(path, env=...)."
            )
        env = make_named(self.env, self.horizon, self.options)
        self._compare(env)
        return env

    @property
    def plant_now(self) -> PlantHash:
        """Hashes of the plant as it is now, where no environment has to be made for it; empty otherwise."""
        if (option := file_option(self.env)) is not None:
            return file_hash(str(self.options.get(option)))
        dynamics = None if self.env is None or self.options else find_dynamics(self.env)
        return {} if dynamics is None else equations_hash(dynamics)

    def _compare(self, env: Environment) -> None:
        """Warn once if an environment is not the plant that this was made from.

        Compiled dynamics and files are compared when a model file is read.
        """
        as_made = self.dynamics is not None and self.dynamics.is_registered
        if self.plant and not as_made and "_compared" not in vars(self) and file_option(self.env) is None:
            object.__setattr__(self, "_compared", True)
            warn_of_change(self.name, self.plant, self.plant_now or environment_hash(env), stacklevel=4)

    def make_vector(self, n: int) -> VectorEnv[Any, Any, Any]:
        """Return n environments that are stepped together: Gymnasium's vector environment if it has one."""
        if self.dynamics is not None:
            return DynamicsVectorEnv(self.dynamics, n, self.horizon)
        if self.parallel or self.step_timeout is not None:
            return in_processes(self._make_checked, n)
        plain = self.template is None and not (self.options or self.stage_cost or self.disturbances)
        if plain and self.env is not None and _has_vector_form(self.env):
            return gymnasium.make_vec(self.env, n, max_episode_steps=self.horizon)
        return SyncVectorEnv([self._make_checked] * n, autoreset_mode=AutoresetMode.NEXT_STEP)

    def _make_checked(self) -> Environment:
        return CheckedResults(self.make())

    def learning_reward(self, reward: float) -> float:
        """Return the reward that the algorithm learns from."""
        low, high = self.reward_range
        return (reward - low) / (high - low)


def _is_judged(env: Environment) -> bool:
    """Return whether an environment charges the cost already: one that was changed, or its compiled twin."""
    plant = env.unwrapped
    twin = isinstance(plant, DynamicsEnv) and plant.dynamics.stage_cost is not None
    return twin or any(isinstance(layer, StageCostEnv) for layer in layers(env))


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
    parallel: bool | str = False,
    measured: bool = True,
    step_timeout: float | None = None,
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
        `cartpole200`), a Gymnasium environment, `Dynamics`, the model file of a learned plant (`.spaql`), an
        FMU (`.fmu`, whose `options` are those of `spaql.plugins.fmu.FMUEnv`), or a problem, which is
        returned as it is.
        Of a Gymnasium environment copies are used, which a model file cannot name.
    horizon
        Steps after which an episode ends; the environment's own limit by default, the smallest if it has
        several. A longer one than the limit of an environment that is copied is refused.
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
    step_timeout
        Seconds that a step (or reset) may take; past them `BadEnvironmentError` is raised, and what was
        learned before the iteration is kept. All environments then run in separate processes, which can be
        killed at any time; compiled dynamics, which cannot, are not used. The environments of an evaluation
        are stepped together, so there it limits the time until the last one is done.
    seed
        Of the random steps.
    observation_names
        Of each number of an observation, with its unit, such as `["position [m]", "speed [m/s]"]`: rules,
        pictures, exported code and the model file have them. Those of the plant by default, if it has any.
    action_names
        Of each action of a list, or of each number of an action, such as `["force [N]"]`.
    setpoints
        Which observed number is to follow which observed set-point, by their names: evaluations then measure
        the closed loop. That of the plant by default, as `angles` and `sample_time` are.
    angles
        Observations that are angles in radians; or `x`, of which cos(x) and sin(x) are observed.
    sample_time
        Seconds between two actions.
    cost
        Of a step, an expression of the named observations at its end and of the action: the reward is minus
        the cost, in place of the environment's own. Names are written without units, with `_` for what is no
        letter or digit; `action` is the number of an action of a list.
    constraints
        Expressions that are to hold after every step: evaluations count the episodes in which one is broken.
        A pair of an expression and a price makes each step that breaks it cost more.

    Examples
    --------
    >>> problem = make_problem("pendulum5")
    >>> problem.horizon, problem.actions.sizes, problem.reference
    (200, (5,), (1.0, 0.0, 0.0))
    """
    if isinstance(env, Problem):
        asked = (horizon, levels, squash, reference, reward_range, options, observation_names, action_names)
        means = setpoints, angles, sample_time, cost, constraints or None
        if any(value is not None for value in (*asked, *means, step_timeout)) or not compiled or parallel:
            raise SettingError("The problem is already made: give what is to change to make_problem.")
        return env
    horizon = None if horizon is None else whole_number("horizon", horizon, least=1)
    levels = None if levels is None else whole_number("levels", levels, least=2)
    step_timeout = None if step_timeout is None else real_number("step_timeout", step_timeout, above=0)
    if (cost is not None or constraints) and isinstance(env, str) and plant_of_file(env) is not None:
        options = _with_cost(options or {}, cost, constraints)
        cost = None
        constraints = ()
    source, preset = find_source(env, options)
    if preset is not None:
        horizon = preset.horizon if horizon is None else horizon
        levels = preset.levels if levels is None else levels
    squash = {
        whole_number("A dimension to squash", j, least=0): real_number("A scale of squash", x, above=0)
        for j, x in (squash or (preset.squash if preset else {})).items()
    }
    if reward_range is None:
        reward_range = preset.reward_range if preset else (0.0, 1.0)
    reward_range = _range(reward_range)
    probe = source.probe(horizon)
    try:
        refuse_running_statistics(probe)
        limit = source.horizon(horizon, probe)
        no_bounds = unbounded(probe.observation_space)
        no_bounds[[j for j in squash if j in range(len(no_bounds))]] = False
        if not measured:
            squash = {**squash, **{int(j): 1.0 for j in np.flatnonzero(no_bounds)}}
            no_bounds[:] = False
        first = whole_number("seed", seed, least=0)
        samples = _random_observations(source, limit, probe, first, step_timeout) if no_bounds.any() else None
        meaning = meaning_of(probe, source.dynamics)
        plant = environment_hash(probe) if source.dynamics is None else equations_hash(source.dynamics)
        if source.dynamics is not None:
            source.dynamics.refuse_if_changed()
        seen = meaning.observations
        done = meaning.actions
        states = StandardStates.of(probe.observation_space, squash, samples, seen)
        actions = StandardActions.of(probe.action_space, levels, done)
        if observation_names is not None:
            seen = given_names("observation_names", observation_names, states.dims)
            states = dataclasses.replace(states, names=seen)
        if action_names is not None:
            done = given_names("action_names", action_names, count_actions(actions.space))
            actions = dataclasses.replace(actions, names=done)
    finally:
        if probe is not source.template:
            probe.close()
    if reference is None:
        reference = source.dynamics.reference if source.dynamics else None
    elif len(reference) != states.dims:
        raise SettingError(
            f"The reference is an observation of {states.dims} numbers, and {len(reference)} were given."
        )
    names = all_names(states.space, states.names)
    if meaning.observations:  # they may have been given other names
        named = dict(zip(meaning.observations, names, strict=True))
        own = {named[number]: named[goal] for number, goal in meaning.setpoints.items()}
        setpoints = own if setpoints is None else setpoints
        if angles is None:
            angles = [named.get(one, one) for one in meaning.angles if one in named or f"cos({one})" in names]
    sample_time = meaning.sample_time if sample_time is None else sample_time
    check_meaning(names, setpoints or {}, angles or (), sample_time)
    dynamics = source.dynamics if compiled and step_timeout is None else None
    stage = None
    if cost is not None or constraints:
        declared = source.dynamics is not None and source.dynamics.stage_cost is not None
        if meaning.constraints or declared or _is_judged(probe):
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
        reference=None if reference is None else tuple(real_number("reference", x) for x in reference),
        reward_range=reward_range,
        dynamics=dynamics,
        setpoints=dict(setpoints or {}),
        angles=tuple(angles or ()),
        sample_time=sample_time,
        interactions=0 if samples is None else len(samples),
        parallel=parallel if isinstance(parallel, str) else bool(parallel),
        step_timeout=step_timeout,
        stage_cost=stage,
        constraints=meaning.constraints if stage is None else stage.constraints,
        plant=plant,
        template=source.template,
    )


def _with_cost(
    options: Mapping[str, Any], cost: str | None, constraints: Iterable[ConstraintLike]
) -> dict[str, Any]:
    """Return the options of a plant in a file with a cost and constraints that were given beside them."""
    given = {"cost": cost, "constraints": [one.as_data for one in constraints_of(constraints)] or None}
    for name, value in given.items():
        if value is not None and name in options:
            raise SettingError(f"{name} is given twice: in the options of the plant, and beside them.")
    return {**options, **{name: value for name, value in given.items() if value is not None}}


def expression_names(actions: StandardActions) -> Sequence[str]:
    """Return the names of the numbers of an action in expressions: one for a list of actions."""
    return (
        (LISTED,) if isinstance(actions.space, Discrete) else all_action_names(actions.space, actions.names)
    )


def _range(given: Sequence[float]) -> tuple[float, float]:
    """Return a pair of numbers, the lower one first; anything else is refused."""
    if len(given) != 2 or not given[0] < given[1]:
        raise SettingError(f"reward_range is {given!r}, and must be two numbers, the lower one first.")
    low, high = (real_number("An end of reward_range", end) for end in given)
    return low, high


def _has_vector_form(env: str) -> bool:
    """Return whether Gymnasium has a vector environment of an id that is equivalent to many single ones."""
    return spec_of(env).vector_entry_point is not None


def _random_observations(
    source: Source, horizon: int, probe: Environment, seed: int, step_timeout: float | None
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
