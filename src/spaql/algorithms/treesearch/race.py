"""The stages of the race: random trees race, and the winner is polished."""

from __future__ import annotations

from spaql.algorithms.treesearch.anew import only_waits
from spaql.algorithms.treesearch.judging import compare, judge_incumbent, judge_racers, value
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST
from spaql.algorithms.treesearch.racers import affordable, apart, neighbour_racer, racer_at, random_racers
from spaql.algorithms.treesearch.refinement import spend_rest
from spaql.algorithms.treesearch.scales import change_of_scale
from spaql.algorithms.treesearch.search_state import (
    FIRST_STEPS,
    INCUMBENT_STEP,
    POLISH,
    RACE,
    RACE_AGAIN,
    SearchState,
)
from spaql.algorithms.treesearch.trees import Rng

_NEIGHBOURS = 3
"""Racers beside a tree that was given."""
_OTHER_SCALE = 2.0
"""A factor by which a scale must have changed for a new race."""
_RESTARTS = 2
"""The most new races in other scales."""
_NEAR = 0.1
"""A law is near the first one if it gains less than this share of that law's lead over random trees."""
_NO_ROOM = 100
"""A first law, or the best of the first random trees, is only improved if the budget is fewer episodes."""


def begin(search: SearchState, rng: Rng) -> None:
    """Make the racers."""
    begun = search.incumbent is not None and search.begun_at != "tree"
    if begun and search.budget < _NO_ROOM * search.evaluator.horizon:
        search.stage = "done"
        spend_rest(search, rng)
        return
    search.evaluator.begin_hard_starts(rng)
    random_return = search.judgement.mean_return
    judge_incumbent(search)
    if search.begun_at == "law" and search.near_law is None:
        law_return = search.judgement.mean_return
        search.near_law = law_return + _NEAR * (law_return - random_return)
    if search.incumbent is not None and search.begun_at == "tree":
        seen = apart(search, search.incumbent, rng)
        search.racers = [neighbour_racer(search, search.incumbent, seen, rng) for _ in range(_NEIGHBOURS)]
        search.racers = affordable(search, search.racers)
    else:
        search.racers = random_racers(search, rng)
    if search.incumbent is not None and search.begun_at:
        search.racers = [racer_at(search, search.incumbent, step) for step in FIRST_STEPS] + search.racers
    elif search.restarts and search.incumbent is not None:
        search.racers = [racer_at(search, search.incumbent, FIRST_STEPS[0]), *search.racers]
    search.stage = "race"
    race(search, rng)


def race(search: SearchState, rng: Rng) -> None:
    """Give the next racer its share of a rung; at the end of a rung keep the better half."""
    rungs = max(1, (len(search.racers) - 1).bit_length()) + search.rung
    share = RACE_AGAIN if search.raced_again else RACE
    share *= search.budget / rungs / len(search.racers)
    search.racers[search.turn].run(search.evaluator, share, 2 * share, rng)
    search.turn += 1
    if search.turn < len(search.racers):
        return
    judge_racers(search, search.racers)
    search.racers.sort(key=lambda racer: -value(search, racer.score, racer.tree))
    if search.rung == 0:
        # by the one in the middle: the worst may be worse than anything that matters
        middle = search.racers[len(search.racers) // 2].score
        search.evaluator.span = max(search.evaluator.span, search.racers[0].score - middle)
    search.racers = search.racers[: (len(search.racers) + 1) // 2]
    compare(search, search.racers[0], rng)
    search.rung = search.rung + 1
    search.turn = 0
    early = search.spent + search.evaluator.steps < RACE * search.budget
    if early and search.restarts < _RESTARTS and begins_anew(search, rng):
        return
    if len(search.racers) == 1:
        search.evaluator.begin_hard_starts(rng)  # most were hard for those that lost
        search.stage = "polish"


def begins_anew(search: SearchState, rng: Rng) -> bool:
    """Measure the scales where the best tree goes; returns whether they differ, and the race begins anew.

    Few numbers are searched well in scales that are wrong by much, as those of random trees may be.
    """
    assert search.incumbent is not None
    units = search.units_along(search.racers[0].found, rng)
    if change_of_scale(search.evaluator.units, units) < _OTHER_SCALE:
        return False
    search.rescale(units)
    search.restarts += 1
    search.plan(search.budget - search.spent, search.incumbent, search.begun_at)
    return True


def polish(search: SearchState, rng: Rng) -> None:
    """Go on with the winner of the race."""
    best = search.racers[0]
    share = (POLISH - RACE) / 4 * search.budget
    best.run(search.evaluator, share, search.budget / 2, rng, least=LEAST_OF_BEST)
    judge_racers(search, [best])
    if not compare(search, best, rng) and search.incumbent is not None:
        search.racers = [racer_at(search, search.incumbent, INCUMBENT_STEP)]
    if search.spent + search.evaluator.steps >= POLISH * search.budget:
        search.stage = "anew" if only_waits(search) else "sharpen" if _is_near_law(search) else "grow"


def _is_near_law(search: SearchState) -> bool:
    """Return whether the best tree is a law that is hardly better than the first one: an easy plant."""
    assert search.incumbent is not None
    near = search.near_law is not None and search.judgement.mean_return <= search.near_law
    return near and search.incumbent.n_leaves == 1
