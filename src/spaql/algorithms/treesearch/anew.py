"""The stage that begins anew where the best tree only waits for the end of an episode."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.treesearch.judging import FEWEST_JUDGED, compare, judge_racers
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST
from spaql.algorithms.treesearch.racers import racer_at, random_racer
from spaql.algorithms.treesearch.search_state import GROW, SearchState
from spaql.algorithms.treesearch.trees import Rng
from spaql.simulate import Phase

_WAITING = 0.95
"""A tree only waits if it takes this share of the steps, and this share of its returns is lower."""
_SHARE = 0.7
"""The share of what is left for growth that a law gets which begins anew."""


def only_waits(search: SearchState) -> bool:
    """Return whether the best tree runs to the horizon, and others ended episodes with a higher return.

    A lander that has mostly crashed may learn to stand with flickering engines, and a car to wait.
    """
    evaluator = search.evaluator
    tree = search.racers[0].found
    if tree.locked.any():  # a law that begins anew would not keep what is locked
        return False
    starts = evaluator.judging_starts[:FEWEST_JUDGED]
    played = evaluator.play(tree, tree.vector[np.newaxis], starts, Phase.OWN_PLAY)
    whole = played.steps >= _WAITING * played.returns.size * evaluator.horizon
    return whole and bool((played.returns < evaluator.best_end).mean() >= _WAITING)


def begin_anew(search: SearchState, rng: Rng) -> None:
    """Let a law that begins with 0, in the scales of what is visited now, compete with the best tree."""
    search.rescale(search.units_along(search.racers[0].found, rng))
    racer = random_racer(search, 1, True, rng)
    share = _SHARE * (GROW * search.budget - search.spent - search.evaluator.steps)
    racer.run(search.evaluator, share, search.budget / 2, rng, least=LEAST_OF_BEST)
    judge_racers(search, [racer])
    if not compare(search, racer, rng):
        assert search.incumbent is not None
        racer = racer_at(search, search.incumbent)
    search.racers = [racer]
    search.stage = "grow"
