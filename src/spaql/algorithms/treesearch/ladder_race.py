"""The first stages of a ladder: what features usually are, and a race of plain structures."""

from __future__ import annotations

import math

import numpy as np

from spaql.algorithms.treesearch.block import Usual
from spaql.algorithms.treesearch.ladder import RACE, Ladder
from spaql.algorithms.treesearch.ladder_judging import (
    FEWEST_JUDGED,
    MOST_JUDGED,
    affordable_starts,
    climb,
    judged,
)
from spaql.algorithms.treesearch.lqr import swing_up_racer
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.rungs import Rung
from spaql.algorithms.treesearch.structures import ENERGY, NEXT, Structure
from spaql.algorithms.treesearch.trees import CandidateTree, Rng
from spaql.classical import operating_point
from spaql.controllers.controller import POSITION
from spaql.simulate import Phase

_SWING_UP = 0.25
"""The share of the budget for the few numbers of a swing-up."""
_SWINGS = 2
"""So many times they are searched: one search alone may end in a swing-up that loses some starts."""
_ROUNDS = 3
"""Rounds of the race."""
_MOVEMENT = 30
"""The price of movement is a share of so many returns: 3 % for the whole range in every sample."""
_JUDGEMENTS = 40
"""About so many judgements take a tenth of the budget."""
_MEASURED = 8
"""Random controllers by which features are measured."""


def measure(ladder: Ladder, rng: Rng) -> None:
    """Measure the usual magnitudes of features by random laws of the error, and make the racers."""
    evaluator = ladder.evaluator
    ladder.count_steps(ladder.uncounted)
    if ladder.meaning.pole:
        ladder.count_steps(ladder.meaning.pole.plant.steps)
    point = operating_point(ladder.meaning.problem)
    ladder.count_steps(point.steps if point else 0)
    ladder.usual, sizes = Usual.about(point), dict[str, float]()
    for form, more in ladder.meaning.more.items():
        base = next(kinds for one, kinds in ladder.meaning.plain if one == form)
        kinds = [kind for kind in (*base, *more) if ladder.meaning.has((kind,))]
        structure = Structure(form, base).with_kinds(kinds)
        seen = []
        returns = list[float]()
        for _ in range(_MEASURED):
            block = ladder.use(structure)
            tree = block.one_law()
            numbers = tree.numbers.copy()
            numbers[0, :, 1:] = rng.standard_normal(numbers.shape[1:] - np.array([0, 1]))
            if form == POSITION:  # of the errors alone: anything else would not rest
                errors = np.array([one.name in ladder.meaning.errors for one in block.features])
                numbers[0, :, 1:] *= errors
            tree = CandidateTree(
                tree.left, numbers, tree.free, tree.allowed, tree.locked, tree.exact, listed=False
            )
            found = evaluator.play(
                tree, tree.vector[np.newaxis], evaluator.starts(rng, 2), Phase.SEARCH, visited=2000
            )
            seen.append(found.visited)
            returns += found.returns[0].tolist()
        ladder.first_return = sorted(returns)[len(returns) // 2]
        rows = np.concatenate(seen)
        rows = rows[np.isfinite(rows).all(axis=1)]
        for j, feature in enumerate(block.features):
            size = float(np.sqrt(math.fsum((rows[:, j] ** 2).tolist()) / max(1, len(rows))))
            sizes[feature.name] = float(f"{size:.2g}") if size > 0 else 1.0
        ladder.usual = ladder.usual._replace(sizes=dict(sizes))
    evaluator.judging_starts = evaluator.starts(rng, _n_judging_starts(ladder, _JUDGEMENTS))
    if ladder.meaning.pole:
        ladder.stage = "swing_up"
        return
    for form, plain in ladder.meaning.plain:
        if ladder.meaning.has(plain):
            block = ladder.block(Structure(form, plain))
            ladder.racers.append((block.structure, Racer.of(block.one_law(), least=1.0)))
    ladder.stage = "race"


def _n_judging_starts(ladder: Ladder, judgements: int) -> int:
    """Return the number of starts of which so many judgements take a tenth of the budget."""
    return min(max(affordable_starts(ladder, judgements), FEWEST_JUDGED), MOST_JUDGED)


def swing_up(ladder: Ladder, rng: Rng) -> None:
    """Search the few numbers of energy pumping with a regulator at the top, and keep the best."""
    assert ladder.meaning.pole is not None
    ((form, kinds),) = ladder.meaning.plain
    block = ladder.use(Structure(form, kinds).with_kinds((*kinds, ENERGY)))
    racers = [swing_up_racer(block, ladder.meaning.pole) for _ in range(_SWINGS)]
    steps = _SWING_UP * ladder.budget / _SWINGS
    for racer in racers:
        racer.run(ladder.evaluator, steps, 2 * steps, rng)
    tried = priced(ladder, [judged(ladder, block.structure, one.found) for one in racers])
    climb(ladder, max(tried, key=lambda rung: rung.score))
    ladder.stage = "remove"


def race(ladder: Ladder, rng: Rng) -> None:
    """Give the next racer its share of a round; at the end of a round keep the better half.

    After the first round, each of these races against itself with a derivative.
    """
    share = RACE / _ROUNDS * ladder.budget / len(ladder.racers)
    structure, racer = ladder.racers[ladder.turn]
    ladder.use(structure)
    racer.run(ladder.evaluator, share, 2 * share, rng)
    ladder.turn += 1
    if ladder.turn < len(ladder.racers):
        return
    tried = [judged(ladder, structure, racer.found) for structure, racer in ladder.racers]
    if ladder.round == 0:
        tried = priced(ladder, tried)
    for rung in tried:
        climb(ladder, rung)
    order = sorted(range(len(tried)), key=lambda i: -tried[i].score)
    kept = sorted(order[: max(1, len(order) // 2)])
    ladder.racers = [ladder.racers[i] for i in kept]
    if ladder.round == 0:
        ladder.racers += [_with_derivative(ladder, tried[i]) for i in kept]
    ladder.round = ladder.round + 1
    ladder.turn = 0
    if ladder.round == _ROUNDS:
        ladder.stage = "all"


def priced(ladder: Ladder, tried: list[Rung]) -> list[Rung]:
    """Give movement its price from now on, by the best of what was tried; returns that with its price."""
    ladder.evaluator.span = _MOVEMENT * abs(max(rung.score for rung in tried))
    return [rung.priced(ladder.evaluator.price) for rung in tried]


def _with_derivative(ladder: Ladder, rung: Rung) -> tuple[Structure, Racer]:
    """Return a racer that begins at a rung, with a derivative besides."""
    structure = rung.structure.with_kinds((*rung.structure.kinds, NEXT[rung.structure.form]))
    tree = ladder.block(structure).like(rung.tree, ladder.block(rung.structure))
    return structure, Racer.of(tree, step=0.3)
