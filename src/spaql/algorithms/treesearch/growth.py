"""The stage of growth: the best tree races against its neighbours."""

from __future__ import annotations

from spaql.algorithms.treesearch.judging import compare, judge_racers, value
from spaql.algorithms.treesearch.race import race
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST
from spaql.algorithms.treesearch.racers import racer_at, random_racers, screened, switch_racers
from spaql.algorithms.treesearch.refinement import refine
from spaql.algorithms.treesearch.search_state import FIRST_STEPS, GROW, POLISH, SearchState
from spaql.algorithms.treesearch.trees import Rng

_AGAIN = 0.75
"""Where trees do not grow, they race again if this much of the share for growth is left."""
_CLEAR = 2.0
"""The standard errors by which the best racer must be worse than the incumbent to begin there anew."""
_CHILDREN = 3
"""The most neighbours of the best tree in a round of growth."""
_SCREENING = 0.5
"""The share of a round of growth by which they are selected, at most."""
_GROWTH_EPISODES = 1500
"""The fewest episodes for each tree in a round of growth."""
_ROUNDS = 5
"""The most rounds of growth."""


def grow(search: SearchState, rng: Rng) -> None:
    """Race the best tree against neighbours: a leaf cut in two, or a cut replaced by another.

    Where no neighbour could be searched for long enough, other random trees race once more: all of the
    first ones may be far from any good tree.
    """
    room = GROW * search.budget - search.spent
    least = _GROWTH_EPISODES * search.evaluator.length
    children = min(_CHILDREN, int(room / least) - 1)
    if children > 0:
        best = search.racers[0]
        begun = search.evaluator.steps
        steps = max((GROW - POLISH) * search.budget / _ROUNDS, (1 + children) * least)
        field = [best, *switch_racers(search, best.found, rng)]
        field += screened(search, best, 1 + children - len(field), _SCREENING * steps, rng)
        share = (steps - (search.evaluator.steps - begun)) / len(field)
        for racer in field:
            racer.run(search.evaluator, share, search.budget / 2, rng, least=LEAST_OF_BEST)
        judge_racers(search, field)
        field.sort(key=lambda racer: -value(search, racer.score, racer.tree))
        search.racers = [field[0] if compare(search, field[0], rng) else best]
    elif not search.raced_again and room > _AGAIN * (GROW - POLISH) * search.budget:
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
