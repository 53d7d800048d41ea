"""The racers of a search: at random trees, at a tree and at its neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.search_state import OBSERVATIONS, SearchState
from spaql.algorithms.treesearch.symmetry import (
    nearest_in,
    symmetric_basis,
    symmetrised,
    usable_in_cuts,
)
from spaql.algorithms.treesearch.trees import (
    CandidateTree,
    find_leaf,
    in_cut_units,
    pick,
    random_cut,
    random_tree,
    seen_by_cuts,
    split,
    switch_like,
    with_constants,
    without_cut,
)
from spaql.kernels.numerics import Bools, Floats, Rng
from spaql.simulate import Phase

_REMOVED = 0.25
"""How often a cut is removed before another is made."""
_REPLACED = 0.5
"""How often a cut is only replaced."""
_TURNED = 0.5
"""How often a cut is not replaced but turned towards a random one, or away from it."""
_COPIED = 0.4
_RESIZED = 0.7
"""How often the law of a new leaf is that of another leaf; and that, or its own with other sizes."""
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


def neighbour(
    tree: CandidateTree, states: Floats, most: int, rng: Rng, mirror: Mirror | None = None
) -> CandidateTree:
    """Return a tree with a leaf cut in two that have its law, through one of some states.

    If the tree has `most` leaves, or by chance, a cut is removed first. With a mirror the tree stays its own
    mirror image, and may be given cuts by an absolute value.
    """
    if tree.n_leaves >= most or (tree.n_leaves > 1 and rng.random() < _REMOVED):
        cuts = tree.free_cuts()
        if cuts:
            tree = without_cut(tree, pick(cuts, rng), int(rng.integers(2)))
    return tree if tree.n_leaves >= most else _split_somewhere(tree, states, rng, mirror)


def changed_neighbour(
    tree: CandidateTree, states: Floats, most: int, rng: Rng, mirror: Mirror | None = None
) -> CandidateTree:
    """Return a tree with another cut in place of one, or with a leaf cut in two that have different laws."""
    cuts = tree.free_cuts()
    if cuts and (tree.n_leaves >= most or rng.random() < _REPLACED):
        return _cut_anew(tree, pick(cuts, rng), states, rng, mirror)
    grown = _split_somewhere(tree, states, rng, mirror) if tree.n_leaves < most else tree
    if grown.n_leaves == tree.n_leaves:
        return grown
    child = len(tree.left) + int(rng.integers(2))
    free = grown.free[child]
    numbers = grown.numbers.copy()
    ends = [i for i in tree.leaf_nodes() if grown.left[i] < 0 and np.array_equal(tree.free[i], free)]
    kind = rng.random()
    if kind < _COPIED and ends:
        numbers[child] = tree.numbers[pick(ends, rng)]
    elif kind < _RESIZED:
        numbers[child][free] *= np.exp(rng.standard_normal(int(free.sum())))
    else:
        size = np.abs(tree.numbers[tree.left < 0]).mean(axis=0)[free]
        numbers[child][free] = size * rng.standard_normal(int(free.sum()))
    found = replace(grown, numbers=numbers)
    if mirror is not None:
        found = found.with_vector(nearest_in(symmetric_basis(found, mirror), found.vector))
    return found


def _split_somewhere(tree: CandidateTree, states: Floats, rng: Rng, mirror: Mirror | None) -> CandidateTree:
    """Return a tree with the leaf of a random state cut in two, unless it is locked or nothing can be cut."""
    found = _cut_through(tree, states, rng, mirror)
    if found is None:
        return tree
    tree, state, cut, free = found
    leaf = find_leaf(tree, state)
    return tree if tree.locked[leaf] else split(tree, leaf, cut, free)


def _cut_anew(
    tree: CandidateTree, node: int, states: Floats, rng: Rng, mirror: Mirror | None
) -> CandidateTree:
    """Return a tree with a cut replaced by a random one, or turned towards it, unless nothing can be cut."""
    found = _cut_through(tree, states, rng, mirror)
    if found is None:
        return tree
    tree, _, cut, free = found
    if rng.random() < _TURNED:
        cut = tree.numbers[node, 0] + rng.standard_normal() * cut
        used = free[1:] | (cut[1:] != 0.0)
        if not cut[1:].any():
            return tree
        cut, free = in_cut_units(cut, used)
    numbers = tree.numbers.copy()
    freedom = tree.free.copy()
    numbers[node, 0] = cut
    freedom[node, 0] = free
    return replace(tree, numbers=numbers, free=freedom)


def _cut_through(
    tree: CandidateTree, states: Floats, rng: Rng, mirror: Mirror | None
) -> tuple[CandidateTree, Floats, Floats, Bools] | None:
    """Return a tree that may have the cut, a random state, a random cut through it, and its free numbers."""
    used = None
    if mirror is not None:
        if tree.side < 0 and len(mirror.sides) and not tree.listed:
            side = int(mirror.sides[rng.integers(len(mirror.sides))])
            free = tree.free.copy()
            free[(tree.left >= 0) & ~tree.locked, 0, 1 + side] = True
            tree = replace(tree, side=side, free=free)
        used = usable_in_cuts(mirror, tree.side)
        if not used.any():
            return None
    if not len(states):
        return None
    state = pick(states, rng)
    return tree, state, *random_cut(seen_by_cuts(tree, state), rng, used)


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
    if mirror is not None and search.basis_of(tree) is None:
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
            played = evaluator.play(racer.tree, starts, Phase.SEARCH)
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
