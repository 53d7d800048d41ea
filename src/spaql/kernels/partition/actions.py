"""Conversion of standard actions to raw ones."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit


class ActionMap(NamedTuple):
    """The map from standard to raw actions; a Discrete action is its own index."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    levels: int
    """Equidistant levels from low to high in each dimension; 0 for an interval, 1 for Discrete actions."""


@njit
def raw_action(action_map: ActionMap, j: int, standard: float) -> float:
    """Return dimension j of a standard action in raw units, cut to its bounds."""
    low = action_map.low[j]
    high = action_map.high[j]
    if action_map.levels == 0:
        raw = (low + high) / 2 + standard * ((high - low) / 2)
    elif action_map.levels == 1:
        raw = low + standard
    else:
        raw = low + standard * ((high - low) / (action_map.levels - 1))
    return float(min(max(raw, low), high))


@njit
def raw_actions(action_map: ActionMap, standard: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standard actions, one per row, in raw units."""
    raw = np.empty(standard.shape)
    for i in range(standard.shape[0]):
        for j in range(standard.shape[1]):
            raw[i, j] = raw_action(action_map, j, standard[i, j])
    return raw
