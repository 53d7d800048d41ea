"""Greedy balls for batches of observations."""

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit_no_inline
from spaql.kernels.partition.balls import Balls, relevant
from spaql.kernels.partition.equations import greedy
from spaql.kernels.partition.standardise import StateMap, coordinates, standardise


@njit_no_inline
def greedy_balls(
    balls: Balls, root: int, state_map: StateMap, observations: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return, for each raw observation, the relevant ball with the highest Q."""
    chosen = np.empty(observations.shape[0], np.int64)
    for i in range(observations.shape[0]):
        found, count = relevant(balls, root, coordinates(standardise(state_map, observations[i])))
        chosen[i] = found.ball[greedy(balls, found, count)]
    return chosen
