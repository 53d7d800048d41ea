"""The first stages of a ladder: what features usually are, and a race of plain structures."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from spaql.algorithms.treesearch.ladder.block import Usual
from spaql.algorithms.treesearch.ladder.judging import (
    climb,
    judged,
    n_judging_starts,
)
from spaql.algorithms.treesearch.ladder.lqr import swing_up_racer
from spaql.algorithms.treesearch.ladder.rungs import Rung
from spaql.algorithms.treesearch.ladder.state import RACE, Ladder
from spaql.algorithms.treesearch.ladder.structures import ENERGY, NEXT, Structure
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.trees import Rng
from spaql.classical import operating_point
from spaql.controllers.controller import POSITION
from spaql.simulate import Phase

_SWING_UP = 0.25
"""The share of the budget for the few numbers of a swing-up."""
_SWINGS = 2
"""How often they are searched: one search alone may end in a swing-up that loses some starts."""
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
    ladder.usual = Usual.about(point)
    for form, more in ladder.meaning.more.items():
        base = next(kinds for plain_form, kinds in ladder.meaning.plain if plain_form == form)
        kinds = [kind for kind in (*base, *more) if ladder.meaning.has((kind,))]
        _measure_features(ladder, Structure(form, base).with_kinds(kinds), rng)
    evaluator.judging_starts = evaluator.starts(rng, n_judging_starts(ladder, _JUDGEMENTS))
    if ladder.meaning.pole:
        ladder.stage = "swing_up"
        return
    for form, plain in ladder.meaning.plain:
        if ladder.meaning.has(plain):
            block = ladder.block(Structure(form, plain))
            ladder.racers.append((block.structure, Racer.of(block.one_law(), least=1.0)))
    ladder.stage = "race"


def _measure_features(ladder: Ladder, structure: Structure, rng: Rng) -> None:
    """Measure the usual magnitudes of the features of a structure by random laws."""
    evaluator = ladder.evaluator
    block = ladder.use(structure)
    visited = []
    returns = list[float]()
    for _ in range(_MEASURED):
        tree = block.one_law()
        numbers = tree.numbers.copy()
        numbers[0, :, 1:] = rng.standard_normal(numbers.shape[1:] - np.array([0, 1]))
        if structure.form == POSITION:  # of the errors alone: anything else would not rest
            numbers[0, :, 1:] *= [feature.name in ladder.meaning.errors for feature in block.features]
        tree = replace(tree, numbers=numbers)
        starts = evaluator.starts(rng, 2)
        played = evaluator.play(tree, tree.vector[np.newaxis], starts, Phase.SEARCH, visited=2000)
        visited.append(played.visited)
        returns += played.returns[0].tolist()
    ladder.first_return = sorted(returns)[len(returns) // 2]
    rows = np.concatenate(visited)
    rows = rows[np.isfinite(rows).all(axis=1)]
    sizes = dict(ladder.usual.sizes)
    for j, feature in enumerate(block.features):
        size = float(np.sqrt(math.fsum((rows[:, j] ** 2).tolist()) / max(1, len(rows))))
        sizes[feature.name] = float(f"{size:.2g}") if size > 0 else 1.0
    ladder.usual = ladder.usual._replace(sizes=sizes)


def swing_up(ladder: Ladder, rng: Rng) -> None:
    """Search the few numbers of energy pumping with a regulator at the top, and keep the best."""
    assert ladder.meaning.pole is not None
    ((form, kinds),) = ladder.meaning.plain
    block = ladder.use(Structure(form, kinds).with_kinds((*kinds, ENERGY)))
    racers = [swing_up_racer(block, ladder.meaning.pole) for _ in range(_SWINGS)]
    steps = _SWING_UP * ladder.budget / _SWINGS
    for racer in racers:
        racer.run(ladder.evaluator, steps, 2 * steps, rng)
    tried = priced(ladder, [judged(ladder, block.structure, racer.found) for racer in racers])
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
    return [replace(rung, price=ladder.evaluator.price) for rung in tried]


def _with_derivative(ladder: Ladder, rung: Rung) -> tuple[Structure, Racer]:
    """Return a racer that begins at a rung, with a derivative besides."""
    structure = rung.structure.with_kinds((*rung.structure.kinds, NEXT[rung.structure.form]))
    tree = ladder.block(structure).like(rung.tree, ladder.block(rung.structure))
    return structure, Racer.of(tree, step=0.3)
