"""Judgements: racers are compared with the incumbent from starts that are used for nothing else."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.treesearch.evaluator import DIGITS, Judgement
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.search_state import SearchState
from spaql.algorithms.treesearch.trees import CandidateTree, Rng

DOUBTS = {"": 0.0, "law": 1.0, "tree": 2.0}
"""By what the search began at: the standard errors by which another tree must be better."""
_JUDGEMENTS = 20
"""About so many judgements take a tenth of the budget."""
FEWEST_JUDGED = 24
"""Starts of a judgement, unless these would take more than `_JUDGED_SHARE` of the budget."""
_MOST_JUDGED = 2000
"""The most starts of a judgement."""
_JUDGED_SHARE = 0.02
"""The share of the budget that the fewest starts may take."""
_LEAST_JUDGED = 4
"""Starts of a judgement with any budget."""
_FIRST_JUDGED = 0.2
"""The share of the starts by which trees are compared first."""
_FEWEST_FIRST = 8
"""Starts of such a comparison, if these are no more than half."""


def judge_racers(search: SearchState, racers: list[Racer]) -> None:
    """Score racers by a part of the judgement."""
    for racer in racers:
        racer.score = first_score(search, racer.found)


def value(search: SearchState, score: float, tree: CandidateTree) -> float:
    """Return the score less a price for each leaf, so that of equals the smaller is taken."""
    return score - search.settings.leaf_price * search.evaluator.span * tree.n_leaves


def compare(search: SearchState, racer: Racer, rng: Rng, new: Judgement | None = None) -> bool:
    """Replace the incumbent if the racer's tree is no worse by judgement: it was searched for longer.

    A first law is only replaced by one that is better by a standard error of the difference, and a tree
    at which the search began, by two, and from enough starts. A tree that is not judged yet must first be no
    worse by a part of the judgement. Returns whether it is replaced.
    """
    found = racer.found
    old = search.incumbent
    if new is None:
        if old is not None and value(search, racer.score, found) < value(
            search, first_score(search, old), old
        ):
            return False
        new = search.evaluator.judge(found)
    if old is not None:
        judge_incumbent(search)
        gain = value(search, new.score, found) - value(search, search.judgement.score, old)
        least = DOUBTS[search.begun_at]
        if least > 0.0:
            least *= new.error_of_difference(search.judgement)
        if not gain >= least or (search.begun_at and gain <= 0.0):
            return False
        if search.begun_at and len(search.evaluator.judging_starts) < FEWEST_JUDGED:
            if not judges_by(search, FEWEST_JUDGED, rng):
                return False
            judge_racers(search, [racer])
            return compare(search, racer, rng)
    search.incumbent = found
    search.judgement = new
    search.digits = DIGITS
    search.begun_at = ""
    return True


def judges_by(search: SearchState, count: int, rng: Rng) -> bool:
    """Judge from so many starts, if there is room for three such judgements; returns whether there is."""
    evaluator = search.evaluator
    if 3 * count * evaluator.judged_length > search.budget - search.spent - evaluator.steps:
        return False
    more = evaluator.starts(rng, count - len(evaluator.judging_starts))
    evaluator.judging_starts = np.concatenate([evaluator.judging_starts, more])
    return True


def first_score(search: SearchState, tree: CandidateTree) -> float:
    """Return the score of a tree by a part of the judgement."""
    share = _FEWEST_FIRST / len(search.evaluator.judging_starts)
    return search.evaluator.judge(tree, max(_FIRST_JUDGED, min(share, 0.5))).score


def judge_incumbent(search: SearchState) -> None:
    """Judge the incumbent anew, and keep its hardest start."""
    if search.incumbent is not None:
        search.judgement = search.evaluator.judge(search.incumbent)
        search.evaluator.keep_hardest(search.evaluator.judging_starts, search.judgement.values)


def n_judging_starts(search: SearchState) -> int:
    """The number of starts of a judgement, by the mean length of its episodes."""
    room = search.budget / search.evaluator.judged_length
    wanted = int(0.1 * room / _JUDGEMENTS)
    few = max(_LEAST_JUDGED, int(_JUDGED_SHARE * room))
    return min(max(wanted, min(FEWEST_JUDGED, few)), _MOST_JUDGED)
