"""The finish of a search: a local pattern search, and the removal of what does not pay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from spaql.algorithms.treesearch.evaluator import DIGITS, CandidateEvaluator, Judgement
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.trees import CandidateTree, without_cut
from spaql.kernels.numerics import Floats, Rng
from spaql.simulate import Phase

_RENEWALS = 4
"""How often the starts of a pattern search are drawn anew."""
_FIRST = 12
"""Starts after which a move without gain is rejected."""
_PATTERN_STARTS = 400
"""The most starts of a pattern search."""
_SMALL = 0.1
"""The price of a term or a digit, as a share of that of a leaf."""
_DIGITS = (3, 4)
"""Significant digits that are tried."""
_GROWTH = 1.5
_DECAY = 0.7
"""Factors of a stride after a success and after a failure."""


def pattern_search(evaluator: CandidateEvaluator, racer: Racer, steps: float, rng: Rng) -> CandidateTree:
    """Move one number at a time, or all at once, by strides that grow with success and shrink with failure.

    It begins at what a racer has found, and finds the edge of a cliff, at which CMA-ES fails because half of
    its candidates fall.
    """
    vector = racer.distribution.mean
    n = len(vector)
    if n == 0:
        return racer.tree
    strides = 0.1 + 0.3 * np.abs(vector)
    together = 0.5
    begun = evaluator.steps

    def rated(candidate: Floats, starts: Floats) -> float:
        found = evaluator.play(racer.tree, starts, Phase.SEARCH, vectors=racer.laws(candidate[np.newaxis]))
        return float(evaluator.scores_of(found)[0][0])

    for part in range(1, _RENEWALS + 1):
        count = int(max(2 * _FIRST, min(_PATTERN_STARTS, steps / _RENEWALS / evaluator.length / 50)))
        if steps * part / _RENEWALS - (evaluator.steps - begun) < 4 * count * evaluator.length:
            continue  # too few for a move or two
        starts = evaluator.mixed_starts(rng, count)
        first = rated(vector, starts[:_FIRST])
        whole = rated(vector, starts)
        while evaluator.steps - begun < steps * part / _RENEWALS:
            if rng.random() < 0.5:
                i = int(rng.integers(n))
                move = np.zeros(n)
                move[i] = strides[i] * (0.5 + rng.random())
            else:
                i = -1
                move = together * (0.02 + 0.1 * np.abs(vector)) * rng.standard_normal(n)
            gained = False
            for sign in (1.0, -1.0):
                candidate = vector + sign * move
                some = rated(candidate, starts[:_FIRST])
                if some <= first:
                    continue
                score = rated(candidate, starts)
                if score > whole:
                    vector = candidate
                    first = some
                    whole = score
                    gained = True
                    break
            factor = _GROWTH if gained else _DECAY
            if i >= 0:
                strides[i] = min(max(strides[i] * factor, 1e-4), 4.0)
            else:
                together = min(max(together * factor, 1e-3), 4.0)
    return racer.tree.with_vector(racer.laws(vector[np.newaxis])[0])


def simplify(
    evaluator: CandidateEvaluator,
    tree: CandidateTree,
    score: float,
    steps: float,
    price: float,
    keeps: Callable[[CandidateTree], bool] = lambda tree: True,
    basis_of: Callable[[CandidateTree], Floats | None] = lambda tree: None,
    judgement: Judgement | None = None,
) -> CandidateTree:
    """Remove cuts, actions and terms that do not pay, while there are steps left.

    The tree may lose the price of each leaf that is removed, and a share of it for anything smaller. What it
    must keep besides its score is checked by `keeps`. Terms that a basis (see `Racer`) ties are removed
    together. With the judgement of the tree, a leaf is only removed if a standard error less would do, too:
    of many leaves that pay, some do not from the starts of a judgement.
    """
    begun = evaluator.steps
    cost = evaluator.judged_length * len(evaluator.judging_starts)
    changed = True
    while changed:
        changed = False
        for simpler, leaves in _simpler(tree, basis_of(tree)):
            if evaluator.steps - begun + cost > steps:
                return tree
            judged = evaluator.judge(simpler)
            doubt = judged.error_of_difference(judgement) if judgement and leaves else 0.0
            if judged.score - doubt >= score - price * (leaves or _SMALL) and keeps(simpler):
                tree = simpler
                score = judged.score
                judgement = judgement and judged
                changed = True
                break
    return tree


def _simpler(tree: CandidateTree, basis: Floats | None) -> Iterator[tuple[CandidateTree, int]]:
    """Yield trees with something removed, and how many leaves: cuts first, then the smallest terms."""
    for node in tree.free_cuts()[::-1]:
        for side in range(2):
            smaller = without_cut(tree, node, side)
            yield smaller, tree.n_leaves - smaller.n_leaves
    if tree.listed:
        for node in tree.leaf_nodes():
            rows = np.flatnonzero(tree.allowed[node] & ~tree.locked[node])
            for row in rows[1:].tolist():
                numbers = tree.numbers.copy()
                free = tree.free.copy()
                allowed = tree.allowed.copy()
                numbers[node, row] = 0.0
                free[node, row] = False
                allowed[node, row] = False
                yield replace(tree, numbers=numbers, free=free, allowed=allowed), 0
    terms = tree.free & (tree.numbers != 0.0)
    order = np.argsort(np.where(terms, np.abs(tree.numbers), np.inf), axis=None, kind="stable")
    for place in order[: int(terms.sum())].tolist():
        numbers = tree.numbers.copy()
        free = tree.free.copy()
        tied = [place]
        if basis is not None:
            own = basis[tree.place.flat[place]] != 0.0
            tied = np.flatnonzero(tree.free)[(basis[:, own] != 0.0).any(axis=1)].tolist()
        numbers.flat[tied] = 0.0
        free.flat[tied] = False
        yield replace(tree, numbers=numbers, free=free), 0


def enough_digits(evaluator: CandidateEvaluator, tree: CandidateTree, score: float, price: float) -> int:
    """Return the fewest digits of the tree's numbers that do not cost more than a term may."""
    for digits in _DIGITS:
        if evaluator.judge(tree, digits=digits).score >= score - _SMALL * price:
            return digits
    return DIGITS
