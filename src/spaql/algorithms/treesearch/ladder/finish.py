"""The last stages of a ladder: the chosen rung is polished, made plainer, and rounded."""

from __future__ import annotations

from dataclasses import replace

from spaql.algorithms.treesearch.evaluator import DIGITS
from spaql.algorithms.treesearch.finish import enough_digits, simplify
from spaql.algorithms.treesearch.ladder.judging import climb, judged, nominal_of, replace_best
from spaql.algorithms.treesearch.ladder.rungs import SHARE
from spaql.algorithms.treesearch.ladder.state import POLISH, TERMS, Ladder
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST, Racer
from spaql.algorithms.treesearch.trees import Rng

_STARTS = 128
"""Starts of a generation when the best rung is polished, if there is room for them."""


def polish(ladder: Ladder, rng: Rng) -> None:
    """Go on with the best rung, by more starts in each generation."""
    structure, racer = ladder.racers[0]
    ladder.use(structure)
    steps = min(0.06 * ladder.budget, POLISH * ladder.budget - ladder.spent)
    _search(ladder, racer, steps, ladder.budget / 2, rng, _STARTS, LEAST_OF_BEST)
    replace_best(ladder, judged(ladder, structure, racer.found))
    if ladder.spent + ladder.evaluator.steps >= POLISH * ladder.budget:
        ladder.stage = "terms"


def remove_terms(ladder: Ladder, rng: Rng) -> None:
    """Remove terms that do not pay, unless the controller would rest elsewhere."""
    rung = ladder.rungs[ladder.best]
    block = ladder.use(rung.structure)
    left = TERMS * ladder.budget - ladder.spent
    assert rung.nominal is not None
    error = max(2 * rung.nominal.at_rest, 0.01 * _largest_error(ladder))
    tree = simplify(
        ladder.evaluator,
        rung.tree,
        rung.score,
        left,
        SHARE * abs(rung.score),
        lambda tree: nominal_of(ladder, block, tree).at_rest <= error,
    )
    structure = block.plainer(tree)  # what no term uses is not part of it
    less = ladder.block(structure).like(tree, block)
    tree = replace(less, free=less.free & (less.numbers != 0.0))
    del ladder.rungs[ladder.best]  # it becomes the one with fewer terms
    climb(ladder, judged(ladder, structure, tree))
    ladder.digits = DIGITS
    ladder.stage = "last"


def _largest_error(ladder: Ladder) -> float:
    return max(ladder.usual.sizes[name] for name in ladder.meaning.errors)


def finish(ladder: Ladder, rng: Rng) -> None:
    """Go on with the numbers that are left, and round them."""
    judgements = 4 * len(ladder.evaluator.judging_starts) * ladder.evaluator.judged_length  # also of digits
    _go_on(ladder, ladder.budget - ladder.spent - judgements, rng)
    rung = ladder.rungs[ladder.best]
    ladder.digits = enough_digits(ladder.evaluator, rung.tree, rung.score, SHARE * abs(rung.score))
    ladder.stage = "done"


def spend_rest(ladder: Ladder, rng: Rng) -> None:
    """Spend what is left of the budget on the best rung."""
    _go_on(ladder, max(1, ladder.budget - ladder.spent), rng)


def _go_on(ladder: Ladder, steps: float, rng: Rng) -> None:
    """Search the numbers of the best rung for so many steps."""
    rung = ladder.rungs[ladder.best]
    ladder.use(rung.structure)
    racer = Racer.of(rung.tree, step=0.1)
    _search(ladder, racer, steps, ladder.budget / 4, rng)
    replace_best(ladder, judged(ladder, rung.structure, racer.found))


def _search(ladder: Ladder, racer: Racer, steps: float, plan: float, rng: Rng, *starts: int) -> None:
    """Search the numbers of the best rung; a pole is swung up from hard starts again and again.

    A swing-up that is a little too fast fails from a few starts only. Judgements are without hard starts:
    rungs that are judged at different times are compared.
    """
    ladder.evaluator.keeps_hard_starts = ladder.meaning.pole is not None
    racer.run(ladder.evaluator, steps, plan, rng, *starts)
    ladder.evaluator.keeps_hard_starts = False
