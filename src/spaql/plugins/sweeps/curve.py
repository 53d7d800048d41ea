"""Learning curves: the policy of a run, evaluated during training and at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Policy
from spaql.errors import SettingError
from spaql.plugins.sweeps.run import Run
from spaql.problems import Problem
from spaql.simulate import Episode, play, record
from spaql.simulate.play import set_classic_state
from spaql.stats import mean_ci95

CURVE = "curve.csv"
"""The points of a learning curve, in the folder of its run."""


@dataclass(frozen=True)
class CurvePoint:
    """The policy after a number of interactions, evaluated in fresh episodes."""

    interactions: int
    mean_return: float
    worst_start: float
    """The lowest return of the episodes."""
    chattering: float
    """The mean change of the action from step to step: in its unit, or in numbers of discrete actions."""
    size: float
    """Leaves of a tree, arms of a partition, or parameters of a law or network that an action is computed
    from; NaN for any other policy."""


class LearningCurve:
    """Evaluates the policy of a run at the numbers of interactions in `Run.evaluate_at`, and at the end.

    Every point uses the same episodes: actions are deterministic, and runs with equal seeds start in the
    same states, whatever their algorithm. Neither these steps nor their time are counted.
    """

    def __init__(self, run: Run) -> None:
        self.points: list[CurvePoint] = []
        self.wall: list[float] = []
        """Seconds of training before each point, wall-clock time."""
        self.cpu: list[float] = []
        """The same in processor time."""
        self._run = run
        end = math.inf if run.total_interactions is None else run.total_interactions
        self._pending = [at for at in run.evaluate_at if at < end]
        self._starts: NDArray[np.float64] | None = None
        self._spent = np.zeros(2)
        self._began = _now()

    def due(self, interactions: int) -> bool:
        """Return whether the policy is to be evaluated after this number of interactions."""
        return bool(self._pending) and self._pending[0] <= interactions

    def evaluate(self, interactions: int, policy: Policy, problem: Problem, size: float | None) -> None:
        """Add a point; one with the same number of interactions is replaced."""
        self._spent += _now() - self._began
        self._pending = [at for at in self._pending if at > interactions]
        if self.points and self.points[-1].interactions == interactions:
            for column in (self.points, self.wall, self.cpu):
                column.pop()
        wall, cpu = self._spent.tolist()
        self.wall.append(wall)
        self.cpu.append(cpu)
        episodes = list(self._episodes(policy, problem))
        returns = [episode.total for episode in episodes]
        changes = np.concatenate([np.abs(np.diff(episode.action_rows, axis=0)) for episode in episodes])
        chattering = float(changes.mean()) if changes.size else 0.0
        mean, _ = mean_ci95(returns)
        self.points.append(
            CurvePoint(interactions, mean, min(returns), chattering, math.nan if size is None else size)
        )
        self._began = _now()

    def _episodes(self, policy: Policy, problem: Problem) -> Iterable[Episode]:
        n = self._run.fresh_episodes
        seed = self._run.agent_seed + 1
        if self._starts is None:
            self._starts = fresh_starts(problem, n, seed)
        if self._starts.size:
            return play(policy, problem, self._starts)
        return record(policy, problem, range(seed, seed + n))

    def to_csv(self) -> str:
        """Return the points as CSV, every number in full precision."""
        rows = [",".join(field.name for field in fields(CurvePoint))]
        rows += [",".join(map(repr, astuple(point))) for point in self.points]
        return "\n".join(rows) + "\n"


def fresh_starts(problem: Problem, n: int, seed: int) -> NDArray[np.float64]:
    """Return n initial states, drawn by the environment.

    The array is empty if the state of the environment cannot be read and set.

    Examples
    --------
    >>> from spaql import make_problem
    >>> fresh_starts(make_problem("Pendulum-v1"), 3, seed=0).shape
    (3, 2)
    """
    states = []
    with closing(problem.make()) as env:
        plant: Any = env.unwrapped
        try:
            for i in range(n):
                env.reset(seed=seed if i == 0 else None)
                states.append(np.array(plant.state, np.float64))
            if problem.dynamics is None:
                set_classic_state(env, states[0])
        except (AttributeError, TypeError, ValueError, SettingError):
            return np.empty((0, 0))
    return np.array(states)


def _now() -> NDArray[np.float64]:
    """Return the wall-clock time and the processor time."""
    return np.array([time.perf_counter(), time.process_time()])
