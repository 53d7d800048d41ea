"""Robustness: the parameters of a plant, and returns of a controller on plants that differ in them."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from numbers import Real
from typing import Any

import gymnasium
from gymnasium.spaces import Discrete

from spaql.controllers import Policy, RecordingPolicy
from spaql.errors import BadEnvironmentError, SettingError, nearest
from spaql.evaluation.conditions import PERTURBED, disturbed, in_condition, paired_episodes
from spaql.evaluation.episodes import Playable, policy_and_problem
from spaql.evaluation.stress import BENCHES, Bench, find_bench
from spaql.problems import Dynamics, EnvironmentLike, Problem, make_problem
from spaql.problems.user_errors import message_of
from spaql.problems.variants import with_plant_parameters
from spaql.simulate.returns import Evaluation
from spaql.stats import mean_ci95


def parameters_of(problem: Problem) -> dict[str, Any]:
    """Return the parameters of a problem's environment, by name, with their values.

    These are numeric arguments of its constructor, and numeric attributes of its `unwrapped`. Compiled
    dynamics have the parameters that they declare; otherwise constants are in the code.

    Examples
    --------
    >>> from spaql import make_problem
    >>> parameters_of(make_problem("pendulum"))["m"]
    1.0
    """
    if (declared := _declared(problem)) is not None:
        return declared.middle_parameters
    problem = _nominal(problem)
    plant: Any = problem.make().unwrapped
    own = [owner for owner in type(plant).__mro__ if owner not in (object, *gymnasium.Env.__mro__)]
    names = [name for owner in (*own, plant) for name in vars(owner)]
    values = {name: getattr(plant, name, None) for name in names if not name.startswith("_")}
    arguments = {name: value for name, value in _arguments(problem, plant).items() if value is not None}
    values |= arguments
    return {name: x for name, x in values.items() if isinstance(x, Real) and not isinstance(x, bool)}


def with_parameters(problem: Problem, values: Mapping[str, float], bench: Bench | None = None) -> Problem:
    """Return a problem whose environment has other parameters.

    An argument of the constructor is passed to it. Any other parameter is set as an attribute of the finished
    environment; values computed from it by the constructor change only if the bench declares them. If the
    environment resets the attribute, `SettingError` is raised.

    Parameters
    ----------
    problem
        A problem with a Gymnasium environment, or with a plant that declares its parameters.
    values
        Values of the parameters, by name (see `parameters_of`).
    bench
        Declares how attributes depend on parameters; known for the classic control problems.

    Examples
    --------
    >>> from spaql import make_problem
    >>> heavy = with_parameters(make_problem("cartpole200"), {"masspole": 0.2})
    >>> heavy.make().unwrapped.total_mass
    1.2
    """
    if (declared := _declared(problem)) is not None:
        plant = with_plant_parameters(declared, _checked(problem, values)) if values else declared
        return dataclasses.replace(problem, env=plant.id, dynamics=plant, plant={})
    problem = _nominal(problem)
    values = _checked(problem, values)
    taken = _arguments(problem, problem.make().unwrapped)
    arguments = {name: value for name, value in values.items() if name in taken}
    attributes = {name: value for name, value in values.items() if name not in taken}
    env = dataclasses.replace(problem, options={**problem.options, **arguments}, plant={}).make()
    made_plant: Any = env.unwrapped
    for name, value in attributes.items():
        setattr(made_plant, name, value)
    bench = bench or find_bench(problem)
    if attributes and bench is not None:
        for name, compute in bench.derived.items():
            setattr(made_plant, name, compute(made_plant))
    changed = dataclasses.replace(problem, env=None, options={}, template=env, plant={})
    _check_made(changed, problem, values, attributes)
    return changed


def _declared(problem: Problem) -> Dynamics | None:
    """Return the plant of a problem if it declares parameters."""
    plant = problem.dynamics
    return plant if plant is not None and plant.parameters else None


def _nominal(problem: Problem) -> Problem:
    """Return the problem in Gymnasium's environment, even if it names the compiled version."""
    plain = (problem.env or "").removeprefix("spaql/")
    env = plain if plain in BENCHES else problem.env
    return dataclasses.replace(problem, env=env, dynamics=None, plant={})


def _arguments(problem: Problem, plant: Any) -> dict[str, Any]:
    """Return the arguments of the constructor with their values, if it can be called again."""
    if problem.template is not None:
        return {}
    _, *declared = inspect.signature(type(plant).__init__).parameters.values()
    passed = {**(plant.spec.kwargs if plant.spec is not None else {}), **problem.options}
    named = [each for each in declared if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    defaults = {each.name: None if each.default is each.empty else each.default for each in named}
    return {name: passed.get(name, default) for name, default in defaults.items()}


def _checked(problem: Problem, values: Mapping[str, float]) -> dict[str, float]:
    """Return the values of parameters, integers as integers; raise for unknown names."""
    known = parameters_of(problem)
    for name, value in values.items():
        if name not in known:
            there = f"its parameters are {', '.join(sorted(known))}." if known else "it has none."
            guess = nearest(name, known) if known else ""
            raise SettingError(
                f"{problem.name} has no parameter {name!r}: {guess if guess.endswith('?') else there} "
                "Other plants can be passed as variants (spaql.evaluation.robustness)."
            )
        if not math.isfinite(value):
            raise SettingError(f"{name} is {value}, and must be a finite number, such as {known[name]:g}.")
    whole = {name for name, value in values.items() if isinstance(known[name], int) and value == int(value)}
    return {name: int(value) if name in whole else value for name, value in values.items()}


def _check_made(
    changed: Problem, problem: Problem, values: Mapping[str, float], kept: Mapping[str, float]
) -> None:
    """Raise if an environment resets its parameters, or if its spaces depend on them."""
    with closing(changed.make()) as env:
        if (env.observation_space, env.action_space) != (problem.states.space, problem.actions.space):
            raise SettingError(
                f"With other values of {' and '.join(values)}, {problem.name} has other observations or "
                "actions than the policy."
            )
        try:
            env.reset(seed=0)
        except Exception as error:
            raise BadEnvironmentError(
                f"With {' and '.join(values)} changed, {problem.name} cannot be reset: {message_of(error)}."
            ) from error
        for name, value in kept.items():
            if (now := getattr(env.unwrapped, name)) != value:
                raise SettingError(
                    f"{problem.name} resets {name} to {now!r}: make it an argument of its constructor."
                )


@dataclass(frozen=True)
class RobustnessRow:
    """Episodes under one change of the plant, with the same starts for all changes."""

    change: str
    mean: float
    ci95: float
    """Half-width of the 95 % interval of the mean."""
    worst: float
    """The lowest return."""
    difference: float
    """Mean return minus the nominal one."""
    difference_ci95: float
    """Half-width of its 95 % interval, from paired differences."""


def robustness(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    bench: Bench | None = None,
    parameters: Sequence[str] | None = None,
    factors: Sequence[float] = (0.8, 1.2),
    values: Mapping[str, Sequence[float]] | None = None,
    noise: Sequence[float] = (0.01, 0.05),
    disturbance: Sequence[float] = (0.05,),
    variants: Mapping[str, EnvironmentLike] | None = None,
    episodes: int = 100,
    seed: int = 0,
) -> list[RobustnessRow]:
    """Compare nominal returns with those under changed parameters, noise, disturbances and delay.

    Episodes begin in the environment's own starts, and actions are deterministic. All rows have the same
    starts and noise (common random numbers), so that small differences are visible.

    Parameters
    ----------
    agent
        An agent or design; a policy or controller, which needs `env`; or the path of a run folder or file.
    env
        The nominal plant; the agent's own problem by default.
    bench
        Declares the parameters; known for the classic control problems.
    parameters
        Arguments of the environment's constructor, or attributes of its `unwrapped`, to change (see
        `spaql.evaluation.parameters_of`); by default those that the plant declares, or those of the bench.
    factors, values
        Factors by which each parameter is multiplied, and values of parameters by name: one row each.
    noise
        Standard deviations of Gaussian noise on every observation, relative to its standard deviation in the
        nominal episodes; clipped at a tenth of the range.
    disturbance
        The same for Gaussian noise on every component of an action, clipped to its bounds; for Discrete
        actions, the probability that a random action replaces the chosen one.
    variants
        Other plants by name, such as `spaql.Dynamics` with other constants.
    episodes, seed
        Number of episodes of each row; seed of the episodes and the noise.

    Returns
    -------
    list of RobustnessRow
        The first row is the nominal plant; the last has actions delayed by one step. A plant that
        declares disturbances, parameters or set-points also has a row with `spaql.problems.perturbed` plants.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", seed=0)
    >>> rows = robustness(agent, parameters=["length"], noise=[0.05], episodes=5)
    >>> [row.change for row in rows]
    ['nominal', 'length × 0.8', 'length × 1.2', 'noise 5 %', 'actions 5 % off', 'one step late']
    """
    policy, problem = policy_and_problem(agent, env)
    bench = bench or find_bench(problem)
    parameters = varied_parameters(problem, bench) if parameters is None else parameters
    values = values or {}
    declares = problem.dynamics is not None and problem.dynamics.declares_more
    if not declares and (parameters or values):  # constants are in the code of compiled dynamics
        problem = dataclasses.replace(problem, dynamics=None)
    nominal = changed(problem, {}) if parameters or values else problem
    plants = _changed_plants(problem, bench, parameters, factors, values)
    plants |= {name: make_problem(variant) for name, variant in (variants or {}).items()}
    if declares:
        plants[PERTURBED] = in_condition(problem, PERTURBED)

    def run(policy: Policy, where: Problem) -> Evaluation:
        # Gymnasium's vector environments have different starts from single ones, which can be disturbed.
        single = where if where.dynamics is not None or where.disturbances else disturbed(where)
        return paired_episodes(policy, problem, single, episodes=episodes, seed=seed)

    watched = RecordingPolicy(policy)
    returned = run(watched, nominal)
    plants |= _disturbed_plants(nominal, watched, noise, disturbance)
    results = {"nominal": returned} | {name: run(policy, plant) for name, plant in plants.items()}
    return [_row(name, result, returned) for name, result in results.items()]


def _changed_plants(
    problem: Problem,
    bench: Bench | None,
    parameters: Sequence[str],
    factors: Sequence[float],
    values: Mapping[str, Sequence[float]],
) -> dict[str, Problem]:
    """Return the plants with other parameters, by the change."""
    plants = {f"{name} × {x:g}": changed(problem, {name: x}, bench) for name in parameters for x in factors}
    for name, listed in values.items():
        plants |= {f"{name} = {x:g}": with_parameters(problem, {name: x}, bench) for x in listed}
    return plants


def _disturbed_plants(
    problem: Problem, nominal: RecordingPolicy, noise: Sequence[float], disturbance: Sequence[float]
) -> dict[str, Problem]:
    """Return the plant with noise relative to the variation in nominal episodes, and with a delay."""
    spread = nominal.visited.std(axis=0)
    moved = 1.0 if isinstance(nominal.action_space, Discrete) else nominal.played.std(axis=0)
    plants = {f"noise {100 * x:.3g} %": disturbed(problem, noise=x * spread) for x in noise}
    plants |= {
        f"actions {100 * x:.3g} % off": disturbed(problem, action_noise=x * moved) for x in disturbance
    }
    return plants | {"one step late": disturbed(problem, late=True)}


def varied_parameters(problem: Problem, bench: Bench | None) -> tuple[str, ...]:
    """Return the parameters varied by default: those that the plant or its bench declares."""
    if problem.dynamics is not None and problem.dynamics.parameters:
        return tuple(problem.dynamics.parameters)
    return bench.parameters if bench is not None else ()


def changed(problem: Problem, factors: Mapping[str, float], bench: Bench | None = None) -> Problem:
    """Return a problem whose environment has parameters multiplied by factors (see `with_parameters`).

    Compiled dynamics have constants in the code, so this is for Gymnasium's environments.

    Examples
    --------
    >>> problem = make_problem("cartpole200")
    >>> heavy = changed(problem, {"masspole": 2.0})
    >>> heavy.make().unwrapped.total_mass
    1.2
    """
    known = parameters_of(problem) if factors else {}
    # Unknown names raise below.
    values = {name: factor * known.get(name, 1.0) for name, factor in factors.items()}
    return with_parameters(problem, values, bench)


def _row(change: str, result: Evaluation, nominal: Evaluation) -> RobustnessRow:
    difference, half = mean_ci95(result.returns - nominal.returns)
    return RobustnessRow(change, result.mean, result.ci95, float(result.returns.min()), difference, half)
