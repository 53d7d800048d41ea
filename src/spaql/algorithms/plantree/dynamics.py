"""The plant: dynamics cells, each with an affine law of motion and a box of what was seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.plantree.coding import ActionCode, Scale
from spaql.algorithms.plantree.memory import Floats, Memory
from spaql.algorithms.plantree.termination import fit_ends
from spaql.kernels.plants import Plant, extents, find_all, grow_motion

_LEAST = 30
"""Samples of a cell, at least."""
_EXACT = 1e-5
"""A cell is cut no more when its scaled squared error is below this."""
_RIDGE = 0.01
_MARGIN = 0.05
"""How far beyond what was seen a prediction may go, as a share of it."""
_FAR = 1e9
_PART = 0.8
"""Share of the samples that a member of an ensemble is fitted to."""


def fit_plant(
    memory: Memory,
    scale: Scale,
    code: ActionCode,
    samples: list[NDArray[np.int64]],
    *,
    squares: bool,
    cautious: bool,
) -> Plant:
    """Fit a plant with one tree of dynamics cells for each list of samples, rows of the memory.

    A cautious plant keeps its predictions to what was seen in each cell. One to explore by must not, or
    nothing unknown would ever be in sight: it keeps them to the box of all that was seen. Steps that end an
    episode teach the termination tree alone: their reward is another.
    """
    z, after = scale.z(memory.states), scale.z(memory.nexts)
    x = np.concatenate([np.ones((len(z), 1)), z, code.inputs(memory.actions, squares=squares)], axis=1)
    y = np.concatenate([after - z, memory.rewards[:, np.newaxis]], axis=1)
    going = ~memory.ended
    spread = y[going].std(axis=0) + 1e-9
    dims = z.shape[1]
    trees = []
    for rows in samples:
        kept = rows[going[rows]]
        feature, threshold, left, law = grow_motion(x[kept], y[kept] / spread, dims, _LEAST, _EXACT, _RIDGE)
        law = np.ascontiguousarray((law * spread).transpose(0, 2, 1))
        law[:, np.arange(dims), 1 + np.arange(dims)] += 1.0  # the change of a state becomes the next state
        if cautious:
            boxes = _boxes(find_all(feature, threshold, left, 0, z), len(feature), after)
        else:
            boxes = _one_box(len(feature), z, after)
        trees.append((feature, threshold, left, law, *boxes))
    roots = np.cumsum([0, *(len(tree[0]) for tree in trees[:-1])])
    shifted = [(tree[0], tree[1], tree[2] + root, *tree[3:]) for tree, root in zip(trees, roots, strict=True)]
    joined = [np.concatenate(parts) for parts in zip(*shifted, strict=True)]
    rewards = memory.rewards
    last = rewards[memory.ended].mean() if memory.ended.any() else 0.0
    seen = np.array([rewards.min(), rewards.max(), last])
    return Plant._make([roots, *joined, seen, *fit_ends(after, memory.ended)])


def _boxes(cells: NDArray[np.int64], count: int, after: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Give, for every cell, the mean of its next states, their principal axes, and the range along each."""
    dims = after.shape[1]
    size = np.maximum(np.bincount(cells, minlength=count), 1)
    centre = np.zeros((count, dims))
    np.add.at(centre, cells, after)
    centre /= size[:, np.newaxis]
    apart = after - centre[cells]
    spread = np.zeros((count, dims, dims))
    np.add.at(spread, cells, apart[:, :, np.newaxis] * apart[:, np.newaxis, :])
    axes = np.ascontiguousarray(
        np.linalg.eigh(spread / size[:, np.newaxis, np.newaxis])[1].transpose(0, 2, 1)
    )
    low, high = np.full((count, dims), np.inf), np.full((count, dims), -np.inf)
    extents(cells, after, centre, axes, low, high)
    seen = np.isfinite(low)
    margin = _MARGIN * np.where(seen, high - low, 0.0)
    return centre, axes, np.where(seen, low - margin, -_FAR), np.where(seen, high + margin, _FAR)


def _one_box(count: int, z: Floats, after: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Give the box of all that was seen, for every cell."""
    low, high = np.minimum(z.min(axis=0), after.min(axis=0)), np.maximum(z.max(axis=0), after.max(axis=0))
    margin = _MARGIN * (high - low)
    axes = np.tile(np.eye(len(low)), (count, 1, 1))
    return (
        np.zeros((count, len(low))),
        axes,
        np.tile(low - margin, (count, 1)),
        np.tile(high + margin, (count, 1)),
    )


def draw_samples(count: int, members: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Draw the samples of an ensemble: all, then a large part of them for each other member."""
    part = max(1, int(_PART * count))
    return [np.arange(count), *(np.sort(rng.permutation(count)[:part]) for _ in range(members - 1))]
