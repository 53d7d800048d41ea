"""The stage of growth: the best tree races against its neighbours."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.treesearch.judging import compare, value
from spaql.algorithms.treesearch.race import race
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST
from spaql.algorithms.treesearch.racers import racer_at, random_racers, screened
from spaql.algorithms.treesearch.refinement import refine
from spaql.algorithms.treesearch.search_state import (
    FIRST_STEPS,
    GROW,
    INCUMBENT_STEP,
    POLISH,
    RACE_AGAIN,
    SearchState,
)
from spaql.algorithms.treesearch.trees import Rng

_CLEAR = 2.0
"""The standard errors by which the best racer must be worse than the incumbent to begin there anew."""
_FIELD = 3
"""The best tree and its neighbours in a round of growth."""
_SCREENING = 0.5
"""The share of a round of growth by which they are selected, at most."""
_GROWTH_EPISODES = 2000
"""The fewest episodes for each tree in a round of growth."""
_ROUNDS = 5
"""The most rounds of growth."""
_LAST_ROUND = 0.6
"""There is one more round if this share of its steps is left."""


def grow(search: SearchState, rng: Rng) -> None:
    """Race the best tree against neighbours: a leaf cut in two, or a cut replaced by another.

    Where no neighbour could be searched for long enough, other random trees race once more: all of the
    first ones may be far from any good tree.
    """
    evaluator = search.evaluator
    room = GROW * search.budget - search.spent
    each = max((GROW - POLISH) * search.budget / _ROUNDS, _FIELD * _GROWTH_EPISODES * evaluator.length)
    if room > _LAST_ROUND * each:
        best = search.racers[0]
        begun = evaluator.steps
        field = [best, *screened(search, best.found, _FIELD - 1, _SCREENING * each, rng)]
        judging = (len(field) + 1) * len(evaluator.judging_starts) * evaluator.judged_length
        share = (each - judging - (evaluator.steps - begun)) / len(field)
        for racer in field:
            racer.run(evaluator, share, search.budget / 2, rng, least=LEAST_OF_BEST)
        judgements = [evaluator.judge(racer.found) for racer in field]
        values = [value(search, new.score, racer.tree) for new, racer in zip(judgements, field, strict=True)]
        first = int(np.argmax(values))
        replaced = compare(search, field[first], rng, judgements[first])
        assert search.incumbent is not None
        search.racers = [field[first] if replaced else racer_at(search, search.incumbent, INCUMBENT_STEP)]
    elif not search.raced_again and room > RACE_AGAIN * search.budget:
        search.racers = random_racers(search, rng)
        search.rung = 0
        search.turn = 0
        search.raced_again = True
        search.stage = "race"
        race(search, rng)
    else:
        assert search.incumbent is not None
        new = search.evaluator.judge(search.racers[0].found)
        old = search.evaluator.judge(search.incumbent)
        if new.score < old.score - _CLEAR * new.error_of_difference(old):
            search.racers = [racer_at(search, search.incumbent, step=FIRST_STEPS[1])]
        search.stage = "refine"
        refine(search, rng)
