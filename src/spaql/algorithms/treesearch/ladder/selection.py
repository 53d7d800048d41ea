"""The middle stages of a ladder: features and leaves are added and removed, and a rung is chosen."""

from __future__ import annotations

from dataclasses import replace

from spaql.algorithms.treesearch.ladder.judging import (
    FEWEST_JUDGED,
    affordable_starts,
    climb,
    judged,
    n_judging_starts,
    nominal_of,
)
from spaql.algorithms.treesearch.ladder.lqr import lqr_racer, lqr_structure
from spaql.algorithms.treesearch.ladder.rungs import Rung, choose
from spaql.algorithms.treesearch.ladder.state import ALL, LEAVES, RACE, REMOVE, Ladder
from spaql.algorithms.treesearch.ladder.structures import CONSTANT, Structure
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.trees import Rng, find_leaf, random_cut, split
from spaql.classical import linearise
from spaql.errors import SettingError

_SPLITS = 2
"""Trees of two leaves that are tried."""


def add_all(ladder: Ladder, rng: Rng) -> None:
    """Give the best structure of each form all kinds of features that there are."""
    more = ladder.meaning.more
    share = (ALL - RACE) * ladder.budget / (len(more) + 1)
    _regulate(ladder, share, rng)
    for form in more:
        rung = max(
            (rung for rung in ladder.rungs if rung.structure.form == form), key=lambda rung: rung.score
        )
        kinds = [kind for kind in more[form] if ladder.meaning.has((kind,))]
        if ladder.usual.action:  # it is the constant
            kinds = [kind for kind in kinds if kind != CONSTANT]
        _try(ladder, rung.structure.with_kinds((*rung.structure.kinds, *kinds)), rung, share, rng)
    ladder.stage = "remove"
    ladder.turn = 0
    ladder.racers = []


def _regulate(ladder: Ladder, steps: float, rng: Rng) -> None:
    """Search from the linear regulator of the plant, if it has one: its weights first, then its gains."""
    try:
        plant = linearise(ladder.meaning.problem)
    except SettingError:  # there are no equations, or no rest
        return
    ladder.count_steps(plant.steps)
    block = ladder.use(lqr_structure(ladder.meaning, plant))
    racers = [lqr_racer(block, plant)]
    racers[0].run(ladder.evaluator, steps / 2, steps, rng)
    racers.append(Racer.of(racers[0].found, least=0.05, step=0.3))
    racers[1].run(ladder.evaluator, steps / 2, steps, rng)
    tried = [judged(ladder, block.structure, racer.found) for racer in racers]
    climb(ladder, max(tried, key=lambda rung: rung.score))


def _try(ladder: Ladder, structure: Structure, source: Rung, steps: float, rng: Rng) -> None:
    """Search the numbers of a structure, beginning with those of a rung, and climb if it pays."""
    block = ladder.use(structure)
    racer = Racer.of(block.like(source.tree, ladder.block(source.structure)), step=0.3)
    racer.run(ladder.evaluator, steps, 2 * steps, rng)
    climb(ladder, judged(ladder, structure, racer.found))


def remove_kinds(ladder: Ladder, rng: Rng) -> None:
    """Remove each kind of feature: first of the rung with the highest score, then of the chosen one."""
    first = max(ladder.rungs, key=lambda rung: rung.score)
    rung = ladder.rungs[ladder.best] if ladder.turn else first
    ladder.turn += 1
    kinds = [kind for kind in rung.structure.kinds if kind in ladder.meaning.more[rung.structure.form]]
    if not kinds or ladder.spent >= REMOVE * ladder.budget:
        ladder.stage = "leaves"
        cut_law(ladder, rng)
        return
    share = (REMOVE - ALL) * ladder.budget / 10
    for kind in kinds:
        others = [other for other in rung.structure.kinds if other != kind]
        _try(ladder, rung.structure.with_kinds(others), rung, share, rng)
    if ladder.rungs[ladder.best] is rung:
        ladder.stage = "leaves"


def cut_law(ladder: Ladder, rng: Rng) -> None:
    """Cut the law in two."""
    rung = ladder.rungs[ladder.best]
    if ladder.settings.max_leaves > rung.tree.n_leaves and not ladder.meaning.pole:
        ladder.use(rung.structure)
        for _ in range(_SPLITS):
            states = ladder.evaluator.visited(rung.tree, 2000, rng)
            state = states[int(rng.integers(len(states)))]
            cut = random_cut(state, rng)
            tree = split(rung.tree, find_leaf(rung.tree, state), *cut)
            racer = Racer.of(tree, step=0.3)
            share = (LEAVES - REMOVE) * ladder.budget / _SPLITS
            racer.run(ladder.evaluator, share, 2 * share, rng)
            climb(ladder, judged(ladder, rung.structure, racer.found))
    ladder.stage = "choose"


def choose_rung(ladder: Ladder, rng: Rng) -> None:
    """Choose a rung by an evaluation of all of them from the same starts.

    They are fresh ones, if a tenth of the budget is enough: the best of the search may have been lucky.
    """
    evaluator = ladder.evaluator
    judgements = len(ladder.rungs)
    is_affordable = affordable_starts(ladder, judgements) >= FEWEST_JUDGED
    if is_affordable or not len(evaluator.judging_starts):
        evaluator.judging_starts = evaluator.starts(rng, n_judging_starts(ladder, judgements))
        ladder.rungs = [judged(ladder, rung.structure, rung.tree) for rung in ladder.rungs]
    ladder.rungs = [
        replace(rung, nominal=nominal_of(ladder, ladder.use(rung.structure), rung.tree))
        for rung in ladder.rungs
    ]
    ladder.best = choose(ladder.rungs)
    rung = ladder.rungs[ladder.best]
    ladder.racers = [(rung.structure, Racer.of(rung.tree, step=0.3))]
    ladder.stage = "polish"
