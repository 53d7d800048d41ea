"""A problem as plain data and arrays, for the model file."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import number, reading, typed
from spaql.errors import ArchiveError, SettingError
from spaql.kernels.partition.standardise import StateMap
from spaql.problems import Problem, find_dynamics
from spaql.problems.meaning import check_meaning
from spaql.problems.perturbed import with_other_cost
from spaql.problems.stage_cost import StageCost, constraints_of, expression_names
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
        setpoints, angles, sample_time = _meaning(data, observation_names(states, names))
        if not (env is None or isinstance(env, str)) or not isinstance(options, dict):
            raise ArchiveError(f"The file names no environment: {env!r} with {options!r}.")
        stored_names("environment", [env or "", *options])
        standard_actions = StandardActions.of(
            actions, levels, _names(data, "actions", count_actions(actions))
        )
        dynamics = find_dynamics(env) if env is not None and data["compiled"] else None
        stage = _stage_cost(data.get("stage_cost"), observation_names(states, names), standard_actions)
        if stage is not None and dynamics is not None:
            dynamics = with_other_cost(dynamics, stage)
        constraints = () if "constraints" not in data else constraints_of(data["constraints"])
        if dynamics is not None and dynamics.stage_cost is not None:  # as the plant now declares them
            constraints = dynamics.stage_cost.constraints
        return Problem(
            name=stored_names("problem", [data["name"]])[0],
            env=env,
            options=options,
            horizon=number(data, "horizon", 1, _MOST, whole=True),
            states=StandardStates(states, state_map, names),
            actions=standard_actions,
            reference=None if data["reference"] is None else _floats(data["reference"], dims),
            reward_range=_reward_range(data["reward_range"]),
            dynamics=dynamics,
            setpoints=setpoints,
            angles=angles,
            sample_time=sample_time,
            interactions=number(data, "interactions", 0, whole=True),
            stage_cost=stage,
            constraints=constraints if stage is None else stage.constraints,
            plant=_plant(data.get("plant", {})),
            log=_log(data.get("log")),
        )


def _meaning(
    data: Mapping[str, Any], names: tuple[str, ...]
) -> tuple[dict[str, str], tuple[str, ...], float | None]:
    """Read set-points, angles and the sample time; most files have none."""
    setpoints = data.get("setpoints", {})
    angles = data.get("angles", [])
    right = isinstance(setpoints, dict) and isinstance(angles, list)
    if not right or not all(isinstance(name, str) for name in (*setpoints, *setpoints.values(), *angles)):
        raise ArchiveError(
            f"The file has {setpoints!r} and {angles!r} where set-points and angles should be."
        )
    seconds = number(data, "sample_time", 0.0) if "sample_time" in data else None
    try:
        check_meaning(names, setpoints, angles, seconds)
    except SettingError as error:
        raise ArchiveError(f"The file's set-points do not fit its observations: {error}") from error
    return setpoints, tuple(angles), seconds


def _log(log: Any) -> dict[str, Any] | None:
    """Read how a problem was made from a log; most were not."""
    if log is None:
        return None
    files = log.get("files") if isinstance(log, dict) else None
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise ArchiveError(f"The file has {log!r} where the description of a log should be.")
    for name in ("rows", "steps"):
        number(log, name, 0, whole=True)
    number(log, "end_reward")
    if not isinstance(log["verdict"], str) or not isinstance(log["end"], str | None):
        raise ArchiveError(f"The file has {log!r} where the verdict on a log and its ends should be.")
    return dict(log)


def _stage_cost(cost: Any, names: tuple[str, ...], actions: StandardActions) -> StageCost | None:
    """Read a cost and constraints that were given for an environment; most have none."""
    if cost is None:
        return None
    if not isinstance(cost, dict) or not isinstance(cost["cost"], str | None):
        raise ArchiveError(f"The file has {cost!r} where a cost and constraints should be.")
    return StageCost.of(cost["cost"], cost["constraints"], names, expression_names(actions))


def _plant(hashes: Any) -> dict[str, str]:
    """Read the hashes of a plant; some have none."""
    if isinstance(hashes, dict) and all(isinstance(text, str) for text in (*hashes, *hashes.values())):
        return hashes
    raise ArchiveError(f"The file has {hashes!r} where the hashes of a plant should be.")


def _floats(values: Any, n: int) -> tuple[float, ...]:
    """Return n numbers from a file."""
    if not isinstance(values, list | tuple) or len(values) != n:
        raise ArchiveError(f"The file has {values!r} where {n} numbers should be.")
    return tuple(float(number({"a number": value}, "a number")) for value in values)


def _reward_range(values: Any) -> tuple[float, float]:
    low, high = _floats(values, 2)
    if not low < high:
        raise ArchiveError(f"The file has {values!r} where a range of rewards, the lower first, should be.")
    return low, high


def _names(data: Mapping[str, Any], what: str, n: int) -> tuple[str, ...]:
    """Read the names of observations or actions; early files have none."""
    names = stored_names(what, data.get(what, ()))
    if names and len(names) != n:
        raise ArchiveError(f"The file names {len(names)} {what}, and its space has {n}.")
    return names
