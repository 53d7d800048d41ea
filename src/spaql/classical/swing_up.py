"""Energy pumping (Åström and Furuta, 2000), with a linear regulator near the top, to swing up a pole."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spaql.classical.linear import Floats, LinearPlant
from spaql.classical.policies import LQRPolicy
from spaql.problems import Problem

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
