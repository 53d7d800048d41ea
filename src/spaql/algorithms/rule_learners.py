"""What learners of rules share: names, the spaces that they take, and the order of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from gymnasium.spaces import Box

from spaql.controllers import Controller
from spaql.controllers.arrays import copied_nodes
from spaql.errors import SettingError, UnsupportedSpaceError
from spaql.problems import Problem
from spaql.spaces import action_names, numbers_recipe, observation_names, split_unit


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


def in_pairs(controller: Controller, root: int = 0) -> Controller:
    """Return the controller below a root with the right child of each node next to its left child."""
    order = copied_nodes(controller, root)
    inner = controller.feature[order] >= 0
    left = np.where(inner, 2 * np.cumsum(inner) - 1, -1)
    return replace(
        controller,
        feature=controller.feature[order],
        threshold=controller.threshold[order],
        left=left,
        right=np.where(inner, left + 1, -1),
        leaf=controller.leaf[order],
    )


def refuse_other_spaces(problem: Problem, name: str) -> None:
    """Refuse what rules over raw observations do not take: Discrete observations, and levels of actions."""
    if not isinstance(problem.states.space, Box):
        raise UnsupportedSpaceError(
            f"{name} needs a Box of observations: for a list, use SPAQL, or wrap it as "
            f"{numbers_recipe(problem.states.space)}",
            settings={"algo": "spaql"},
        )
    if problem.actions.levels is not None:
        raise SettingError(
            f"{name} writes affine laws for a Box of actions: leave out its levels, or use SPAQL.",
            settings={"algo": "spaql"},
        )
