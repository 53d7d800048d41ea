"""PID controllers, tuned by a direct search."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.classical.linear import Floats
from spaql.classical.policies import PIDPolicy
from spaql.classical.search import Simulator, Tuned, search
from spaql.controllers import Controller, Error, Feature, FilteredDerivative, Integral, Policy
from spaql.controllers.arrays import action_range
from spaql.controllers.policy import Rng
from spaql.errors import SettingError
from spaql.problems import Problem
from spaql.spaces import action_names, observation_names, split_unit

_WOUND = 100.0
"""The limit of an integral is as many ranges of the action: it waits long before."""
_FILTER = 0.2
"""Time constant of the filter, of the derivative time, at which the search begins."""


def tuned_pid(problem: Problem, simulator: Simulator, steps: int) -> Tuned:
    """Return a PID controller for each set-point (see `spaql.classical.tune`)."""
    if not problem.setpoints:
        raise SettingError(f"{problem.name} has no set-point for a PID controller: declare setpoints.")
    pairs = problem.setpoint_places
    response, size = _open_loop(problem, simulator, pairs)
    loops = _paired(pairs, response)
    low, high = action_range(problem.actions.space)
    half = (high - low) / 2
    middle = (high + low) / 2
    dt = problem.sample_time or 1.0
    m = len(loops)
    sign = np.array([np.sign(response[i, k]) or 1.0 for i, (_, _, k) in enumerate(loops)])
    usual = sign * half[[k for _, _, k in loops]] / size
    slow = problem.horizon * dt / 10

    def family(vectors: Floats, rows: int) -> PIDPolicy:
        kp, ti, td, filtered = (np.exp(vectors[:, j * m : (j + 1) * m]) for j in range(4))
        kp = usual * kp
        tf = _FILTER * td * np.sqrt(filtered)
        gains = (
            kp,
            kp / (slow * ti),
            kp * dt * td,
            dt * tf,
            np.clip(middle + half * vectors[:, 4 * m :], low, high),
        )
        kp, ki, kd, filter_time, bias = (np.repeat(gain, rows, axis=0) for gain in gains)
        return PIDPolicy(problem, loops, kp=kp, ki=ki, kd=kd, filter_time=filter_time, bias=bias)

    vector, _ = search(simulator, family, 4 * m + len(low), steps - simulator.spent)
    policy = family(vector[None], 1)
    return Tuned(
        "pid",
        pid_controller(problem, policy) or policy,
        _pid_text(problem, policy),
        simulator.spent,
        len(vector),
    )


def pid_controller(problem: Problem, policy: PIDPolicy) -> Controller | None:
    """Return PID controllers as a `Controller`; None for a speed of an angle, which no feature unwraps."""
    if any(policy.turns) or not isinstance(problem.states.space, Box):
        return None
    observations = observation_names(problem.states.space, problem.states.names)
    actions = action_names(problem.actions.space, problem.actions.names)
    low, high = action_range(problem.actions.space)
    features: list[Feature] = []
    gains: dict[str, dict[str, float]] = {}
    offsets = {split_unit(name)[0]: float(x) for name, x in zip(actions, policy.bias[0], strict=True)}
    loops = zip(policy.outputs, policy.goals, policy.actions, strict=True)
    for j, (output, goal, action) in enumerate(loops):
        place, wanted, acted = (
            split_unit(name)[0] for name in (observations[output], observations[goal], actions[action])
        )
        kp, ki, kd = (float(gain[0, j]) for gain in (policy.kp, policy.ki, policy.kd))
        error, integral, slope = (f"{what} of {place}" for what in ("error", "integral", "slope"))
        most = _WOUND * float(high[action] - low[action]) / abs(ki)
        features += [
            Error(error, wanted, place),
            Integral(integral, error, limit=most),
            FilteredDerivative(slope, place, time_constant=float(policy.filter_time[0, j])),
        ]
        gains[acted] = {error: kp, integral: ki, slope: -kd}
    return Controller.of_laws(
        features,
        gains,
        offsets,
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=observations,
        actions=actions,
        sample_time=problem.sample_time or 1.0,
    )


def _open_loop(
    problem: Problem, simulator: Simulator, pairs: Sequence[tuple[int, int]]
) -> tuple[Floats, Floats]:
    """Return how numbers answer to actions held at a quarter and at three quarters, and usual errors."""
    low, high = action_range(problem.actions.space)
    middle = (low + high) / 2
    quarter = (high - low) / 4
    starts = simulator.starts(4)
    answers = np.empty((len(pairs), len(low)))
    size = np.ones(len(pairs))
    for k in range(len(low)):
        ends = []
        for side in (-1.0, 1.0):
            action = middle.copy()
            action[k] += side * quarter[k]
            held = _Held(problem, action)
            simulator.play(held, starts, 4)
            ends.append(held.middle(pairs))
            size = np.maximum(held.first_errors(pairs), 1e-6)
        answers[:, k] = ends[1] - ends[0]
    return answers, size


class _Held(Policy):
    """A constant action that remembers what it saw."""

    def __init__(self, problem: Problem, action: Floats) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space
        self._action = action
        self._observations: list[Floats] = []

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        self._observations.append(np.asarray(observations, np.float64).reshape(len(steps), -1).copy())
        return np.tile(self._action, (len(steps), 1)).astype(self.action_space.dtype)

    def middle(self, pairs: Sequence[tuple[int, int]]) -> Floats:
        """Return the numbers a quarter into the episode, before they reach a limit."""
        rows = self._observations[max(1, len(self._observations) // 4)]
        return np.array([rows[:, i].mean() for i, _ in pairs])

    def first_errors(self, pairs: Sequence[tuple[int, int]]) -> Floats:
        """Return the mean distance from the set-points at the start."""
        return np.array(
            [np.abs(self._observations[0][:, i] - self._observations[0][:, j]).mean() for i, j in pairs]
        )


def _paired(pairs: Sequence[tuple[int, int]], response: Floats) -> list[tuple[int, int, int]]:
    """Return the loops: each number with the action of the largest relative gain (Bristol, 1966)."""
    m, n = response.shape
    if m > n:
        raise SettingError(
            f"{m} numbers have a set-point, and there are {n} actions: PID needs one for each."
        )
    relative = response * np.linalg.pinv(response).T
    best = max(itertools.permutations(range(n), m), key=lambda order: sum(relative[range(m), order]))
    return [(i, j, k) for (i, j), k in zip(pairs, best, strict=True)]


def _pid_text(problem: Problem, policy: PIDPolicy) -> str:
    names = observation_names(problem.states.space, problem.states.names)
    actions = action_names(problem.actions.space, problem.actions.names)
    unit = "s" if problem.sample_time else "samples"
    lines = []
    for j, (output, action) in enumerate(zip(policy.outputs, policy.actions, strict=True)):
        kp, ki, kd = (float(gains[0, j]) for gains in (policy.kp, policy.ki, policy.kd))
        lines.append(
            f"{actions[action]}: PID of {names[output]}, Kp = {kp:.3g}, Ti = {kp / ki:.3g} {unit}, "
            f"Td = {kd / kp:.3g} {unit}, filter {policy.filter_time[0, j]:.2g} {unit}, "
            f"bias {policy.bias[0, action]:.3g}"
        )
    return "\n".join(lines)
