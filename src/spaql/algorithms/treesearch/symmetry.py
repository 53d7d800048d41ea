"""Trees that are their own mirror image: about half as many numbers are searched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spaql.algorithms.mirrors.detection import FEWEST, chosen_mirror
from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.replay import ActionCode, ReplayMemory
from spaql.algorithms.saved import Data, require
from spaql.algorithms.treesearch.trees import CandidateTree, in_cut_units
from spaql.errors import BadEnvironmentError
from spaql.kernels.numerics import Bools, Floats, Rng
from spaql.problems import Problem
from spaql.simulate import record_random

_MOST = 10_000
_SHARE = 50
"""Steps by which a mirror is looked for: at most so many, and one in so many of the budget."""
_FEWEST = 5
"""Episodes that are played together, at least."""
_NONE = 1e-9
"""What is left of a column that is a sum of others."""


def mirror_of(setting: str, problem: Problem, budget: int, rng: Rng) -> tuple[Mirror | None, int]:
    """Return the mirror that is given by a setting, or that random actions show, and the steps they took.

    Whether episodes end in the mirror, too, is not tested, as random actions see few ends: a mirror that is
    none costs most racers, and wins no race.
    """
    code = ActionCode(problem.actions.space)
    memory = ReplayMemory(problem.states.dims, code.numbers)
    steps = min(_MOST, budget // _SHARE)
    while setting == "auto" and steps >= FEWEST and len(memory) < steps:
        n = max(_FEWEST, (steps - len(memory)) // problem.horizon)
        try:
            episodes = record_random(problem, n, rng)
        except BadEnvironmentError:
            episodes = []
        taken = len(memory) + n * problem.horizon  # at most
        if not episodes or not all(memory.add_played(episode, code) for episode in episodes):
            return None, taken  # it explodes, and cannot be fitted
    return chosen_mirror(setting, memory, code, problem, ends=False), len(memory)


def mirror_in(setting: str, memory: ReplayMemory, problem: Problem) -> Mirror | None:
    """Return the mirror that steps of laws show where those of random actions did not."""
    some = memory.until(min(_MOST, len(memory)))
    return chosen_mirror(setting, some, ActionCode(problem.actions.space), problem, ends=False)


def mirror_from_data(data: Data, tree: CandidateTree) -> Mirror:
    """Return a mirror from the data of a file, for the problem of a tree."""
    found = Mirror(**{name: tuple(map(int, data[name])) for name in Mirror.__dataclass_fields__})
    rows = tree.numbers.shape[1]
    dims = tree.numbers.shape[2] - 1
    require(
        "mirror",
        sorted(found.order) == list(range(dims)),
        sorted(found.action_order) == list(range(rows)),
        (len(found.signs), len(found.action_signs)) == (dims, 0 if tree.listed else rows),
        {*found.signs, *found.action_signs} <= {-1, 1},
    )
    return found


def usable_in_cuts(mirror: Mirror, side: int) -> Bools:
    """Return which observations the cuts of a mirrored tree may use: those that are the same in the mirror.

    Of the observation at `side`, if that is not -1, they use the absolute value.
    """
    same = np.array(mirror.order) == np.arange(len(mirror.order))
    used = np.asarray(same & (np.array(mirror.signs) > 0))
    if side >= 0:
        used[side] = True
    return used


def symmetric_basis(tree: CandidateTree, mirror: Mirror) -> Floats:
    """Return an orthogonal basis of the free numbers with which a tree is its own mirror image, as columns.

    Its cuts must be of what is the same in the mirror. Then so must be the laws of each leaf: the action of a
    mirrored observation is the mirrored action. Of a list of actions the first score is 0, so those of
    mirrored actions are equal but for the score of the first one's image.
    """
    rows, width = tree.numbers.shape[1:]
    signs = np.array([1, *mirror.signs], np.float64)
    order = np.array([0, *(1 + j for j in mirror.order)])
    sides = np.array(mirror.action_signs or (1,) * rows, np.float64)
    columns = []
    for node, row, j in zip(*np.nonzero(tree.free), strict=True):
        number = np.zeros(tree.numbers.shape)
        number[node, row, j] = 1.0
        if tree.left[node] < 0:
            image = np.zeros((rows, width))
            image[mirror.action_order[row]] = sides[row] * signs * number[node, row, order]
            number[node] += image - (image[0] if tree.listed else 0.0)
        columns.append(number[tree.free])
    found: list[Floats] = []
    for column in columns:
        for other in found:
            column = column - other * (column @ other) / (other @ other)
        if (size := np.abs(column).max()) > _NONE:
            found.append(column / size)
    return np.ascontiguousarray(np.array(found).T)


def basis_if_symmetric(tree: CandidateTree, mirror: Mirror) -> Floats | None:
    """Return the basis of `symmetric_basis` for a tree that is its own mirror image; None for others."""
    cuts = tree.left >= 0
    other = np.concatenate([[False], ~usable_in_cuts(mirror, tree.side)])
    if tree.locked.any() or not tree.allowed.all() or tree.numbers[cuts, 0][:, other].any():
        return None
    basis = symmetric_basis(tree, mirror)
    vector = tree.vector
    nearest = nearest_in(basis, vector)
    return basis if np.allclose(nearest, vector, rtol=1e-9, atol=1e-12) else None


def symmetrised(tree: CandidateTree, mirror: Mirror) -> CandidateTree | None:
    """Return the nearest tree that is its own mirror image; None if a cut would have no weights."""
    used = usable_in_cuts(mirror, tree.side)
    numbers = tree.numbers.copy()
    free = tree.free.copy()
    for node in np.flatnonzero(tree.left >= 0):
        numbers[node, 0, 1:] *= used
        if tree.locked.any() or not tree.allowed.all() or not numbers[node, 0, 1:].any():
            return None
        numbers[node, 0], free[node, 0] = in_cut_units(numbers[node, 0], used)
    tree = replace(tree, numbers=numbers, free=free)
    return tree.with_vector(nearest_in(symmetric_basis(tree, mirror), tree.vector))


def nearest_in(basis: Floats, vector: Floats) -> Floats:
    """Return the sum of some orthogonal columns that is nearest to a vector."""
    return np.asarray(basis @ (vector @ basis / (basis * basis).sum(axis=0)))
