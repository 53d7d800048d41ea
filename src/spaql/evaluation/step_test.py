"""Step tests of controllers on a plant without noise: a step of each set-point in turn, then a load."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.controllers import Policy
from spaql.controllers.arrays import action_range
from spaql.errors import SettingError
from spaql.evaluation.control import StepResponse, step_response
from spaql.problems import Dynamics, Load, Problem
from spaql.problems.variants import state_places
from spaql.simulate.loop import PlantRows, episodes_of, play_rows

Floats = NDArray[np.float64]
_USUAL_LOAD = 0.05
"""The load, as a fraction of the range of the first action, if the plant declares none."""
_STARTS = 200
_SHARE = 0.25
"""Set-points step from this quantile of their initial values to the opposite quantile."""
_FIXED = 0.1
"""Size of the step of a set-point with a constant initial value, as a fraction of its range."""


@dataclass(frozen=True)
class Response:
    """The response of a controller in a step test."""

    signals: Floats
    """The controlled variables at each sample."""
    actions: Floats
    """One row per sample."""
    steps: tuple[StepResponse, ...]
    """The response of each controlled variable to the step of its set-point."""
    interactions: tuple[float, ...]
    """Largest movement of each controlled variable by steps of other set-points; 0 if there is only one."""
    errors_under_load: tuple[float, ...]
    """The steady-state error of each signal under the load."""


@dataclass(frozen=True)
class StepTest:
    """A step test: equal periods at the initial set-points, after the step of each, and under load."""

    names: tuple[str, ...]
    """The controlled variables."""
    actions: tuple[str, ...]
    time_step: float
    time_unit: str
    setpoints: Floats
    """One row per sample."""
    load: float
    """In the unit of the action to which it is added."""
    loaded: str
    """The name of that action."""
    begins: tuple[int, ...]
    """The samples at which each set-point steps, and at which the load begins."""
    responses: Mapping[str, Response]


@dataclass(frozen=True, eq=False)
class StepPlan:
    """The plan of a step test, with its plant."""

    plant: Dynamics
    """The plant without noise, with nominal parameters and one load."""
    first: Floats
    """The initial simulated state, which contains the set-points and the load."""
    places: tuple[int, ...]
    """Indices of the set-points in a state."""
    pairs: tuple[tuple[int, int], ...]
    """Indices in an observation: of each controlled variable, and of its set-point."""
    before: Floats
    """The set-points before and after their steps."""
    after: Floats
    load: float
    """In the unit of the action to which it is added."""
    loaded: str
    """The name of that action."""
    part: int
    """Number of samples at the initial set-points, after the step of each, and under load."""

    @property
    def load_place(self) -> int:
        """Index in a state of the step at which the load begins; its size is next to it."""
        return len(self.first) - 4  # before the key of the episode and its steps

    @property
    def begins(self) -> tuple[int, ...]:
        """The samples at which each set-point steps, and at which the load begins."""
        return tuple(self.part * (1 + j) for j in range(len(self.places) + 1))

    @property
    def goals(self) -> Floats:
        """The set-points at each sample, one row per sample."""
        samples = np.arange(self.part * (len(self.places) + 2))[:, np.newaxis]
        return np.where(samples < self.begins[:-1], self.before, self.after)


def step_test(problem: Problem, policies: Mapping[str, Policy], *, horizon: int | None = None) -> StepTest:
    """Return the responses of controllers to steps of the set-points and to a load, without noise.

    The plant has its nominal gains, parameters and dead time. Set-points step one after the other, which
    shows the coupling: odd set-points step upwards and even ones downwards. The load is
    the first that the plant declares, or a twentieth of the range of the first action.

    Parameters
    ----------
    problem
        A problem with compiled dynamics, set-points and actions with a range.
    policies
        The controllers, by name.
    horizon
        Samples of each period; those of an episode by default.

    Examples
    --------
    >>> from spaql import RandomPolicy, make_problem
    >>> oven = make_problem("spaql/Oven-v0")
    >>> result = step_test(oven, {"random": RandomPolicy(oven.states, oven.actions)})
    >>> result.loaded, result.load, result.begins, result.responses["random"].signals.shape
    ('heat', 0.25, (150, 300), (450, 1))
    """
    plan = step_plan(problem, horizon=horizon)
    time_step = problem.sample_time or 1.0
    responses = {name: _measured(*_play(plan, policy), plan, time_step) for name, policy in policies.items()}
    return StepTest(
        tuple(problem.setpoints),
        problem.actions.labels,
        time_step,
        "s" if problem.sample_time else "samples",
        plan.goals,
        plan.load,
        plan.loaded,
        plan.begins,
        responses,
    )


def step_plan(problem: Problem, *, horizon: int | None = None) -> StepPlan:
    """Return the plan of a step test (see `step_test`).

    Examples
    --------
    >>> from spaql import make_problem
    >>> plan = step_plan(make_problem("spaql/Oven-v0"))
    >>> plan.places, plan.pairs, plan.part
    ((1,), ((0, 1),), 150)
    """
    plant = problem.dynamics
    if plant is None or not has_step_test(problem):
        raise SettingError(
            f"{problem.name} has no step test, which needs compiled dynamics, set-points that are "
            f"state variables, and actions with a range; it runs on {problem.runs_on}."
        )
    part = horizon or problem.horizon
    pairs = problem.setpoint_places
    quiet, load, loaded = _quiet(problem, plant)
    starts = _starts(quiet)
    places = state_places(quiet, [j for _, j in pairs])
    ends = np.quantile(starts[:, places], [_SHARE, 1 - _SHARE], axis=0)
    ranges = np.array(list(quiet.observations.values()), np.float64)[[j for _, j in pairs]]
    fixed = (ends[0] == ends[1]) & np.isfinite(ranges).all(axis=1)
    ends[1] = np.where(fixed, ends[0] + _FIXED * np.where(fixed, np.ptp(ranges, axis=1), 0.0), ends[1])
    before = np.where(np.arange(len(places)) % 2 == 0, ends[0], ends[1])
    first = np.array(quiet.functions[0](np.random.default_rng(0)))
    first[: quiet.plant_dims] = starts.mean(axis=0)
    first[places] = before
    plan = StepPlan(
        quiet, first, tuple(places), tuple(pairs), before, ends[0] + ends[1] - before, load, loaded, part
    )
    first[plan.load_place : plan.load_place + 2] = plan.begins[-1], load
    return plan


def _quiet(problem: Problem, plant: Dynamics) -> tuple[Dynamics, float, str]:
    """Return the plant without noise, with nominal parameters and one load; the load and its action."""
    actions = list(plant.actions)
    low, high = action_range(problem.actions.space)
    name = actions[0]
    size = _USUAL_LOAD * float(high[0] - low[0])
    if plant.disturbance:
        name = next(iter(plant.disturbance))
        size = plant.disturbance[name].size
    least, most = plant.disturbances.delay
    quiet = dataclasses.replace(
        plant,
        id=f"{plant.id.rpartition('-v')[0]}-quiet-v0",
        noise={},
        late_observations=False,
        action_noise={},
        gain=0.0,
        delay=(least + most) // 2,
        parameters=plant.middle_parameters,
        disturbance={name: Load(size=size, begins=(0, 1))},
    )
    names = problem.actions.labels
    return quiet, size, names[actions.index(name)]


def has_step_test(problem: Problem) -> bool:
    """Return whether a problem has compiled dynamics, set-points in its state, and ranges of actions."""
    plant = problem.dynamics
    if plant is None or not problem.setpoints or isinstance(problem.actions.space, Discrete):
        return False
    goals = [goal for _, goal in problem.setpoint_places]
    return len(state_places(plant, goals)) == len(goals)


def _starts(plant: Dynamics) -> Floats:
    start = plant.nominal_functions[0]
    rng = np.random.default_rng(0)
    return np.array([start(rng) for _ in range(_STARTS)])


class _SteppedRows(PlantRows):
    """The plant of a plan, whose set-points are written into its state."""

    def __init__(self, plan: StepPlan) -> None:
        self._plan = plan
        self._taken = 0
        states = plan.first[np.newaxis].copy()
        states[0, plan.places] = plan.goals[0]
        super().__init__(plan.plant.plant, states)

    def step(self, actions: Any, running: NDArray[np.bool_]) -> tuple[Any, Floats, Any, Any]:
        """Make a step, after which the next set-points hold."""
        _, rewards, _, truncated = super().step(actions, running)
        self._taken += 1
        self.states[0, self._plan.places] = self._plan.goals[min(self._taken, len(self._plan.goals) - 1)]
        return self.observations(), rewards, np.zeros(1, np.bool_), truncated


def _play(plan: StepPlan, policy: Policy) -> tuple[Floats, Floats]:
    """Return the controlled variables and the actions."""
    rows = _SteppedRows(plan)
    played = play_rows(policy, rows, rows.first, len(plan.goals), None)
    (episode,) = episodes_of(rows.first, played)
    return episode.observations[:-1, [i for i, _ in plan.pairs]], episode.action_rows


def _measured(signals: Floats, actions: Floats, plan: StepPlan, time_step: float) -> Response:
    parts = np.split(signals, plan.begins)
    steps = []
    interactions = []
    errors = []
    for j, goal in enumerate(plan.after.tolist()):
        steps.append(step_response(parts[1 + j][:, j], goal, time_step=time_step))
        others = [part[:, j] for k, part in enumerate(parts[1:-1]) if k != j]
        interactions.append(max((float(np.abs(part - part[0]).max()) for part in others), default=0.0))
        errors.append(step_response(parts[-1][:, j], goal, time_step=time_step).error_at_rest)
    return Response(signals, actions, tuple(steps), tuple(interactions), tuple(errors))
