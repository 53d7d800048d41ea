"""Neighbours of a tree: other cuts, more leaves or fewer, other laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.treesearch.symmetry import nearest_in, symmetric_basis, usable_in_cuts
from spaql.algorithms.treesearch.trees import (
    CandidateTree,
    Rng,
    find_leaf,
    in_cut_units,
    random_cut,
    seen_by_cuts,
    split,
    without_cut,
)
from spaql.kernels.treesearch.candidates import Bools, Floats

_REMOVED = 0.25
"""How often a cut is removed before another is made."""
_REPLACED = 0.5
"""How often a cut is only replaced."""
_TURNED = 0.5
"""How often a cut is not replaced but turned towards a random one, or away from it."""
_COPIED = 0.4
_RESIZED = 0.7
"""How often the law of a new leaf is that of another leaf; and that, or its own with other sizes."""


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
            tree = without_cut(tree, cuts[int(rng.integers(len(cuts)))], int(rng.integers(2)))
    return tree if tree.n_leaves >= most else _split_somewhere(tree, states, rng, mirror)


def changed_neighbour(
    tree: CandidateTree, states: Floats, most: int, rng: Rng, mirror: Mirror | None = None
) -> CandidateTree:
    """Return a tree with another cut in place of one, or with a leaf cut in two that have different laws."""
    cuts = tree.free_cuts()
    if cuts and (tree.n_leaves >= most or rng.random() < _REPLACED):
        return _cut_anew(tree, cuts[int(rng.integers(len(cuts)))], states, rng, mirror)
    grown = _split_somewhere(tree, states, rng, mirror) if tree.n_leaves < most else tree
    if grown.n_leaves == tree.n_leaves:
        return grown
    child = len(tree.left) + int(rng.integers(2))
    free = grown.free[child]
    numbers = grown.numbers.copy()
    ends = [i for i in tree.leaf_nodes() if grown.left[i] < 0 and np.array_equal(tree.free[i], free)]
    kind = rng.random()
    if kind < _COPIED and ends:
        numbers[child] = tree.numbers[ends[int(rng.integers(len(ends)))]]
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
    state = states[int(rng.integers(len(states)))]
    return tree, state, *random_cut(seen_by_cuts(tree, state), rng, used)
