"""The last stages: the best tree is refined, moved to the edge of cliffs, and made plainer."""

from __future__ import annotations

from functools import partial

from spaql.algorithms.treesearch.finish import enough_digits, pattern_search, simplify
from spaql.algorithms.treesearch.judging import compare, first_score, judge_incumbent, judge_racers, judges_by
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST, Racer
from spaql.algorithms.treesearch.racers import basis_of, racer_at
from spaql.algorithms.treesearch.search_state import INCUMBENT_STEP, PATTERN, REFINE, SHARPEN, SearchState
from spaql.algorithms.treesearch.trees import Rng

_SIMPLIFIED = 200
"""The fewest starts by which a tree is made plainer, or a law sharpened."""
_REFINED = 128
"""Starts of a generation when the best tree is refined, so that rare failures are seen."""


def refine(search: SearchState, rng: Rng) -> None:
    """Go on with the best tree."""
    best = search.racers[0]
    best.run(search.evaluator, 0.03 * search.budget, search.budget, rng, _REFINED, LEAST_OF_BEST)
    best.judge(partial(first_score, search))
    compare(search, best, rng)
    if search.spent + search.evaluator.steps >= REFINE * search.budget:
        search.stage = "pattern"


def sharpen(search: SearchState, rng: Rng) -> None:
    """Move the numbers of a law one by one: where it is nearly the best, other trees only cost steps."""
    assert search.incumbent is not None
    judges_by(search, _SIMPLIFIED, rng)
    _search_by_pattern(search, racer_at(search, search.incumbent), SHARPEN, rng)
    search.racers = [racer_at(search, search.incumbent, INCUMBENT_STEP)]
    search.stage = "grow"


def pattern(search: SearchState, rng: Rng) -> None:
    """Move the numbers of the best tree one by one."""
    assert search.incumbent is not None
    best = search.racers[0]  # it may be better but for starts from which it fails
    begun = best if best.score > first_score(search, search.incumbent) else racer_at(search, search.incumbent)
    _search_by_pattern(search, begun, PATTERN, rng)
    search.stage = "simplify"


def _search_by_pattern(search: SearchState, begun: Racer, last: float, rng: Rng) -> None:
    """Search from a racer's tree until a share of the budget is spent, and compare what is found."""
    assert search.incumbent is not None
    found = pattern_search(search.evaluator, begun, last * search.budget - search.spent, rng)
    new = search.evaluator.judge(found)
    old = search.evaluator.judge(search.incumbent)
    if new.score > old.score + new.error_of_difference(old):  # it was fitted to few starts
        compare(search, Racer.of(found), rng, new)


def make_plainer(search: SearchState, rng: Rng) -> None:
    """Remove what does not pay, and round the numbers."""
    assert search.incumbent is not None
    evaluator = search.evaluator
    left = search.budget - search.spent
    price = search.settings.leaf_price * evaluator.span
    if len(evaluator.judging_starts) < _SIMPLIFIED and not judges_by(search, _SIMPLIFIED, rng):
        search.stage = "done"
        spend_rest(search, rng)
        return
    judge_incumbent(search)  # from the starts by which plainer trees are judged
    search.incumbent = simplify(
        evaluator,
        search.incumbent,
        search.judgement.score,
        left - evaluator.steps,
        price,
        basis_of=partial(basis_of, search),
        judgement=search.judgement,
    )
    judge_incumbent(search)
    search.digits = enough_digits(search.evaluator, search.incumbent, search.judgement.score, price)
    search.stage = "done"


def spend_rest(search: SearchState, rng: Rng) -> None:
    """Spend what is left of the budget on a search from the incumbent, or on its judgement."""
    assert search.incumbent is not None
    evaluator = search.evaluator
    left = search.budget - search.spent - search.evaluator.steps
    search.racers = [racer_at(search, search.incumbent, step=0.1)]
    judged = 3 * len(evaluator.judging_starts) * evaluator.judged_length
    if search.racers[0].generation_steps(evaluator.length) + judged > left:
        evaluator.judging_starts = evaluator.starts(rng, max(1, int(left / evaluator.judged_length)))
        search.judgement = evaluator.judge(search.incumbent)
        return
    search.racers[0].run(evaluator, left - judged, search.budget / 2, rng)
    judge_racers(search, search.racers)
    compare(search, search.racers[0], rng)
