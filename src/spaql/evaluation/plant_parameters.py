"""The parameters of an environment, and environments with changed parameters."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import gymnasium

from spaql.errors import BadEnvironmentError, SettingError, nearest
from spaql.evaluation.bench import BENCHES, Bench, find_bench
from spaql.problems import Dynamics, Problem
from spaql.problems.perturbed import with_plant_parameters
from spaql.problems.user_errors import message_of


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


def _listed(names: Mapping[str, float] | Sequence[str]) -> str:
    return " and ".join(names)


def _check_made(
    changed: Problem, problem: Problem, values: Mapping[str, float], kept: Mapping[str, float]
) -> None:
    """Raise if an environment resets its parameters, or if its spaces depend on them."""
    env = changed.make()
    try:
        spaces = env.observation_space, env.action_space
        if spaces != (problem.states.space, problem.actions.space):
            raise SettingError(
                f"With other values of {_listed(values)}, {problem.name} has other observations or actions "
                "than the policy."
            )
        env.action_space.seed(0)
        calls: dict[str, Callable[[], Any]] = {
            "reset": lambda: env.reset(seed=0),
            "a step": lambda: env.step(env.action_space.sample()),
        }
        for when, call in calls.items():
            try:
                call()
            except Exception as error:
                raise BadEnvironmentError(
                    f"With {_listed(values)} changed, {problem.name} fails at {when}: {message_of(error)}."
                ) from error
            for name, value in kept.items():
                if (now := getattr(env.unwrapped, name)) != value:
                    raise SettingError(
                        f"{problem.name} resets {name} to {now!r} at {when}: make it an argument of its "
                        "constructor."
                    )
    finally:
        env.close()
