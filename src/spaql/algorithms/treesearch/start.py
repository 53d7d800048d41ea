"""The phase before a search: scales are measured, by random trees or by a first law at which it begins."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spaql.algorithms.first_law import FirstLaw
from spaql.algorithms.replay import ReplayMemory
from spaql.algorithms.treesearch.rule_trees import from_rules, in_other_units, over_inputs
from spaql.algorithms.treesearch.search_state import SearchState, bounded, column_means
from spaql.algorithms.treesearch.symmetry import mirror_in, mirror_of
from spaql.algorithms.treesearch.trees import CandidateTree, random_tree
from spaql.controllers import Controller
from spaql.kernels.numerics import Floats, Rng, mean
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner, Phase
from spaql.stats import standard_error

_MEASURED = 5000
"""The most steps to measure the scales of the observations."""
_FEW = 100
"""With a budget of fewer episodes no random trees are tried besides a first law."""
_COMPARED = 4
"""Starts from which the best random tree is compared with a first law."""
_ENOUGH = 0.02
"""The share of that tree's lead over the others that the law may lack."""
_LAW = 0.9
"""The share of the budget for a first law, at most."""


@dataclass(eq=False)
class Start:
    """Finds where a search begins: at a tree that is given, at a first law, or at random trees."""

    search: SearchState
    problem: Problem
    like: Controller
    given: Controller | None
    law: Controller | None
    """The first law, if the search begins at it; at first that of an earlier start, at which all exploded."""
    one_leaf: Controller | None = None
    """The best law of one leaf of the model of the first steps."""
    explored: ReplayMemory | None = None
    """The steps from which a first law was made."""

    def run(self, runner: EpisodeRunner, rng: Rng) -> None:
        """Measure the scales of the observations where the better random trees go, or where a first law goes.

        Where there is room for few episodes, the law is all that there is time for.
        """
        search = self.search
        evaluator = self.search.evaluator
        evaluator.runner = runner
        evaluator.steps = 0
        best: CandidateTree | None = None
        inputs = np.empty((0, self.like.dims))
        if self.given is None and not self.like.features:
            search.mirror, taken = mirror_of(self.search.settings.mirror, self.problem, search.budget, rng)
            runner.interactions.add(Phase.SEARCH, taken)
            evaluator.steps += taken
        if search.budget >= _FEW * self.problem.horizon or self.given is not None:
            best, inputs = self._random_trees(rng)
        if self.given is None:
            room = _LAW * (search.budget - evaluator.steps)
            first = FirstLaw(self.problem, room, runner, Phase.SEARCH, rng, evaluator.plant)
            first.search(self.search.settings.max_leaves, lambda turn: self._is_promising(turn, best, first))
            evaluator.steps += first.spent
            self.one_leaf = first.one_leaf
            self.explored = first.memory
            if search.mirror is None and not self.like.features:
                search.mirror = mirror_in(self.search.settings.mirror, first.memory, self.problem)
            if first.law is not None and self._is_better(best, first):
                self.law = first.law
                inputs = first.visited
                if self.like.features:
                    self.law = over_inputs(first.law, self.like)
                    law = from_rules(self.law, evaluator.units, search.base)
                    inputs = self._visited(law, evaluator.starts(rng, _COMPARED))[0]
            elif best is None:
                inputs = self._random_trees(rng)[1]
        before = evaluator.units
        search.measure(inputs)
        evaluator.runner = None
        start = self.given if self.given is not None else self.law
        begun_at = "" if start is None else "law" if self.given is None else "tree"
        if start is not None:
            best = from_rules(start, evaluator.units, search.base)
        elif best is not None:
            best = in_other_units(best, before, evaluator.units)
        search.plan(search.budget - evaluator.steps, best, begun_at)

    def _is_promising(self, turn: int, best: CandidateTree | None, first: FirstLaw) -> bool:
        """Return whether to look for better laws: the first one need only be better than random trees."""
        if turn > 0 or best is None:
            return self._is_better(best, first)
        return mean(first.returns) > self.search.judgement.mean_return

    def _is_better(self, best: CandidateTree | None, first: FirstLaw) -> bool:
        """Return whether a first law is better than the best random tree, or about as good.

        Both play the same starts: a tree that was lucky with its own must not end the search for a law.
        """
        if best is None:
            return True
        starts = first.starts[: min(len(first.returns), _COMPARED)]
        returns = self.search.evaluator.play(best, starts, Phase.SEARCH).returns[0]
        lead = returns - first.returns[: len(starts)]
        nearly = _ENOUGH * abs(mean(returns) - self.search.judgement.mean_return)
        doubt = standard_error(lead) if len(lead) > 1 else 0.0
        return mean(lead) <= nearly + doubt

    def _random_trees(self, rng: Rng) -> tuple[CandidateTree, Floats]:
        """Return the best of some random trees and an idle one, and the inputs of the better half."""
        search = self.search
        evaluator = self.search.evaluator
        last = evaluator.steps + min(_MEASURED, 1 + search.budget // 50)
        played: list[tuple[float, Floats]] = []
        trees: list[CandidateTree] = []
        through = np.zeros((1, self.like.dims))
        while evaluator.steps < last:
            size = int(rng.integers(1, 5))
            trees.append(random_tree(search.base, min(size, self.search.settings.max_leaves), through, rng))
            seen, total = self._visited(trees[-1], evaluator.starts(rng, 2))
            played.append((total, seen))
            inputs = np.concatenate([seen for _, seen in played])
            through = inputs - column_means(inputs) if len(inputs) else through
        totals = [total for total, _ in played]
        search.judgement = replace(search.judgement, mean_return=mean(np.array(totals)))
        best = trees[int(np.argmax(totals))]
        seen, total = self._visited(search.base, evaluator.starts(rng, 2))
        if total > max(totals):
            best = search.base
            played.append((total, seen))
        return best, np.concatenate(_better_half(played))

    def _visited(self, tree: CandidateTree, starts: Floats) -> tuple[Floats, float]:
        """Return the inputs of a tree, but for those of a plant that explodes, and its mean return."""
        played = self.search.evaluator.play(tree, starts, Phase.SEARCH, visited=_MEASURED)
        return bounded(played.visited), mean(played.returns[0])


def _better_half(played: list[tuple[float, Floats]]) -> list[Floats]:
    """Return the observations of the trees with the higher returns: the others go where no controller is."""
    middle = sorted(total for total, _ in played)[len(played) // 2]
    return [seen for total, seen in played if total >= middle]
