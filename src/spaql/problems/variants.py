"""Plants derived from plants: perturbed, with other parameters or costs, with steps of their set-points."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.kernels.draws import with_number
from spaql.kernels.jit import callable_by_kernels
from spaql.problems.disturbances import Perturbation
from spaql.problems.disturbed import copy_common
from spaql.problems.dynamics import Dynamics
from spaql.problems.stage_cost import LISTED, StageCost
from spaql.values import refuse_unknown


def perturbed(dynamics: Dynamics, perturbation: Perturbation | None = None) -> Dynamics:
    """Return a plant with sensor noise of which episodes draw actuator gains, dead time and parameters.

    Set-points, loads and the spaces are those of the plant, so that a controller for one can be run on the
    other. Its id is derived from the id of the plant and what is drawn.

    Parameters
    ----------
    dynamics
        The plant.
    perturbation
        By default that which the plant declares; where it declares none, gains of 1 ± 0.2, a sample more or
        less of dead time where there is any, and the noise that the plant declares. Discrete actions have
        no gain.

    Examples
    --------
    >>> import spaql
    >>> oven = perturbed(spaql.make_problem("spaql/Oven-v0").dynamics)
    >>> oven.gain, oven.delay, dict(oven.noise)
    (0.2, (2, 4), {'temperature [°C]': 0.3})
    """
    usual = perturbation or dynamics.perturbation or Perturbation()
    refuse_unknown(usual.parameters, dynamics.parameters, "parameters", "parameter of the plant")
    least, most = dynamics.disturbances.delay
    if most > 0:
        least = max(0, least - usual.delay)
        most = most + usual.delay
    changes = {
        "gain": usual.gain if isinstance(dynamics.actions, Mapping) else 0.0,
        "delay": (least, most) if least < most else most,
        "noise": {**dynamics.noise, **usual.noise},
        "parameters": {**dynamics.parameters, **usual.parameters},
    }
    own_id = derived_id(dynamics, "perturbed", changes)
    return dataclasses.replace(dynamics, id=own_id, **changes)  # type: ignore[arg-type]


def with_plant_parameters(dynamics: Dynamics, values: Mapping[str, float]) -> Dynamics:
    """Return a plant with other values of its parameters, under an id of its own.

    Examples
    --------
    >>> import spaql
    >>> oven = spaql.problems.find_dynamics("spaql/Oven-v0")
    >>> slow = with_plant_parameters(oven, {"time constant [s]": 180.0})
    >>> slow.parameters["time constant [s]"], slow.parameters["gain [K]"]
    (180.0, 240.0)
    """
    refuse_unknown(values, dynamics.parameters, "parameters", "parameter of the plant")
    changed = {**dynamics.parameters, **values}
    return dataclasses.replace(dynamics, id=derived_id(dynamics, "changed", changed), parameters=changed)


def paired_states(
    dynamics: Dynamics, states: NDArray[np.float64], changed: Dynamics, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return states of a changed plant that differ from those of the plant only in what was changed.

    They have the same starts, loads and noise; what the plant does not draw is drawn.
    """
    rows = changed.draw(len(states), rng)
    copy_common(dynamics.disturbances, states, changed.disturbances, rows, dynamics.plant_dims)
    return rows


def with_other_cost(dynamics: Dynamics, stage: StageCost) -> Dynamics:
    """Return a plant that declares a cost and constraints, under an id of its own.

    Their names may be others than the plant's, for the same numbers.

    Examples
    --------
    >>> import spaql
    >>> pendulum = spaql.problems.find_dynamics("Pendulum-v1")
    >>> stage = StageCost.of("angle_speed**2", [], ["x", "y", "angle speed"], ["torque"])
    >>> with_other_cost(pendulum, stage).cost
    'speed ** 2'
    """
    actions = dynamics.actions if isinstance(dynamics.actions, Mapping) else (LISTED,)
    own = stage.renamed(dynamics.observations, actions)
    own_id = derived_id(dynamics, "cost", own.as_data)
    return dataclasses.replace(dynamics, id=own_id, cost=own.cost, constraints=own.constraints)


def derived_id(dynamics: Dynamics, word: str, changes: object) -> str:
    """Return an id that is the same for the same changes of a plant.

    Examples
    --------
    >>> import spaql
    >>> derived_id(spaql.problems.find_dynamics("spaql/Oven-v0"), "steps", 1)
    'spaql/Oven-steps-6b86b2-v0'
    """
    drawn = hashlib.sha256(repr(changes).encode()).hexdigest()[:6]
    name, _, version = re.fullmatch(r"(.*?)(-v(\d+))?", dynamics.id).groups()  # type: ignore[union-attr]
    return f"{name}-{word}-{drawn}-v{version or 0}"


_BEGINS = (0.25, 0.75)
"""The shares of an episode between which set-points step."""
_NEVER = 1e9
"""The step at which set-points step in an episode without such a step."""
_STARTS = 8
"""Starts that show whether set-points differ; from two of them, whether they change by themselves."""
_SAME = 1e-12
"""Rounding of an observation that shows a state variable, relative to it."""


def _state_place(observe: Callable[..., Any], state: tuple[float, ...], number: int) -> int | None:
    """Return the state variable that an observation shows, up to a constant; None if it shows none alone.

    Examples
    --------
    >>> [_state_place(lambda s: (s[1] - 273.15, s[0] * s[1]), (2.0, 300.0), number) for number in (0, 1)]
    [1, None]
    """
    shown = observe(state)[number]
    follows = []
    for j in range(len(state)):
        try:
            change = observe((*state[:j], state[j] + 1.0, *state[j + 1 :]))[number] - shown
        except (ArithmeticError, ValueError):  # it is not defined there
            return None
        if math.isclose(change, 1.0, abs_tol=_SAME * (1.0 + abs(shown))):
            follows.append(j)
        elif change != 0.0:
            return None
    return follows[0] if len(follows) == 1 else None


def state_places(plant: Dynamics, observed: list[int]) -> list[int]:
    """Return the places in a state of what is observed at some places, of those that are in a state.

    Examples
    --------
    >>> import spaql
    >>> state_places(spaql.problems.find_dynamics("spaql/Oven-v0"), [1])
    [1]
    """
    start, _, observe = plant.nominal_functions
    state = start(np.random.default_rng(0))
    places = [_state_place(observe, state, goal) for goal in observed]
    return [place for place in places if place is not None]


@dataclasses.dataclass(frozen=True)
class SetpointSteps:
    """A plant whose set-points step once in half of its episodes."""

    plant: Dynamics
    begins: tuple[int, int]
    """The step of an episode from which on, and the one before which, set-points step."""


def with_setpoint_steps(
    plant: Dynamics, setpoints: list[int], horizon: int
) -> tuple[SetpointSteps | None, int]:
    """Return a plant whose set-points step in half of its episodes, and the simulator steps that were made.

    Such an episode draws when they step, between a quarter and three quarters of it, and to what: the
    set-points of another start. The other half is as the plant declares it. None where the set-points are no
    numbers of the state, are the same in all starts, or change by themselves: then a design meets what the
    plant declares.

    Parameters
    ----------
    plant
        The plant.
    setpoints
        Their places in an observation.
    horizon
        Steps of an episode.

    Examples
    --------
    >>> import spaql
    >>> found, steps = with_setpoint_steps(spaql.problems.find_dynamics("spaql/Oven-v0"), [1], 150)
    >>> found.begins, found.plant.plant_dims, steps
    ((37, 112), 6, 300)
    """
    places = state_places(plant, setpoints)
    if not places or len(places) < len(setpoints):
        return None, 0
    start = plant.nominal_functions[0]
    rng = np.random.default_rng(0)
    starts = np.array([start(rng) for _ in range(_STARTS)])
    if not np.ptp(starts[:, places], axis=0).any():
        return None, 0
    changes, steps = _change_by_themselves(plant, places, starts[:2], horizon)
    if changes:
        return None, steps
    first, end = (int(share * horizon) for share in _BEGINS)
    begins = first, max(first + 1, end)
    return SetpointSteps(_stepped(plant, tuple(places), begins), begins), steps


def _change_by_themselves(plant: Dynamics, places: list[int], starts: Any, horizon: int) -> tuple[bool, int]:
    """Return whether the plant's own equations change its set-points, and the steps that showed it."""
    _, step, _ = plant.nominal_functions
    space = plant.action_space
    steps = 0
    assert isinstance(space, Box)
    for start in starts.tolist():
        state = tuple(start)
        for _ in range(horizon):
            action = (space.low + space.high).astype(np.float64) / 2
            state, _, terminated = step(state, action)
            steps += 1
            if any(state[j] != start[j] for j in places):
                return True, steps
            if terminated:
                break
    return False, steps


def _stepped(plant: Dynamics, places: tuple[int, ...], begins: tuple[int, int]) -> Dynamics:
    """Return the plant with longer states: when set-points step, the steps so far, and to what they step."""
    start, step, observe = (_callable(function) for function in (plant.start, plant.step, plant.observe))
    n = plant.plant_dims
    m = len(places)
    first, end = begins
    blank = (0.0,) * (2 + m)

    def start_with_step(rng: np.random.Generator) -> Any:
        state = start(rng)
        other = start(rng)
        begin = float(rng.integers(first, end))
        more = with_number(blank, 0, begin if rng.random() < 0.5 else _NEVER)
        for j in range(m):
            more = with_number(more, 2 + j, other[places[j]])
        return state + more

    @callable_by_kernels
    def after_step(state: Any, result: Any) -> Any:
        after, reward, terminated = result
        more = with_number(state[n:], 1, state[n + 1] + 1.0)
        if more[1] >= more[0]:
            for j in range(m):
                after = with_number(after, places[j], more[2 + j])
        return after + more, reward, terminated

    def plain(state: Any, action: Any) -> Any:
        return after_step(state, step(state[:n], action))

    def with_parameters(state: Any, action: Any, parameters: Any) -> Any:
        return after_step(state, step(state[:n], action, parameters))

    def with_rng(state: Any, action: Any, rng: Any) -> Any:
        return after_step(state, step(state[:n], action, rng))

    def with_both(state: Any, action: Any, parameters: Any, rng: Any) -> Any:
        return after_step(state, step(state[:n], action, parameters, rng))

    def observe_first(state: Any) -> Any:
        return observe(state[:n])

    forms: dict[tuple[str, ...], Callable[..., Any]] = {
        (): plain,
        ("parameters",): with_parameters,
        ("rng",): with_rng,
        ("parameters", "rng"): with_both,
    }
    chosen = forms[plant.disturbances.extras]
    for function in (start_with_step, chosen, observe_first):
        # Cached code refers to the module of the plant, and is linked by name.
        function.__qualname__ += f"_{plant.start.__module__}_{plant.step.__module__}_{plant.digest[:16]}"
    return dataclasses.replace(
        plant,
        id=derived_id(plant, "steps", begins),
        start=start_with_step,
        step=chosen,
        observe=observe_first,
    )


def _callable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the plant that both kernels and Python call."""
    return function if hasattr(function, "py_func") else callable_by_kernels(function)
