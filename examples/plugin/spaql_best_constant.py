"""A trainer: the best of some constant actions, as an algorithm of studies.

A study with `algorithm = "best-constant"` runs it next to the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from spaql.controllers import Policy
from spaql.errors import SettingError
from spaql.plugins.sweeps.curve import LearningCurve
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.trainers import Trained
from spaql.problems import Problem, make_problem
from spaql.simulate.play import record


class Constant(Policy):
    """One action, whatever is observed."""

    def __init__(self, action: Any, problem: Problem) -> None:
        self.action = action
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations: Any, steps: Any, rng: Any) -> Any:
        """Return the action once for each observation."""
        return np.array([self.action] * len(observations))


class BestConstant:
    """Tries constants for an episode each, as many as the budget allows."""

    def check(self, run: Run) -> None:
        """Refuse settings: there are none."""
        if run.settings or not run.total_interactions:
            raise SettingError("best-constant needs a budget of interactions, and has no settings.")

    def train(self, run: Run, curve: LearningCurve, checkpoint: Path, checkpoint_every: int) -> Trained:
        """Return the best constant."""
        problem = make_problem(run.problem, measured=False)
        problem.actions.space.seed(run.agent_seed)
        best = (-np.inf, None)
        spent = 0
        while spent + problem.horizon <= run.total_interactions:
            policy = Constant(problem.actions.space.sample(), problem)
            (episode,) = record(policy, problem, [spent])
            spent += episode.length
            best = max(best, (episode.total, policy), key=lambda tried: tried[0])
        if best[1] is None:
            raise SettingError(f"best-constant needs {problem.horizon} interactions at least.")
        return Trained(
            best[1], problem, {"interactions": spent}, 1, lambda folder: folder.mkdir(exist_ok=True)
        )


trainer = BestConstant()
"""What the package declares in `spaql.trainers`."""
