"""A problem as plain data and arrays for the model file, and reading such a file back."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spaql import archive
from spaql.archive import number, reading, typed
from spaql.controllers import Policy
from spaql.errors import ArchiveError, SettingError
from spaql.kernels.partition.standardise import StateMap
from spaql.problems import Problem, find_dynamics
from spaql.problems.making import checked_range, checked_reference
from spaql.problems.meaning import check_meaning
from spaql.problems.stage_cost import StageCost, constraints_of, expression_names
from spaql.problems.variants import with_other_cost
from spaql.spaces import (
    StandardActions,
    StandardStates,
    count_actions,
    describe_space,
    observation_names,
    space_from,
    stored_names,
)
from spaql.values import plain

_MOST = 2**31
"""The largest number of steps or levels accepted from a file."""


def problem_to(problem: Problem) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description of a problem, without an environment that was given as an object."""
    data = {
        "name": problem.name,
        "env": problem.env,
        "options": plain(problem.options),
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
    if problem.setpoints:
        data["setpoints"] = dict(problem.setpoints)
    if problem.angles:
        data["angles"] = list(problem.angles)
    if problem.sample_time is not None:
        data["sample_time"] = problem.sample_time
    if problem.stage_cost is not None:
        data["stage_cost"] = problem.stage_cost.as_data
    elif problem.constraints:
        data["constraints"] = [constraint.as_data for constraint in problem.constraints]
    if problem.plant:
        data["plant"] = dict(problem.plant)
    if problem.log is not None:
        data["log"] = plain(problem.log)
    return data, dict(problem.states.state_map._asdict())


def problem_from(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Problem:
    """Return the described problem; its environment is made on first use."""
    with reading("problem"):
        states = space_from(data["observation_space"])
        dims = int(np.prod(states.shape or (1,)))
        state_map = StateMap(
            np.array(typed(arrays["center"], np.float64)),
            np.array(typed(arrays["scale"], np.float64)),
            np.array(typed(arrays["squash"], np.bool_)),
        )
        finite = np.isfinite(state_map.center).all() and np.isfinite(state_map.scale).all()
        if any(a.shape != (dims,) for a in state_map) or not finite or not np.all(state_map.scale > 0):
            raise ArchiveError("The file's map into the standard cube does not fit its observations.")
        actions = space_from(data["action_space"])
        levels = None if data["levels"] is None else number(data, "levels", 2, _MOST, whole=True)
        env = data["env"]
        options = data["options"]
        names = _names(data, "observations", dims)
        named = observation_names(states, names)
        setpoints = data.get("setpoints", {})
        angles = data.get("angles", [])
        sample_time = data.get("sample_time")
        check_meaning(named, setpoints, angles, sample_time)
        if not (env is None or isinstance(env, str)) or not isinstance(options, dict):
            raise ArchiveError(f"The file names no environment: {env!r} with {options!r}.")
        stored_names("environment", [env or "", *options])
        standard_actions = StandardActions.of(
            actions, levels, _names(data, "actions", count_actions(actions))
        )
        standard_states = StandardStates(states, state_map, names)
        dynamics = find_dynamics(env) if env is not None and data["compiled"] else None
        stage = None
        if (cost := data.get("stage_cost")) is not None:
            stage = StageCost.of(cost["cost"], cost["constraints"], named, expression_names(standard_actions))
            dynamics = None if dynamics is None else with_other_cost(dynamics, stage)
        constraints = () if "constraints" not in data else constraints_of(data["constraints"])
        if dynamics is not None and dynamics.stage_cost is not None:  # as the plant now declares them
            constraints = dynamics.stage_cost.constraints
        return Problem(
            name=stored_names("problem", [data["name"]])[0],
            env=env,
            options=options,
            horizon=number(data, "horizon", 1, _MOST, whole=True),
            states=standard_states,
            actions=standard_actions,
            reference=checked_reference(data["reference"], standard_states),
            reward_range=checked_range(data["reward_range"]),
            dynamics=dynamics,
            setpoints=setpoints,
            angles=tuple(angles),
            sample_time=sample_time,
            interactions=number(data, "interactions", 0, whole=True),
            stage_cost=stage,
            constraints=constraints if stage is None else stage.constraints,
            plant=_plant(data.get("plant", {})),
            log=_log(data.get("log")),
        )


def _log(log: Any) -> dict[str, Any] | None:
    """Read how a problem was made from a log; most were not."""
    if log is None:
        return None
    if isinstance(log["files"], str):
        raise ArchiveError(f"The file has {log['files']!r} where the names of files of a log should be.")
    stored_names("log", log["files"])
    for name in ("rows", "steps"):
        number(log, name, 0, whole=True)
    number(log, "end_reward")
    if not isinstance(log["verdict"], str) or not isinstance(log["end"], str | None):
        raise ArchiveError(f"The file has {log!r} where the verdict on a log and its ends should be.")
    return dict(log)


def _plant(hashes: Any) -> dict[str, str]:
    """Read the hashes of a plant; some have none."""
    if isinstance(hashes, dict) and all(isinstance(text, str) for text in (*hashes, *hashes.values())):
        return hashes
    raise ArchiveError(f"The file has {hashes!r} where the hashes of a plant should be.")


def _names(data: Mapping[str, Any], what: str, n: int) -> tuple[str, ...]:
    """Read the names of observations or actions; some have none."""
    names = stored_names(what, data.get(what, ()))
    if names and len(names) != n:
        raise ArchiveError(f"The file names {len(names)} {what}, and its space has {n}.")
    return names


_ROWS = 30
_STEPS = 10
"""Observations that are compared: rows, each of which is an episode of some steps."""
_ADVICE = "This is a bug in spaql: please report it with the file, and do not use the file."


class _Saved(Protocol):
    @property
    def policy(self) -> Policy:
        """The policy."""

    @property
    def problem(self) -> Problem:
        """The problem it is for."""


def read_back(saved: _Saved, loaded: _Saved) -> None:
    """Raise `ArchiveError` unless the content of a file acts as the saved agent does, to the last bit.

    Actions are compared at observations from all over their space, and the problems by their descriptions.
    An agent without a policy has no actions.
    """
    if archive.dumps(*problem_to(saved.problem)) != archive.dumps(*problem_to(loaded.problem)):
        raise ArchiveError(
            f"The written file does not act as the saved agent: it describes another problem. {_ADVICE}"
        )
    try:
        ours = saved.policy.for_episodes(_ROWS)
    except SettingError:  # training was stopped before there was a policy
        return
    theirs = loaded.policy.for_episodes(_ROWS)
    space = copy.deepcopy(saved.problem.states.space)
    space.seed(0)
    for step in range(min(_STEPS, saved.problem.horizon)):
        batch = np.array([space.sample() for _ in range(_ROWS)])
        steps = np.full(_ROWS, step)
        wanted = np.asarray(ours.act(batch, steps, None))
        actions = np.asarray(theirs.act(batch, steps, None))
        if not np.array_equal(wanted, actions):
            row = int(np.flatnonzero((wanted != actions).reshape(_ROWS, -1).any(axis=1))[0])
            raise ArchiveError(
                f"The written file does not act as the saved agent: at {batch[row].tolist()} "
                f"it returns {actions[row].tolist()}, not {wanted[row].tolist()}. {_ADVICE}"
            )
