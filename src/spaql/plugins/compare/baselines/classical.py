"""Controllers from a textbook, derived from a plant's equations: they need a model, but no interactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Policy
from spaql.controllers.policy import Rng
from spaql.errors import SettingError
from spaql.plugins.sweeps.curve import LearningCurve
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.trainers import Trained
from spaql.problems import Problem, make_problem

Floats = NDArray[np.float64]

_PENDULUM_GAINS = (19.69, 5.26)
_CART_POLE_GAINS = (0.91, 2.13, 30.59, 7.84)


def swing_up(observations: Floats) -> Floats:
    """Return Pendulum's torque: energy pumping by the sign of the speed, and a linear law near the top.

    A rod of length and mass 1 under gravity 10 has the energy w² / 6 + 5 cos th, which is 5 at rest upright.
    """
    cos, sin, speed = observations.T
    angle = np.arctan2(sin, cos)
    lacking = 5.0 - (speed**2 / 6.0 + 5.0 * cos)
    pumping = np.where(speed == 0.0, 2.0, 2.0 * np.sign(speed * lacking))
    holding = -(_PENDULUM_GAINS[0] * angle + _PENDULUM_GAINS[1] * speed)
    return np.clip(np.where(np.abs(angle) < 0.5, holding, pumping), -2.0, 2.0)[:, None]


def linear_push(observations: Floats) -> NDArray[np.int64]:
    """Return CartPole's push: to the right if a weighted sum of the state is positive."""
    return np.asarray(observations @ np.array(_CART_POLE_GAINS) > 0.0, np.int64)


@dataclass(frozen=True)
class Classical:
    """A controller from a textbook."""

    law: Callable[[Floats], NDArray[Any]]
    numbers: int
    """The number of parameters: gains and thresholds."""


CLASSICAL: Mapping[str, Classical] = MappingProxyType(
    {
        "Pendulum-v1": Classical(swing_up, 3),
        "CartPole-v1": Classical(linear_push, 4),
    }
)
"""By environment."""


class ClassicalPolicy(Policy):
    """A textbook's controller as a policy."""

    def __init__(self, problem: Problem) -> None:
        self._law = CLASSICAL[problem.name].law
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        return self._law(np.asarray(observations, np.float64))


class _ClassicalTrainer:
    """Runs a textbook's controller, which learns nothing."""

    def check(self, run: Run) -> None:
        if run.problem not in CLASSICAL:
            raise SettingError(
                f"There is no textbook controller for {run.problem}, only for {' and '.join(CLASSICAL)}."
            )
        if run.settings or run.total_interactions != 0:
            raise SettingError("classical learns nothing: give it total_interactions = 0, and no settings.")

    def train(self, run: Run, curve: LearningCurve, checkpoint: Path, checkpoint_every: int) -> Trained:
        """Return the controller, after no interactions."""
        problem = make_problem(run.problem, measured=False)
        numbers = CLASSICAL[run.problem].numbers
        return Trained(ClassicalPolicy(problem), problem, {"interactions": 0}, numbers, _save_nothing)


def _save_nothing(folder: Path) -> None:
    """Make an empty folder: the controller is in the source."""
    folder.mkdir(parents=True, exist_ok=True)


classical = _ClassicalTrainer()
"""The trainer of textbook controllers."""
