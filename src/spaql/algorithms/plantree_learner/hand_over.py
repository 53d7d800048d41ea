"""The phase after PlanTree: TreeSearch spends the rest of a large budget, or that of an affine plant."""

from __future__ import annotations

from spaql.algorithms.replay.memory import Memory
from spaql.algorithms.treesearch import TreeSearchLearner, TreeSearchSettings
from spaql.algorithms.treesearch.ladder.state import Ladder
from spaql.controllers import Controller
from spaql.controllers.policy import Rng
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner, Evaluation


class Successor:
    """A TreeSearch that goes on where PlanTree ended."""

    def __init__(
        self,
        problem: Problem,
        rules: Controller | None,
        ladder: Ladder | None,
        *,
        nominal: bool,
        own_steps: int,
        own_episodes: int,
    ) -> None:
        """Begin at rules, at the best rung of a ladder, or without either at random trees."""
        leaves = TreeSearchSettings.max_leaves
        if rules is not None:
            leaves = max(leaves, rules.n_leaves)
        self.search = TreeSearchLearner(problem, TreeSearchSettings(max_leaves=leaves, nominal=nominal))
        if rules is not None:
            self.search.start_from(rules)
        elif ladder is not None:
            assert self.search.ladder is not None
            self.search.ladder.begin_at(ladder)
        self.own_steps = own_steps
        """PlanTree's steps, before those of the search."""
        self._own_episodes = own_episodes

    def aim(self, unit: str, last: int) -> None:
        """Spend the rest of a budget."""
        if unit == "steps":
            self.search.aim(None, last - self.own_steps)
        else:
            self.search.aim(last - self._own_episodes, None)

    def iterate(self, memory: Memory, runner: EpisodeRunner, rng: Rng) -> Evaluation:
        """Search for a part of the budget; steps from which a first law was made are added to the memory."""
        evaluation = self.search.iterate(runner, rng, trained=True)
        if self.search.explored is not None:
            memory.append(self.search.explored)
            self.search.explored = None
        return evaluation
