"""Where a search is: its budget and stage, the racers, and the incumbent."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.treesearch.evaluator import Evaluator, Judgement
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.rule_trees import in_other_units
from spaql.algorithms.treesearch.scales import bounded, measured
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.algorithms.treesearch.trees import CandidateTree, Rng
from spaql.kernels.treesearch.candidates import Floats, Units

RACE = 0.2
POLISH = 0.25
SHARPEN = 0.6
GROW = 0.85
REFINE = 0.9
PATTERN = 0.94
"""The shares of the budget at which the stages end; the rest is for making the tree plainer."""
RACE_AGAIN = 0.45
"""The share of a second race, where trees do not grow."""
FIRST_STEPS = (0.3, 0.1, 0.03)
"""The first steps of racers at a tree that the search begins at: how near it is to the best is not known."""
INCUMBENT_STEP = 0.2
"""The first step of a racer that begins at the incumbent again: it was searched before."""
OBSERVATIONS = 4000
"""Observations of episodes through which cuts are drawn, at most."""


class SearchState:
    """The state of a search.

    The incumbent is the best tree by judgement so far: it is only replaced by a tree that is better from the
    same starts, which are used for nothing else.
    """

    def __init__(self, settings: TreeSearchSettings, evaluator: Evaluator, base: CandidateTree) -> None:
        self.settings = settings
        self.evaluator = evaluator
        self.base = base
        self.budget = 0
        self.spent = 0
        self.states: Floats = np.empty((0, base.numbers.shape[2] - 1))
        """Observations, in the units of the search, through which the cuts of random trees are drawn."""
        self.mirror: Mirror | None = None
        """The mirror of the plant: racers that begin with laws of 0 are their own mirror images."""
        self.racers: list[Racer] = []
        self.rung = 0
        """The rung of the race."""
        self.turn = 0
        """The racer whose turn it is."""
        self.restarts = 0
        """How often the race was begun anew in other scales."""
        self.raced_again = False
        self.incumbent: CandidateTree | None = None
        self.begun_at = ""
        """What the search began at, as long as that is the incumbent: a law, a tree, or none of these."""
        self.near_law: float | None = None
        """Returns up to this are near that of the first law, if there was one."""
        self.judgement = Judgement(-np.inf, 0.0, np.empty(0))
        """Of the incumbent; before there is one, with the mean return of random trees."""
        self.digits = 0
        """Significant digits of the incumbent's numbers; 0 for all, of a tree that was given."""
        self.stage = "measure"

    def plan(self, budget: int, tree: CandidateTree | None = None, begun_at: str = "") -> None:
        """Begin a search of so many steps, with a tree to beat if there is one, and what it is."""
        self.budget = max(budget, 0)
        self.spent = 0
        self.rung = 0
        self.turn = 0
        self.incumbent = tree
        self.begun_at = begun_at
        self.stage = "measure"
        self.racers = []
        self.raced_again = begun_at == "tree"

    def measure(self, observations: Floats) -> None:
        """Take the units of some observations, through which cuts are drawn."""
        units = measured(observations, self.evaluator.units, self.mirror)
        self.evaluator.units = units
        self.states = (observations - units.centre) / units.scale

    def units_along(self, tree: CandidateTree, rng: Rng) -> Units:
        """Return the units of what a tree visits."""
        now = self.evaluator.units
        visited = self.evaluator.visited(tree, OBSERVATIONS, rng)
        return measured(bounded(now.centre + now.scale * visited), now, self.mirror)

    def rescale(self, units: Units) -> None:
        """Go on in other units; racers are not converted."""
        before = self.evaluator.units
        if self.incumbent is not None:
            self.incumbent = in_other_units(self.incumbent, before, units)
        self.states = (before.centre + before.scale * self.states - units.centre) / units.scale
        self.evaluator.units = units
