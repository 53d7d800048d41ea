"""The phase of design: TreeSearch designs controllers with memory in the learned plant."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from spaql.algorithms.plantree.experience import Experience
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.plantree.tracking import TrackedRunner, fit_tracked
from spaql.algorithms.replay.memory import Floats
from spaql.algorithms.treesearch import TreeSearchLearner, TreeSearchSettings
from spaql.algorithms.treesearch.ladder.stages import consider
from spaql.algorithms.treesearch.ladder.state import Ladder
from spaql.controllers import Controller
from spaql.problems import Problem
from spaql.problems.disturbances import Perturbation

_MODEL_STEPS = 5_000_000
"""Steps in the learned plant for each design, at an effort of 1."""


@dataclass(eq=False)
class Design:
    """A controller with memory, by the search that found it in a learned plant, and what it has played."""

    search: TreeSearchLearner
    returns: list[float] = field(default_factory=list)
    """Of the whole episodes that it has played in the environment."""

    @property
    def ladder(self) -> Ladder:
        """The ladder that was climbed."""
        assert self.search.ladder is not None
        return self.search.ladder

    @property
    def controller(self) -> Controller:
        """The controller that was chosen."""
        return self.ladder.controller

    def add_episode(self, start: Floats, total: float) -> None:
        """Keep the return of a whole episode that it has played."""
        self.returns.append(total)


class Designs:
    """Controllers with memory, to follow set-points: those that have played, and the last one."""

    def __init__(self, experience: Experience, settings: PlanTreeSettings) -> None:
        self._experience = experience
        self._settings = settings
        self.players: list[Design] = []

    def next_player(self, seed: int, *, anew: bool, last: bool) -> int:
        """Return the index of the design that plays next: the last one, after a new design if `anew`."""
        if anew:
            self.controller(seed, anew=True)
        return len(self.players) - 1

    def controller(self, seed: int, *, anew: bool) -> Controller:
        """Design a controller in the plant of the memory as it is now.

        Those that have played, which were designed by fewer data, may be chosen again.
        """
        experience = self._experience
        problem = experience.problem
        played = [design for design in self.players if design.returns]
        plant = fit_tracked(experience.memory, experience.code, problem, experience.prediction())
        rng = np.random.default_rng((seed, 0))
        steps = int(self._settings.effort * _MODEL_STEPS)
        design = Design(new_search(problem, nominal=self._settings.nominal))
        design.search.aim(None, steps)
        runner = TrackedRunner(plant, problem)
        while runner.interactions.total < steps:
            design.search.iterate(runner, rng, trained=True)
        for earlier in played:
            consider(design.ladder, earlier.ladder, runner)
        self.players = [*played, design]
        return design.controller


def new_search(problem: Problem, *, nominal: bool) -> TreeSearchLearner:
    """Return a search for a controller with memory, in a plant without equations."""
    search = TreeSearchLearner(replace(problem, dynamics=None), TreeSearchSettings(nominal=nominal))
    assert search.ladder is not None
    if not nominal:
        declared = problem.dynamics.perturbation if problem.dynamics else None
        search.ladder.design = declared or Perturbation()
    return search
