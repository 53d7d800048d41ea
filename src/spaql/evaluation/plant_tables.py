"""A plant as it is declared, as rows of tables: ranges, noise, dead time, loads, set-points, reward."""

from __future__ import annotations

import inspect
import json
import math
import textwrap
from collections.abc import Iterator, Mapping

from gymnasium.spaces import Box, Discrete

from spaql.formatting import duration
from spaql.problems import Dynamics, Problem
from spaql.problems.content import plain_function
from spaql.spaces import action_names, observation_names, space_bounds
from spaql.tables import TextTable, filled
from spaql.values import plain

_LONGEST = 300
"""Largest number of characters of an option."""


def plant_cells(problem: Problem) -> TextTable:
    """Return the properties of a plant as rows.

    Examples
    --------
    >>> import spaql
    >>> plant_cells(spaql.make_problem("spaql/Oven-v0"))[2]
    {'property': 'horizon', 'value': '150 steps, 12.5 min'}
    """
    properties = list(_task(problem))
    if problem.dynamics is not None:
        properties += _disturbances(problem.dynamics)
    return [{"property": name, "value": text} for name, text in properties]


def signal_cells(problem: Problem) -> TextTable:
    """Return the observations and the actions of a plant as rows, with their ranges.

    Examples
    --------
    >>> import spaql
    >>> signal_cells(spaql.make_problem("CartPole-v1"))[-1]
    {'signal': 'push right', 'is': 'a discrete action', 'from': '', 'to': ''}
    """
    plant = problem.dynamics
    actions = problem.actions
    noise = {} if plant is None else {"observed": plant.noise, "set": plant.action_noise}
    rate = {} if plant is None else {"set": plant.rate_limit}
    named = [("observed", name) for name in observation_names(problem.states.space, problem.states.names)]
    kind = "a discrete action" if isinstance(actions.space, Discrete) else "set"
    named += [(kind, name) for name in action_names(actions.space, actions.names)]
    ends = _ends(problem.states.space)
    ends += [("", "")] * actions.space.n if isinstance(actions.space, Discrete) else _ends(actions.space)
    return filled(
        [
            {
                "signal": name,
                "is": kind,
                "from": low,
                "to": high,
                "noise (sd)": _declared(noise.get(kind, {}), name),
                "largest change in a step": _declared(rate.get(kind, {}), name),
            }
            for (kind, name), (low, high) in zip(named, ends, strict=True)
        ]
    )


def equations_text(plant: Dynamics) -> str:
    """Return the source of a plant's functions, without that of the functions that they call.

    Examples
    --------
    >>> import spaql
    >>> print(equations_text(spaql.make_problem("CartPole-v1").dynamics).splitlines()[0])
    def start_cartpole(rng: np.random.Generator) -> Four:
    """
    functions = dict.fromkeys(map(plain_function, (plant.start, plant.step, plant.observe)))
    try:
        return "\n".join(textwrap.dedent(inspect.getsource(function)) for function in functions)
    except OSError:  # they were written in a shell
        return "The source of the plant's functions is in no file."


def _declared(values: Mapping[str, float], name: str) -> str:
    return f"{values[name]:g}" if name in values else ""


def _ends(space: Box | Discrete) -> list[tuple[str, str]]:
    """Return the range of each component; nothing for an infinite end."""
    low, high = (["" if math.isinf(x) else f"{x:.4g}" for x in ends.tolist()] for ends in space_bounds(space))
    return list(zip(low, high, strict=True))


def _task(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield what is to be done, and on what."""
    yield "plant", problem.name
    yield "runs on", problem.runs_on
    length = f", {duration(problem.horizon * problem.sample_time)}" if problem.sample_time else ""
    yield "horizon", f"{problem.horizon:,} steps{length}"
    if problem.sample_time:
        yield "sample time", duration(problem.sample_time)
    plant = problem.dynamics
    stage = problem.stage_cost or (None if plant is None else plant.stage_cost)
    cost = problem.options.get("cost") if stage is None else stage.cost
    yield "reward of a step", "the plant's own, computed by its step" if cost is None else f"-({cost})"
    for controlled, goal in problem.setpoints.items():
        yield f"set-point of {controlled}", goal
    for constraint in problem.constraints:
        yield "constraint", constraint.label
    for name, option in {**problem.options, **(problem.log or {})}.items():
        yield name, json.dumps(plain(option), default=str, ensure_ascii=False)[:_LONGEST]


def _disturbances(plant: Dynamics) -> Iterator[tuple[str, str]]:
    """Yield what disturbs a compiled plant."""
    least, most = plant.disturbances.delay
    yield "dead time", f"{least} samples" if least == most else f"{least} to {most} samples"
    if plant.late_observations:
        yield "observations", "those of the step before"
    if plant.gain:
        yield "gain of the actuators", f"each episode draws 1 ± {plant.gain:g}"
    for name, load in plant.disturbance.items():
        first, last = load.begins
        yield f"load on {name}", f"-{load.size:g} to {load.size:g}, beginning at steps {first} to {last - 1}"
    for name, value in plant.parameters.items():
        yield f"parameter {name}", _range(value)
    if plant.perturbation is not None:
        change = plant.perturbation
        noise = "".join(f", noise of {name} {std:g}" for name, std in change.noise.items())
        ranges = "".join(f", {name} {_range(ends)}" for name, ends in change.parameters.items())
        drawn = f"gain 1 ± {change.gain:g}, dead time ± {change.delay} samples{noise}{ranges}"
        yield "perturbed plants", f"each episode draws {drawn}"


def _range(value: float | tuple[float, float]) -> str:
    """Return a number, or the range from which each episode draws one."""
    ends = value if isinstance(value, tuple) else (value,)
    return " to ".join(f"{end:g}" for end in ends)
