"""Judgements of rungs from common starts, and the climb from one to the next."""

from __future__ import annotations

import math

import numpy as np

from spaql.algorithms.treesearch.evaluator import DIGITS
from spaql.algorithms.treesearch.ladder.block import Block
from spaql.algorithms.treesearch.ladder.rungs import Nominal, Rung, choose
from spaql.algorithms.treesearch.ladder.state import BEFORE_CHOICE, Ladder
from spaql.algorithms.treesearch.ladder.structures import Structure
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.kernels.treesearch.candidates import Floats
from spaql.simulate import Phase

FEWEST_JUDGED = 30
"""The fewest starts of a judgement."""
_MOST_JUDGED = 200
"""The most."""
_RESTED = 16
"""Episodes by which the error in steady state is measured."""


def judged(ladder: Ladder, structure: Structure, tree: CandidateTree) -> Rung:
    """Judge a controller: on the plant to design for, from the common starts, and on the plant itself."""
    block = ladder.use(structure)
    evaluator = ladder.evaluator
    vectors = tree.vector[np.newaxis]
    played = evaluator.play(tree, vectors, evaluator.judging_starts, Phase.OWN_PLAY, digits=DIGITS)
    return Rung(
        structure,
        tree,
        block.parameters(tree),
        played.returns[0],
        played.changes[0],
        evaluator.price,
        ladder.settings.worst_weight,
        None if ladder.stage in BEFORE_CHOICE else nominal_of(ladder, block, tree),
    )


def climb(ladder: Ladder, rung: Rung) -> None:
    """Add a rung, or replace the one with its structure and as many leaves if it is better."""
    alike = [i for i, other in enumerate(ladder.rungs) if other.is_like(rung)]
    if not alike:
        ladder.rungs.append(rung)
    elif rung.score > ladder.rungs[alike[0]].score:
        ladder.rungs[alike[0]] = rung
    ladder.best = choose(ladder.rungs)


def replace_best(ladder: Ladder, rung: Rung) -> None:
    """Replace the best rung by the same structure with better numbers."""
    if rung.score >= ladder.rungs[ladder.best].score:
        ladder.rungs[ladder.best] = rung
        ladder.digits = DIGITS
        ladder.best = choose(ladder.rungs)


def nominal_of(ladder: Ladder, block: Block, tree: CandidateTree) -> Nominal:
    """Return the measures of a rung in the plant's own episodes."""
    evaluator = ladder.evaluator
    horizon = ladder.meaning.problem.horizon
    evaluator.plant = None
    starts = evaluator.starts(np.random.default_rng(0), _RESTED)
    played = evaluator.play(tree, tree.vector[np.newaxis], starts, Phase.OWN_PLAY, visited=_RESTED * horizon)
    evaluator.plant = ladder.design
    errors = [j for j, feature in enumerate(block.features) if feature.name in ladder.meaning.errors]
    return Nominal(
        math.fsum(played.returns[0].tolist()) / _RESTED,
        _rest_error(played.visited[:, errors], horizon),
        math.fsum(played.movement[0].tolist()) / max(1, played.steps),
        math.fsum(played.switches[0].tolist()) / _RESTED,
    )


def affordable_starts(ladder: Ladder, judgements: int) -> int:
    """Return the number of starts from which n judgements take a tenth of the budget."""
    return int(0.1 * ladder.budget / (judgements * ladder.evaluator.length))


def n_judging_starts(ladder: Ladder, judgements: int) -> int:
    """Return the number of starts of each of n judgements."""
    return min(max(affordable_starts(ladder, judgements), FEWEST_JUDGED), _MOST_JUDGED)


def _rest_error(errors: Floats, horizon: int) -> float:
    """Return the largest mean error of the last quarter of an episode."""
    largest = 0.0
    last = max(1, horizon // 4)
    for begin in range(0, len(errors), horizon):
        rows = errors[begin : begin + horizon][-last:]
        means = np.abs([math.fsum(rows[:, j].tolist()) / len(rows) for j in range(rows.shape[1])])
        largest = max(largest, float(means.max()))
    return largest
