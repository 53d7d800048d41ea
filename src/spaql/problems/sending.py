"""Problems in other processes: pickled here, and made again there."""

from __future__ import annotations

import dataclasses
import pickle
from importlib import import_module

import gymnasium
from gymnasium.envs.registration import EnvSpec

from spaql.errors import SettingError
from spaql.problems.classic import find_dynamics
from spaql.problems.perturbed import with_other_cost
from spaql.problems.problem import Problem
from spaql.problems.registry import spec_of


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
