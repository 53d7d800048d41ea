"""The learned plant: cells, each with an affine law of motion and a box of the next states seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.replay.encoding import ActionCode, Scale
from spaql.algorithms.replay.exact_sums import mean, moments
from spaql.algorithms.replay.memory import Floats, Memory
from spaql.algorithms.replay.termination import fit_termination
from spaql.kernels.plantree.pwa_model import Plant, cell_boxes, find_all, grow_motion

LEAST = 30
"""Fewest samples of a cell."""
EXACT = 1e-5
"""A cell is not cut if its scaled squared error is below this."""
RIDGE = 0.01
CAUTIOUS = 0.5
"""The margin around the states seen, of a plant for the final plan."""
BOLD = 1.0
"""The same of a plant for exploration, in which unknown states are reachable."""
_FAR = 1e9
_PART = 0.95
"""Share of the samples to which a member of the ensemble is fitted."""


def fit_plant(
    memory: Memory,
    scale: Scale,
    code: ActionCode,
    samples: list[NDArray[np.int64]],
    *,
    squares: bool,
    margin: float,
    least: int = LEAST,
) -> Plant:
    """Return a plant with one tree of cells for each list of samples, which are rows of the memory.

    Cells have at least `least` samples. Predictions of a cell are cut to the range of its next states, plus a
    margin as a share of that. Steps that end an episode are used for the termination tree only, because their
    reward differs.
    """
    z = scale.z(memory.states)
    after = scale.z(memory.nexts)
    x = np.concatenate([np.ones((len(z), 1)), z, code.inputs(memory.actions, squares=squares)], axis=1)
    y = np.concatenate([after - z, memory.rewards[:, np.newaxis]], axis=1)
    going = ~memory.ended
    spread = moments(y[going])[1] + 1e-9
    dims = z.shape[1]
    trees = []
    for rows in samples:
        kept = rows[going[rows]]
        feature, threshold, left, law = grow_motion(x[kept], y[kept] / spread, dims, least, EXACT, RIDGE)
        law = np.ascontiguousarray((law * spread).transpose(0, 2, 1))
        law[:, np.arange(dims), 1 + np.arange(dims)] += 1.0  # from the change of a state to the next state
        boxes = _boxes(find_all(feature, threshold, left, 0, z), len(feature), after, margin)
        trees.append((feature, threshold, left, law, *boxes))
    roots = np.cumsum([0, *(len(tree[0]) for tree in trees[:-1])])
    shifted = [(tree[0], tree[1], tree[2] + root, *tree[3:]) for tree, root in zip(trees, roots, strict=True)]
    joined = [np.concatenate(parts) for parts in zip(*shifted, strict=True)]
    rewards = memory.rewards
    ended = memory.ended
    known = memory.known_ends
    last = mean(rewards[ended]) if ended.any() else known.reward if known is not None else 0.0
    seen = np.array([rewards.min(), rewards.max(), last])
    if known is not None:
        after = np.concatenate([after, scale.z(known.points)])
        ended = np.concatenate([ended, known.ended])
    return Plant._make([roots, *joined, seen, *fit_termination(after, ended)])


def _boxes(
    cells: NDArray[np.int64], count: int, after: Floats, margin: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, for every cell, the mean of its next states, their principal axes, and the range along each."""
    dims = after.shape[1]
    size = np.zeros(count, np.int64)
    centre = np.zeros((count, dims))
    axes = np.zeros((count, dims, dims))
    low = np.zeros((count, dims))
    high = np.zeros((count, dims))
    cell_boxes(cells, after, size, centre, axes, low, high)
    seen = (size > 0)[:, np.newaxis]
    wide = margin * (high - low)
    return centre, axes, np.where(seen, low - wide, -_FAR), np.where(seen, high + wide, _FAR)


def draw_samples(count: int, members: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Draw the samples of an ensemble: all for the first member, a large part for each other."""
    part = max(1, int(_PART * count))
    return [np.arange(count), *(np.sort(rng.permutation(count)[:part]) for _ in range(members - 1))]
