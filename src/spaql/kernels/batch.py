"""The actions of a flattened policy for a batch of raw observations."""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.actions import ActionMap, raw_action
from spaql.kernels.flat import Flat, find_leaf
from spaql.kernels.jit import njit
from spaql.kernels.rules import draw, middle


@njit
def act(
    flat: Flat,
    trees: NDArray[np.int64],
    observations: NDArray[np.float64],
    action_sizes: NDArray[np.int64],
    action_map: ActionMap,
    leaves: NDArray[np.int64],
    raw: NDArray[np.float64],
) -> int:
    """Give the raw actions in the middle of what each observation's leaf allows, one a row.

    Tells how many of their numbers could have been drawn instead; or -1 - i if observation i holds NaN.
    """
    choices = 0
    for i in range(observations.shape[0]):
        for j in range(observations.shape[1]):
            if math.isnan(observations[i, j]):
                return -1 - i
        leaf = find_leaf(flat, trees[i], observations[i], observations.shape[1])
        leaves[i] = leaf
        for j in range(raw.shape[1]):
            low, size = flat.low[leaf, j], flat.size[leaf, j]
            standard = draw(action_sizes[j], low, size, middle(action_sizes[j]))
            raw[i, j] = raw_action(action_map, j, standard)
            choices += 1 if size > 1 else 0
    return choices


@njit
def draw_again(
    flat: Flat,
    action_sizes: NDArray[np.int64],
    action_map: ActionMap,
    leaves: NDArray[np.int64],
    uniforms: NDArray[np.float64],
    raw: NDArray[np.float64],
) -> None:
    """Draw the numbers of raw actions that can be drawn, each with the next of the uniform numbers."""
    spent = 0
    for i in range(raw.shape[0]):
        for j in range(raw.shape[1]):
            low, size = flat.low[leaves[i], j], flat.size[leaves[i], j]
            if size > 1:
                raw[i, j] = raw_action(action_map, j, draw(action_sizes[j], low, size, uniforms[spent]))
                spent += 1
