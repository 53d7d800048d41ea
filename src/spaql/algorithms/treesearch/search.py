"""The stages of the search: a race of random trees, growth of the winner, and a finish."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from spaql.algorithms.treesearch.finish import enough_digits, pattern_search, simplify
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST, Racer
from spaql.algorithms.treesearch.racers import (
    affordable,
    apart,
    neighbour_racer,
    random_racer,
    random_racers,
    screened,
)
from spaql.algorithms.treesearch.search_state import (
    FEWEST_JUDGED,
    STRUCTURE_STAGES,
    SearchState,
    change_of_scale,
)
from spaql.kernels.numerics import Rng
from spaql.simulate import EpisodeRunner, Phase

_RACE = 0.2
_POLISH = 0.25
_SHARPEN = 0.6
_GROW = 0.85
_REFINE = 0.9
_PATTERN = 0.94
"""The shares of the budget at which the stages end; the rest is for making the tree plainer."""
_RACE_AGAIN = 0.45
"""The share of a second race, where trees do not grow."""
_FIRST_STEPS = (0.3, 0.1, 0.03)
"""The first steps of racers at a tree that the search begins at: how near it is to the best is not known."""
_INCUMBENT_STEP = 0.2
"""The first step of a racer that begins at the incumbent again: it was searched before."""
_WAITING = 0.95
"""A tree only waits if it takes this share of the steps, and this share of its returns is lower."""
_SHARE = 0.7
"""The share of what is left for growth that a law gets which begins anew."""
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
_SIMPLIFIED = 200
"""The fewest starts by which a tree is made plainer, or a law sharpened."""
_REFINED = 128
"""Starts of a generation when the best tree is refined, so that rare failures are seen."""


def begin(search: SearchState, rng: Rng) -> None:
    """Make the racers."""
    begun = search.incumbent is not None and search.begun_at != "tree"
    if begun and search.budget < _NO_ROOM * search.evaluator.horizon:
        search.stage = "done"
        spend_rest(search, rng)
        return
    search.evaluator.begin_hard_starts(rng)
    random_return = search.mean_return
    search.judge_incumbent()
    if search.begun_at == "law" and search.near_law is None:
        law_return = search.mean_return
        search.near_law = law_return + _NEAR * (law_return - random_return)
    if search.incumbent is not None and search.begun_at == "tree":
        seen = apart(search, search.incumbent, rng)
        search.racers = [neighbour_racer(search, search.incumbent, seen, rng) for _ in range(_NEIGHBOURS)]
        search.racers = affordable(search, search.racers)
    else:
        search.racers = random_racers(search, rng)
    if search.incumbent is not None and search.begun_at:
        search.racers = [search.racer_at(search.incumbent, step) for step in _FIRST_STEPS] + search.racers
    elif search.restarts and search.incumbent is not None:
        search.racers = [search.racer_at(search.incumbent, _FIRST_STEPS[0]), *search.racers]
    search.stage = "race"
    race(search, rng)


def race(search: SearchState, rng: Rng) -> None:
    """Give the next racer its share of a rung; at the end of a rung keep the better half."""
    rungs = max(1, (len(search.racers) - 1).bit_length()) + search.rung
    share = _RACE_AGAIN if search.raced_again else _RACE
    share *= search.budget / rungs / len(search.racers)
    search.racers[search.turn].run(search.evaluator, share, 2 * share, rng)
    search.turn += 1
    if search.turn < len(search.racers):
        return
    search.judge_racers(search.racers)
    search.racers.sort(key=lambda racer: -search.value(racer.score, racer.tree))
    if search.rung == 0:
        # by the one in the middle: the worst may be worse than anything that matters
        middle = search.racers[len(search.racers) // 2].score
        search.evaluator.span = max(search.evaluator.span, search.racers[0].score - middle)
    search.racers = search.racers[: (len(search.racers) + 1) // 2]
    search.compare(search.racers[0], rng)
    search.rung = search.rung + 1
    search.turn = 0
    early = search.spent + search.evaluator.steps < _RACE * search.budget
    if early and search.restarts < _RESTARTS and begins_anew(search, rng):
        return
    if len(search.racers) == 1:
        search.evaluator.begin_hard_starts(rng)  # most were hard for those that lost
        search.stage = "polish"


def begins_anew(search: SearchState, rng: Rng) -> bool:
    """Measure the scales where the best tree goes; returns whether they differ, and the race begins anew.

    Few numbers are searched well in scales that are wrong by much, as those of random trees may be.
    """
    units = search.units_along(search.racers[0].found, rng)
    if change_of_scale(search.evaluator.units, units) < _OTHER_SCALE:
        return False
    search.rescale(units)
    search.restarts += 1
    search.plan(search.budget - search.spent, search.best, search.begun_at)
    return True


def polish(search: SearchState, rng: Rng) -> None:
    """Go on with the winner of the race."""
    best = search.racers[0]
    share = (_POLISH - _RACE) / 4 * search.budget
    best.run(search.evaluator, share, search.budget / 2, rng, least=LEAST_OF_BEST)
    search.judge_racers([best])
    if not search.compare(best, rng) and search.incumbent is not None:
        search.racers = [search.racer_at(search.incumbent, _INCUMBENT_STEP)]
    if search.spent + search.evaluator.steps >= _POLISH * search.budget:
        search.stage = "anew" if only_waits(search) else "sharpen" if _is_near_law(search) else "grow"


def _is_near_law(search: SearchState) -> bool:
    """Return whether the best tree is a law that is hardly better than the first one: an easy plant."""
    near = search.near_law is not None and search.mean_return <= search.near_law
    return near and search.best.n_leaves == 1


def only_waits(search: SearchState) -> bool:
    """Return whether the best tree runs to the horizon, and others ended episodes with a higher return.

    A lander that has mostly crashed may learn to stand with flickering engines, and a car to wait.
    """
    evaluator = search.evaluator
    tree = search.racers[0].found
    if tree.locked.any():  # a law that begins anew would not keep what is locked
        return False
    starts = evaluator.judging_starts[:FEWEST_JUDGED]
    played = evaluator.play(tree, starts, Phase.OWN_PLAY)
    whole = played.steps >= _WAITING * played.returns.size * evaluator.horizon
    return whole and bool((played.returns < evaluator.best_end).mean() >= _WAITING)


def begin_anew(search: SearchState, rng: Rng) -> None:
    """Let a law that begins with 0, in the scales of what is visited now, compete with the best tree."""
    search.rescale(search.units_along(search.racers[0].found, rng))
    racer = random_racer(search, 1, True, rng)
    share = _SHARE * (_GROW * search.budget - search.spent - search.evaluator.steps)
    racer.run(search.evaluator, share, search.budget / 2, rng, least=LEAST_OF_BEST)
    search.judge_racers([racer])
    if not search.compare(racer, rng):
        racer = search.racer_at(search.best)
    search.racers = [racer]
    search.stage = "grow"


def grow(search: SearchState, rng: Rng) -> None:
    """Race the best tree against neighbours: a leaf cut in two, or a cut replaced by another.

    Where no neighbour could be searched for long enough, other random trees race once more: all of the
    first ones may be far from any good tree.
    """
    evaluator = search.evaluator
    room = _GROW * search.budget - search.spent
    each = max((_GROW - _POLISH) * search.budget / _ROUNDS, _FIELD * _GROWTH_EPISODES * evaluator.length)
    if room > _LAST_ROUND * each:
        each = min(each, room)
        best = search.racers[0]
        begun = evaluator.steps
        field = [best, *screened(search, best.found, _FIELD - 1, _SCREENING * each, rng)]
        judging = (len(field) + 1) * len(evaluator.judging_starts) * evaluator.judged_length
        share = (each - judging - (evaluator.steps - begun)) / len(field)
        for racer in field:
            racer.run(evaluator, share, search.budget / 2, rng, least=LEAST_OF_BEST)
        judgements = [evaluator.judge(racer.found) for racer in field]
        values = [search.value(new.score, racer.tree) for new, racer in zip(judgements, field, strict=True)]
        first = int(np.argmax(values))
        replaced = search.compare(field[first], rng, judgements[first])
        search.racers = [field[first] if replaced else search.racer_at(search.best, _INCUMBENT_STEP)]
    elif not search.raced_again and room > _RACE_AGAIN * search.budget:
        search.racers = random_racers(search, rng)
        search.rung = 0
        search.turn = 0
        search.raced_again = True
        search.stage = "race"
        race(search, rng)
    else:
        new = search.evaluator.judge(search.racers[0].found)
        old = search.evaluator.judge(search.best)
        if new.score < old.score - _CLEAR * new.error_of_difference(old):
            search.racers = [search.racer_at(search.best, step=_FIRST_STEPS[1])]
        search.stage = "refine"
        refine(search, rng)


def refine(search: SearchState, rng: Rng) -> None:
    """Go on with the best tree."""
    best = search.racers[0]
    best.run(search.evaluator, 0.03 * search.budget, search.budget, rng, _REFINED, LEAST_OF_BEST)
    best.judge(search.first_score)
    search.compare(best, rng)
    if search.spent + search.evaluator.steps >= _REFINE * search.budget:
        search.stage = "pattern"


def sharpen(search: SearchState, rng: Rng) -> None:
    """Move the numbers of a law one by one: where it is nearly the best, other trees only cost steps."""
    search.judges_by(_SIMPLIFIED, rng)
    _search_by_pattern(search, search.racer_at(search.best), _SHARPEN, rng)
    search.racers = [search.racer_at(search.best, _INCUMBENT_STEP)]
    search.stage = "grow"


def pattern(search: SearchState, rng: Rng) -> None:
    """Move the numbers of the best tree one by one."""
    best = search.racers[0]  # it may be better but for starts from which it fails
    begun = best if best.score > search.first_score(search.best) else search.racer_at(search.best)
    _search_by_pattern(search, begun, _PATTERN, rng)
    search.stage = "simplify"


def _search_by_pattern(search: SearchState, begun: Racer, last: float, rng: Rng) -> None:
    """Search from a racer's tree until a share of the budget is spent, and compare what is found."""
    found = pattern_search(search.evaluator, begun, last * search.budget - search.spent, rng)
    new = search.evaluator.judge(found)
    old = search.evaluator.judge(search.best)
    if new.score > old.score + new.error_of_difference(old):  # it was fitted to few starts
        search.compare(Racer.of(found), rng, new)


def make_plainer(search: SearchState, rng: Rng) -> None:
    """Remove what does not pay, and round the numbers."""
    evaluator = search.evaluator
    left = search.budget - search.spent
    price = search.settings.leaf_price * evaluator.span
    if len(evaluator.judging_starts) < _SIMPLIFIED and not search.judges_by(_SIMPLIFIED, rng):
        search.stage = "done"
        spend_rest(search, rng)
        return
    search.judge_incumbent()  # from the starts by which plainer trees are judged
    search.incumbent = simplify(
        evaluator,
        search.best,
        search.judgement.score,
        left - evaluator.steps,
        price,
        basis_of=search.basis_of,
        judgement=search.judgement,
    )
    search.judge_incumbent()
    search.digits = enough_digits(search.evaluator, search.best, search.judgement.score, price)
    search.stage = "done"


def spend_rest(search: SearchState, rng: Rng) -> None:
    """Spend what is left of the budget on a search from the incumbent, or on its judgement."""
    evaluator = search.evaluator
    left = search.budget - search.spent - search.evaluator.steps
    search.racers = [search.racer_at(search.best, step=0.1)]
    judged = 3 * len(evaluator.judging_starts) * evaluator.judged_length
    if search.racers[0].generation_steps(evaluator.length) + judged > left:
        evaluator.judging_starts = evaluator.starts(rng, max(1, int(left / evaluator.judged_length)))
        search.judgement = evaluator.judge(search.best)
        return
    search.racers[0].run(evaluator, left - judged, search.budget / 2, rng)
    search.judge_racers(search.racers)
    search.compare(search.racers[0], rng)


STAGES: Mapping[str, Callable[[SearchState, Rng], None]] = {
    "measure": begin,
    "race": race,
    "polish": polish,
    "anew": begin_anew,
    "sharpen": sharpen,
    "grow": grow,
    "refine": refine,
    "pattern": pattern,
    "simplify": make_plainer,
    "done": spend_rest,
}
"""What an iteration does in each stage; a stage lasts for some iterations, and names the next one."""
PHASES: Mapping[str, str] = {
    "measure": "first episodes",
    "race": "race of random trees",
    "polish": "polishing the best",
    "anew": "a second race",
    "sharpen": "polishing the law",
    "grow": "growing the tree",
    "refine": "refining",
    "pattern": "refining",
    "simplify": "simplifying",
    "done": "refining",
}
"""The stages in words."""


def advance(search: SearchState, runner: EpisodeRunner, rng: Rng) -> None:
    """Search for a part of the budget."""
    evaluator = search.evaluator
    evaluator.runner = runner
    evaluator.steps = 0
    evaluator.check_starts()
    evaluator.weighs_worst = search.stage not in STRUCTURE_STAGES
    if search.stage != "done":  # nor is a tree chosen by starts that it has been chosen by before
        evaluator.judging_starts = evaluator.starts(rng, search.n_judging_starts())
    STAGES[search.stage](search, rng)
    search.spent += evaluator.steps
    evaluator.runner = None
