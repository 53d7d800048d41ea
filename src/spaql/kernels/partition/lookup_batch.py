"""Look-up of a flattened policy for batches of raw observations."""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import Fields, njit
from spaql.kernels.partition.actions import ActionMap, raw_action
from spaql.kernels.partition.equations import draw, middle
from spaql.kernels.partition.lookup import Flat, find_leaf


@njit
def central_actions(
    flat: Flat, action_sizes: NDArray[np.int64], action_map: ActionMap
) -> NDArray[np.float64]:
    """Return the central raw action of each leaf, one per row."""
    raw = np.empty((flat.low.shape[0], action_sizes.shape[0]))
    for leaf in range(raw.shape[0]):
        for j in range(raw.shape[1]):
            low = flat.low[leaf, j]
            size = flat.size[leaf, j]
            standard = draw(action_sizes[j], low, size, middle(action_sizes[j]))
            raw[leaf, j] = raw_action(action_map, j, standard)
    return raw


@njit
def look_up(
    fields: Fields, steps: NDArray[np.int64], observations: NDArray[np.float64], leaves: NDArray[np.int64]
) -> int:
    """Write the leaf of each observation at its time step; past the last tree, that of the last tree.

    Returns how many numbers of the actions are random; or -1 - i if observation i holds NaN.
    """
    flat = Flat(*fields)
    choices = 0
    last = flat.roots.shape[0] - 1
    for i in range(observations.shape[0]):
        for j in range(observations.shape[1]):
            if math.isnan(observations[i, j]):
                return -1 - i
        leaf = find_leaf(flat, min(steps[i], last), observations[i], observations.shape[1])
        leaves[i] = leaf
        for j in range(flat.size.shape[1]):
            choices += 1 if flat.size[leaf, j] > 1 else 0
    return choices


@njit
def redraw(
    flat: Flat,
    action_sizes: NDArray[np.int64],
    action_map: ActionMap,
    leaves: NDArray[np.int64],
    uniforms: NDArray[np.float64],
    raw: NDArray[np.float64],
) -> None:
    """Draw the random numbers of raw actions, each from the next of the uniform numbers."""
    spent = 0
    for i in range(raw.shape[0]):
        for j in range(raw.shape[1]):
            low = flat.low[leaves[i], j]
            size = flat.size[leaves[i], j]
            if size > 1:
                raw[i, j] = raw_action(action_map, j, draw(action_sizes[j], low, size, uniforms[spent]))
                spent += 1
