"""The racers of a search: at random trees, at a tree and at its neighbours."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.treesearch.neighbours import changed_neighbour, neighbour
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.search_state import OBSERVATIONS, SearchState
from spaql.algorithms.treesearch.symmetry import (
    basis_if_symmetric,
    symmetric_basis,
    symmetrised,
    usable_in_cuts,
)
from spaql.algorithms.treesearch.trees import CandidateTree, Rng, random_tree, switch_like, with_constants
from spaql.kernels.treesearch.candidates import Floats
from spaql.simulate import Phase

_SIZES = (1, 2, 3, 4)
"""Leaves of the racers: for each size there are two."""
_SWITCHES = (2, 3)
"""Leaves of racers whose laws are constants, where actions are numbers."""
_LEAST = 0.2
"""The least by which a number of a random law is varied; laws of 0 are varied by 1."""
_RACED_SHARE = 0.8
"""Trees race if their numbers can be searched with this share of the budget."""
_SCREENED = 100
"""The most neighbours of which these are the best."""
_FEW_STARTS = 8
_MORE_STARTS = 32
_PASS = 6
"""All of them are played from a few starts, and one in so many from more."""
_SWITCH_STATES = 500
"""Observations by which a switch between constants is made."""
_NEAR = 0.25
"""Of observations that are nearer to each other only one is kept."""


def racer_at(search: SearchState, tree: CandidateTree, step: float = 0.5) -> Racer:
    """Return a racer that begins at a tree; one that is its own mirror image stays so."""
    return Racer.of(tree, step=step, basis=basis_of(search, tree))


def basis_of(search: SearchState, tree: CandidateTree) -> Floats | None:
    """Return the basis with which a tree stays its own mirror image, if it is one."""
    return None if search.mirror is None else basis_if_symmetric(tree, search.mirror)


def random_racers(search: SearchState, rng: Rng) -> list[Racer]:
    """Return racers of all sizes that the budget suffices for, and two of one leaf in any case."""
    sizes = [min(size, search.settings.max_leaves) for size in _SIZES]
    racers = [random_racer(search, size, idle, rng) for size in sizes for idle in (True, False)]
    if not search.base.listed and search.settings.max_leaves >= 2:
        trees = [random_tree(search.base, size, search.states, rng) for size in _SWITCHES]
        racers += [Racer.of(with_constants(tree), least=_LEAST) for tree in trees]
    return racers[:2] + affordable(search, racers[2:])


def affordable(search: SearchState, racers: Iterable[Racer]) -> list[Racer]:
    """Return the racers that the budget suffices for."""
    most = _RACED_SHARE * search.budget
    return [racer for racer in racers if racer.least_steps(search.evaluator.length) <= most]


def random_racer(search: SearchState, size: int, idle: bool, rng: Rng) -> Racer:
    """Return a racer of random trees, with laws of 0 or random ones.

    With a mirror they are their own mirror images, but for one leaf with a random law.
    """
    if search.mirror is not None and (idle or size > 1):
        return _symmetric(search, size, search.mirror, rng, idle=idle)
    tree = random_tree(search.base, size, search.states, rng, idle=idle)
    return Racer.of(tree, least=1.0 if idle else _LEAST)


def _symmetric(search: SearchState, size: int, mirror: Mirror, rng: Rng, *, idle: bool) -> Racer:
    """Return a racer of trees that are their own mirror image; of one leaf if nothing can be cut so."""
    used = usable_in_cuts(mirror, -1)
    tree = random_tree(search.base, size if used.any() else 1, search.states, rng, idle=idle, used=used)
    return Racer.of(tree, least=1.0 if idle else _LEAST, basis=symmetric_basis(tree, mirror))


def neighbour_racer(
    search: SearchState, tree: CandidateTree, seen: Floats, rng: Rng, *, changed: bool = False
) -> Racer:
    """Return a racer at a neighbour of a tree; one that is its own mirror image stays so.

    Others may become so where the plant has a mirror.
    """
    mirror = search.mirror
    if mirror is not None and basis_of(search, tree) is None:
        image = symmetrised(tree, mirror) if rng.random() < 0.5 else None
        mirror = mirror if image else None
        tree = image or tree
    make = changed_neighbour if changed else neighbour
    found = make(tree, seen, search.settings.max_leaves, rng, mirror)
    return Racer.of(found, step=0.3, basis=None if mirror is None else symmetric_basis(found, mirror))


def screened(search: SearchState, tree: CandidateTree, count: int, steps: float, rng: Rng) -> list[Racer]:
    """Return racers at a few neighbours of a tree: the best of many, if there is room for them."""
    evaluator = search.evaluator
    seen = apart(search, tree, rng)
    tried = min(_SCREENED, int(steps / evaluator.length / (_FEW_STARTS + _MORE_STARTS / _PASS)))
    if tried < 2 * _PASS:
        return affordable(search, (neighbour_racer(search, tree, seen, rng) for _ in range(count)))
    field = switch_racers(search, tree, rng)
    field += [neighbour_racer(search, tree, seen, rng, changed=True) for _ in range(tried)]
    field = affordable(search, field)
    for n, kept in ((_FEW_STARTS, max(count, tried // _PASS)), (_MORE_STARTS, count)):
        starts = evaluator.starts(rng, n)
        for racer in field:
            played = evaluator.play(racer.tree, racer.tree.vector[np.newaxis], starts, Phase.SEARCH)
            racer.score = float(evaluator.scores_of(played)[0][0])
        field = sorted(field, key=lambda racer: -racer.score)[:kept]
    return field


def apart(search: SearchState, tree: CandidateTree, rng: Rng) -> Floats:
    """Return observations of a tree that are not near each other: most episodes are at rest for long."""
    seen = search.evaluator.visited(tree, OBSERVATIONS, rng)
    return seen[np.sort(np.unique(np.round(seen / _NEAR), axis=0, return_index=True)[1])]


def switch_racers(search: SearchState, tree: CandidateTree, rng: Rng) -> list[Racer]:
    """Return a racer that begins at a switch between two constants, which is like the tree.

    Laws are steep or gentle; where gentle actions pay, two constants are found more easily.
    """
    if tree.listed or tree.locked.any() or search.settings.max_leaves < 2:
        return []
    seen = search.evaluator.visited(tree, OBSERVATIONS, rng)
    some = seen[rng.integers(len(seen), size=_SWITCH_STATES)]
    found = switch_like(tree, some, int(rng.integers(tree.numbers.shape[1])))
    return [] if found is None else [Racer.of(found, least=0.1, step=0.3)]
