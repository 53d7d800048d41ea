"""PID and LQR as policies. They keep their memory themselves, one for each row of a batch.

The rows of a batch must be the same episodes from call to call, as they are in evaluations; step 0 resets a
row. Gains have a leading axis: one row for all episodes, or a row for each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.classical.linear import Floats, LinearPlant, within_a_turn
from spaql.controllers import Policy
from spaql.controllers.arrays import action_range
from spaql.controllers.policy import Rng
from spaql.problems import Problem


class _WithMemory(Policy):
    """A controller with a range of actions, whose memory is reset at step 0."""

    time_variant = True

    def __init__(self, problem: Problem) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space
        self.low, self.high = action_range(problem.actions.space)
        self.time_step = problem.sample_time or 1.0

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        rows = np.asarray(observations, np.float64).reshape(len(steps), -1)
        actions = self._sample(rows, np.asarray(steps) == 0)
        return actions.astype(self.action_space.dtype).reshape(len(steps), *(self.action_space.shape or ()))

    def _sample(self, observations: Floats, fresh: NDArray[np.bool_]) -> Floats:
        raise NotImplementedError


class PIDPolicy(_WithMemory):
    """A PID controller for each number with a set-point, with its own action.

    The action is bias + Kp e + Ki ∫e - Kd dy/dt, cut to its range, with the derivative of the output y
    through a low-pass: a step of the set-point does not pass it. The integral waits while it would push an
    action further that is cut.

    Parameters
    ----------
    problem
        The problem, whose set-points are followed.
    loops
        For each loop the places of the number and of its set-point in an observation, and of the action.
    kp, ki, kd
        Gains; a row for all episodes, or one for each.
    filter_time
        Time constants of the low-pass, as the gains.
    bias
        The actions without error, as the gains.
    """

    def __init__(
        self,
        problem: Problem,
        loops: list[tuple[int, int, int]],
        *,
        kp: Floats,
        ki: Floats,
        kd: Floats,
        filter_time: Floats,
        bias: Floats,
    ) -> None:
        super().__init__(problem)
        self.outputs, self.goals, self.actions = (list(column) for column in zip(*loops, strict=True))
        self.kp = kp
        self.ki = ki
        self.kd = kd
        self.filter_time = filter_time
        self.bias = bias
        names = problem.states.names
        self.turns = np.array([bool(names) and names[j] in problem.angles for j in self.outputs])
        self._memory: tuple[Floats, Floats, Floats] | None = None

    def _sample(self, observations: Floats, fresh: NDArray[np.bool_]) -> Floats:
        error = observations[:, self.goals] - observations[:, self.outputs]
        error = np.where(self.turns, within_a_turn(error), error)
        integral = before = slope = np.zeros_like(error)
        if self._memory is not None and len(self._memory[0]) == len(error):
            integral, before, slope = self._memory
        first = fresh[:, None]
        integral = np.where(first, 0.0, integral)
        slope = np.where(first, 0.0, slope)
        output = observations[:, self.outputs]
        change = np.where(first, 0.0, output - before)
        change = np.where(self.turns, within_a_turn(change), change)
        share = self.time_step / (self.time_step + self.filter_time)
        slope = slope + share * (change / self.time_step - slope)
        wish = np.repeat(self.bias, len(observations) // len(self.bias), axis=0)
        wish[:, self.actions] += self.kp * error + self.ki * integral - self.kd * slope
        action = np.clip(wish, self.low, self.high)
        pushed = (wish - action)[:, self.actions] * self.ki * error > 0
        integral = integral + np.where(pushed, 0.0, self.time_step * error)
        self._memory = integral, output, slope
        return action


class LQRPolicy(_WithMemory):
    """A linear regulator about the rest of the present set-points, with dead-time compensation.

    It remembers its last actions where the plant has dead time, and, with gains for them, the integrals of
    the errors, which wait while they would push an action further that is cut.

    Parameters
    ----------
    problem
        The problem.
    plant
        Its linear model.
    gains
        Of the numbers of z, then of the last actions, the newest first, then of the integrals if any: for
        each action a row, one matrix for all episodes, or one for each.
    """

    def __init__(self, problem: Problem, plant: LinearPlant, gains: Floats) -> None:
        super().__init__(problem)
        self.plant = plant
        self.gains = gains
        self._n_line = plant.delay * plant.b.shape[1]
        self._has_integral = gains.shape[-1] > len(plant.a) + self._n_line
        self._memory: tuple[Floats, Floats] | None = None

    def _feedback(self, deviations: Floats) -> Floats:
        """Return the gains times deviations, one row for each episode."""
        gains = np.broadcast_to(self.gains, (len(deviations), *self.gains.shape[1:]))
        return np.asarray(np.einsum("nij,nj->ni", gains, deviations))

    def _sample(self, observations: Floats, fresh: NDArray[np.bool_]) -> Floats:
        plant = self.plant
        n = len(observations)
        moved = (observations[:, list(plant.setpoints)] - plant.rest_goals) @ plant.rest_slope.T
        z = plant.read(observations)
        rest = plant.rest + moved[:, : len(plant.rest)]
        action = plant.rest_action + moved[:, len(plant.rest) :]
        away = z - rest
        turns = [len(at) > 1 for at in plant.numbers]
        away[:, turns] = within_a_turn(away[:, turns])
        resting = np.tile(np.clip(np.zeros(len(self.low)), self.low, self.high), plant.delay)
        line = np.zeros((n, self._n_line))
        integral = np.zeros((n, len(plant.outputs)))
        if self._memory is not None and len(self._memory[0]) == n:
            line, integral = self._memory
        line = np.where(fresh[:, None], resting, line)
        integral = np.where(fresh[:, None], 0.0, integral)
        parts = [away, line - np.tile(action, plant.delay)] if plant.delay else [away]
        whole = np.hstack([*parts, integral] if self._has_integral else parts)
        wish = action - self._feedback(whole)
        applied: Floats = np.clip(wish, self.low, self.high)
        if self._has_integral:
            error = -away[:, list(plant.outputs)]
            pull = -self.gains[:, :, -len(plant.outputs) :]
            pushed = ((wish - applied)[:, :, None] * pull * error[:, None, :] > 0).any(axis=1)
            integral = integral + np.where(pushed, 0.0, self.time_step * error)
        line = np.hstack([applied, line])[:, : self._n_line]
        self._memory = line, integral
        return applied


N_NUMBERS = 6
"""Numbers of the pumping and of the region of the regulator, without gains of the other numbers."""


class SwingUpPolicy(LQRPolicy):
    """Pump energy into a pole until it is near the top, and regulate it there.

    In units of what the pole gains from hanging to standing, halved, its energy is e = w² / 2 w0² + cos - 1.
    The action is a clip(k e, -1, 1) sign(w cos), plus gains of the numbers that are not of the pole.

    Parameters
    ----------
    problem
        The problem.
    plant
        Its linear model about the top.
    gains
        Of the regulator, as in `LQRPolicy`.
    pumping
        For each row: a and k, w0, the cosine and the speed within which the regulator acts, the largest
        action that it may ask for, and the gains of the other numbers.
    """

    def __init__(self, problem: Problem, plant: LinearPlant, gains: Floats, pumping: Floats) -> None:
        super().__init__(problem, plant, gains)
        self.pumping = pumping
        self._angle, self._speed = pole_of(plant)
        self._others = [j for j in range(len(plant.a)) if j not in (self._angle, self._speed)]

    def _sample(self, observations: Floats, fresh: NDArray[np.bool_]) -> Floats:
        held = super()._sample(observations, fresh)
        away = self.plant.read(observations) - self.plant.rest
        cos = np.cos(away[:, self._angle])
        w = away[:, self._speed]
        strength, slope, rate, nearest, slowest, most = self.pumping[:, :N_NUMBERS].T
        energy = 0.5 * (w / rate) ** 2 + cos - 1.0
        pumped = strength * np.clip(slope * energy, -1.0, 1.0) * np.where(w * cos >= 0, 1.0, -1.0)
        pumped = pumped + (self.pumping[:, N_NUMBERS:] * away[:, self._others]).sum(axis=1)
        wish = self._feedback(away)
        near = (cos > nearest) & (np.abs(w) < slowest) & (np.abs(wish[:, 0]) < most)
        return np.where(near[:, None], held, np.clip(pumped[:, None], self.low, self.high))


def has_pole(plant: LinearPlant) -> bool:
    """Return whether a plant has one action, no dead time, and an angle that falls from its rest."""
    falls = bool(np.abs(np.linalg.eigvals(plant.a)).max() > 1.0 + 1e-6)
    turning = sum(len(at) > 1 for at in plant.numbers)
    return falls and turning == 1 and plant.b.shape[1] == 1 and not plant.delay and not plant.outputs


def pole_of(plant: LinearPlant) -> tuple[int, int]:
    """Return the places of the angle and of its speed, by which the angle changes."""
    angle = next(j for j, at in enumerate(plant.numbers) if len(at) > 1)
    change = np.abs(plant.a[angle]) * plant.scale
    change[angle] = -math.inf
    return angle, int(change.argmax())


def falling_rate(problem: Problem, plant: LinearPlant) -> float:
    """Return the rate at which a pole falls from the top, in 1/s."""
    return math.log(float(np.abs(np.linalg.eigvals(plant.a)).max())) / (problem.sample_time or 1.0)


def pumping_numbers(problem: Problem, plant: LinearPlant, vectors: Floats, half: float) -> Floats:
    """Return the numbers of the pumping from vectors of a search that begins at 0."""
    angle, speed = pole_of(plant)
    others = [j for j in range(len(plant.a)) if j not in (angle, speed)]
    falls = falling_rate(problem, plant)
    strength, slope, rate, nearest, slowest, most = vectors[:, :N_NUMBERS].T
    return np.column_stack(
        [
            half * np.clip(strength, -1.0, 1.0),
            np.exp(slope),
            falls * np.exp(0.2 * rate),
            np.clip(0.8 + 0.1 * nearest, -0.5, 0.99),
            1.5 * falls * np.exp(0.5 * slowest),
            2.5 * half * np.exp(0.5 * most),
            0.3 * half * vectors[:, N_NUMBERS:] / plant.scale[others],
        ]
    )
