"""A problem as plain data and arrays, for the model file."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import ArchiveError
from spaql.kernels.standard import StateMap
from spaql.problems import Problem, find_dynamics
from spaql.spaces import StandardActions, StandardStates, describe_space, space_from


def problem_to(problem: Problem) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Describe a problem; an environment given as an object is left out."""
    data = {
        "name": problem.name,
        "env": problem.env,
        "options": dict(problem.options),
        "horizon": problem.horizon,
        "observation_space": describe_space(problem.states.space),
        "action_space": describe_space(problem.actions.space),
        "levels": problem.actions.levels,
        "observations": list(problem.states.names),
        "actions": list(problem.actions.names),
        "reference": problem.reference,
        "reward_range": problem.reward_range,
        "interactions": problem.interactions,
        "compiled": problem.dynamics is not None,
    }
    return data, dict(problem.states.state_map._asdict())


def problem_from(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Problem:
    """Build the problem that was described; its environment is made when it is first needed."""
    states = space_from(data["observation_space"])
    dims = int(np.prod(states.shape or (1,)))
    state_map = StateMap(
        np.ascontiguousarray(arrays["center"], np.float64),
        np.ascontiguousarray(arrays["scale"], np.float64),
        np.ascontiguousarray(arrays["squash"], np.bool_),
    )
    if any(array.shape != (dims,) for array in state_map) or not np.all(state_map.scale > 0):
        raise ArchiveError("The file's map into the standard cube does not fit its observations.")
    actions = space_from(data["action_space"])
    n_actions = int(actions.n) if isinstance(actions, Discrete) else int(np.prod(actions.shape))
    return Problem(
        name=str(data["name"]),
        env=data["env"],
        options=data["options"],
        horizon=int(data["horizon"]),
        states=StandardStates(states, state_map, _names(data, "observations", dims)),
        actions=StandardActions.of(actions, data["levels"], _names(data, "actions", n_actions)),
        reference=None if data["reference"] is None else tuple(data["reference"]),
        reward_range=(float(data["reward_range"][0]), float(data["reward_range"][1])),
        dynamics=find_dynamics(data["env"]) if data["compiled"] else None,
        interactions=int(data["interactions"]),
    )


def _names(data: Mapping[str, Any], what: str, n: int) -> tuple[str, ...]:
    """Read the names of observations or actions; early files have none."""
    names = tuple(str(name) for name in data.get(what, ()))
    if names and len(names) != n:
        raise ArchiveError(f"The file names {len(names)} {what}, and its space has {n}.")
    return names
