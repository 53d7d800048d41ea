"""Names of the components of observations and actions, as learners need them."""

from __future__ import annotations

from collections.abc import Iterable

from spaql.problems import Problem
from spaql.spaces import action_names, observation_names, split_unit


def observations_of(problem: Problem) -> tuple[str, ...]:
    """Return the names of the components of an observation, with their units."""
    return observation_names(problem.states.space, problem.states.names)


def actions_of(problem: Problem) -> tuple[str, ...]:
    """Return the names of the discrete actions, or of the components of an action, with their units."""
    return action_names(problem.actions.space, problem.actions.names)


def without_units(names: Iterable[str]) -> list[str]:
    """Return the names without their units."""
    return [split_unit(name)[0] for name in names]


def ago(samples: int) -> str:
    """Return when an earlier action was given, for the name of its feature."""
    return "a sample before" if samples == 1 else f"{samples} samples before"
