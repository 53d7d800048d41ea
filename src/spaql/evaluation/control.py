"""Measures of control engineering: responses to set-points, and the use of actuators."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import ArrayLike, NDArray

from spaql.controllers import RecordingPolicy
from spaql.evaluation.episodes import Playable, policy_and_problem
from spaql.problems import EnvironmentLike, Problem
from spaql.simulate import Evaluation, fresh_episodes
from spaql.values import whole_number

Floats = NDArray[np.float64]
BAND = 0.05
"""Fraction of a step of the set-point within which a signal counts as settled."""
_SIGMAS = 3.0
"""Smallest half-width of the band, in standard deviations of the declared noise."""
_TAIL = 0.1
"""Last part of a response, as a fraction, from which the steady-state error is computed."""
_SHORTEST = 5
"""Smallest number of samples of a response, and of its last part."""
_AT_LIMIT = 1e-6
"""Fraction of its range within which an action is at its limit."""


@dataclass(frozen=True)
class StepResponse:
    """One response to a set-point; times are infinite if not reached, and NaN without a step."""

    rise_time: float
    """Time from 10 to 90 % of the step."""
    overshoot: float
    """Share of the step."""
    settling_time: float
    error_at_rest: float
    """Distance of the mean of the last tenth of the response from the set-point."""
    integral_of_absolute_error: float


@dataclass(frozen=True)
class Tracking:
    """The responses of a controlled variable to its set-point, over all episodes; less is better."""

    name: str
    setpoint: str
    unit: str
    rise_time: float
    """Median."""
    overshoot: float
    """Median share of the step."""
    settling_time: float
    """Median; infinite if most responses do not settle."""
    settled: float
    """Share of responses that settle."""
    error_at_rest: float
    """Mean."""
    worst_error_at_rest: float
    integral_of_absolute_error: float
    """Mean of the episodes."""


@dataclass(frozen=True)
class Actuator:
    """The use of an actuator, a component of the action; less is better."""

    name: str
    movement: float
    """Mean change between two samples, as a fraction of the range; for discrete actions, share of samples."""
    total_variation: float
    """Sum of all changes in an episode, in its unit; for discrete actions, the number of changes."""
    reversals: float
    """Number of reversals of the direction of change, per unit of time."""
    at_limit: float
    """Share of the time at a limit."""


@dataclass(frozen=True)
class ControlMeasures:
    """Measures of a closed loop in fresh episodes, including their disturbances."""

    time_unit: str
    """`s`, or `samples` where the sample time is not declared."""
    tracking: tuple[Tracking, ...]
    actuators: tuple[Actuator, ...]


def step_response(
    signal: ArrayLike, setpoint: float, *, time_step: float = 1.0, noise: float = 0.0
) -> StepResponse:
    """Return the measures of the response of a signal to a constant set-point.

    Parameters
    ----------
    signal
        The signal at each sample; the step begins at the first.
    setpoint
        The set-point.
    time_step
        Time between two samples.
    noise
        Standard deviation of the noise: it settles within 5 % of the step, or three of these if that is
        more.

    Examples
    --------
    >>> result = step_response(1.0 - 0.5 ** np.arange(20), 1.0, time_step=0.1)
    >>> round(result.rise_time, 3), result.overshoot, result.settling_time
    (0.3, 0.0, 0.5)
    """
    y = np.asarray(signal, np.float64)
    step = setpoint - float(y[0])
    band = max(BAND * abs(step), _SIGMAS * noise)
    tail = max(_SHORTEST, math.ceil(_TAIL * len(y)))
    rest = abs(float(y[-tail:].mean()) - setpoint)
    total = float(np.abs(y - setpoint).sum()) * time_step
    if abs(step) <= max(2 * band, 1e-9):
        return StepResponse(math.nan, math.nan, math.nan, rest, total)
    done = (y - y[0]) / step
    first, nearly = (_first(done >= share) * time_step for share in (0.1, 0.9))
    rise = math.inf if math.isinf(nearly) else nearly - first
    beyond = max(0.0, float(done.max()) - 1.0)
    return StepResponse(rise, beyond, settling_time(y, setpoint, band, time_step), rest, total)


def settling_time(signal: ArrayLike, setpoint: float, band: float, time_step: float = 1.0) -> float:
    """Return the time after which the signal stays within the band; infinite if it is outside at the end.

    Examples
    --------
    >>> settling_time([1.0, 0.0, 0.5, 0.05, 0.0], 0.0, 0.1)
    3.0
    """
    outside = np.flatnonzero(np.abs(np.asarray(signal, np.float64) - setpoint) > band)
    if len(outside) == 0:
        return 0.0
    first_inside = int(outside[-1]) + 1
    return math.inf if first_inside == len(np.asarray(signal)) else first_inside * time_step


def _first(true: NDArray[np.bool_]) -> float:
    places = np.flatnonzero(true)
    return float(places[0]) if len(places) else math.inf


def actuator(
    name: str, actions: list[Floats], ends: tuple[float, float] | None, time_step: float
) -> Actuator:
    """Return the use of a component of the action in some episodes; discrete actions have no limits."""
    low, high = ends or (0.0, 1.0)
    width = high - low if math.isfinite(high - low) else 1.0
    changes = [
        np.diff(signal) if ends is not None else (np.diff(signal) != 0).astype(np.float64)
        for signal in actions
    ]
    steps = max(1, sum(len(signal) for signal in changes))
    variation = [float(np.abs(signal).sum()) for signal in changes]
    turned = 0
    for signal in actions:
        direction = np.sign(np.diff(signal))
        direction = direction[direction != 0]
        turned += int((direction[1:] != direction[:-1]).sum())
    every = np.concatenate(actions)
    near = _AT_LIMIT * width
    limit = float(((every <= low + near) | (every >= high - near)).mean()) if ends is not None else 0.0
    seconds = len(every) * time_step
    return Actuator(name, sum(variation) / steps / width, float(np.mean(variation)), turned / seconds, limit)


def measure_control(problem: Problem, observations: list[Floats], actions: list[Floats]) -> ControlMeasures:
    """Return the measures of episodes: observations before each action, and actions, one per row."""
    names = problem.states.labels
    time_step = problem.sample_time or 1.0
    noise = (
        {} if problem.dynamics is None else dict(zip(names, problem.dynamics.disturbances.noise, strict=True))
    )
    tracking = []
    for name, goal in problem.setpoints.items():
        i = names.index(name)
        j = names.index(goal)
        responses = [
            step_response(signal, setpoint, time_step=time_step, noise=noise.get(name, 0.0))
            for rows in observations
            for signal, setpoint in _responses(rows[:, i], rows[:, j], name in problem.angles)
        ]
        tracking.append(_summary(name, goal, responses, len(observations)))
    space = problem.actions.space
    if isinstance(space, Discrete):
        moved = [actuator("action", [rows[:, 0] for rows in actions], None, time_step)]
    else:
        low = space.low.ravel().tolist()
        high = space.high.ravel().tolist()
        named = problem.actions.labels
        moved = [
            actuator(name, [rows[:, k] for rows in actions], (low[k], high[k]), time_step)
            for k, name in enumerate(named)
        ]
    return ControlMeasures("s" if problem.sample_time else "samples", tuple(tracking), tuple(moved))


def _responses(signal: Floats, setpoints: Floats, is_angle: bool) -> list[tuple[Floats, float]]:
    """Return the parts of a signal between changes of its set-point, each with the set-point."""
    if is_angle:
        signal = setpoints + np.unwrap(np.remainder(signal - setpoints + math.pi, math.tau) - math.pi)
    cuts = np.flatnonzero(np.diff(setpoints)) + 1
    parts = zip(np.split(signal, cuts), np.split(setpoints, cuts), strict=True)
    return [(part, float(goal[0])) for part, goal in parts if len(part) >= _SHORTEST]


def _summary(name: str, goal: str, responses: list[StepResponse], episodes: int) -> Tracking:
    columns: Mapping[str, Floats] = {
        field.name: np.array([getattr(response, field.name) for response in responses])
        for field in dataclasses.fields(StepResponse)
    }
    stepped = columns["settling_time"][~np.isnan(columns["settling_time"])]
    unit = re.search(r"\[(.*)\]$", name)
    rest = columns["error_at_rest"]
    return Tracking(
        name,
        goal,
        unit[1] if unit else "",
        _median(columns["rise_time"]),
        _median(columns["overshoot"]),
        _median(columns["settling_time"]),
        float(np.isfinite(stepped).mean()) if len(stepped) else math.nan,
        float(rest.mean()) if len(rest) else math.nan,
        float(rest.max()) if len(rest) else math.nan,
        float(columns["integral_of_absolute_error"].sum()) / episodes,
    )


def _median(values: Floats) -> float:
    """Return the middle value without NaN; infinities count as values, and are never averaged."""
    known = np.sort(values[~np.isnan(values)])
    return float(known[(len(known) - 1) // 2]) if len(known) else math.nan


def evaluate_control(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    episodes: int = 100,
    seed: int = 0,
) -> tuple[Evaluation, ControlMeasures]:
    """Return the evaluation of `spaql.evaluate` with the same arguments, and measures of the closed loop.

    Partition policies (of AQL, SPAQL and SPAQL-TS) are measured and evaluated in different
    episodes.

    Examples
    --------
    >>> from spaql import make_problem
    >>> from spaql.controllers import RandomPolicy
    >>> motor = make_problem("spaql/DCMotor-v0", measured=False)
    >>> _, result = evaluate_control(RandomPolicy(motor.states, motor.actions), motor, episodes=5)
    >>> result.tracking[0].name, 0.2 < result.actuators[0].movement < 0.5
    ('position [rad]', True)
    """
    episodes = whole_number("episodes", episodes, least=1)
    policy, problem = policy_and_problem(agent, env)
    watched = RecordingPolicy(policy)
    evaluation = fresh_episodes(watched, problem, episodes, seed)
    if problem.dynamics is not None and policy.draws:
        played = fresh_episodes(policy, problem, episodes, seed)
    else:
        played = evaluation
    observations = watched.episodes(evaluation.lengths)
    actions = watched.episodes_of_actions(evaluation.lengths)
    return played, measure_control(problem, observations, actions)
