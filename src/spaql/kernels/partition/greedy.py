"""What a partition knows of many states."""

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit_apart
from spaql.kernels.partition.balls import Balls, relevant
from spaql.kernels.partition.equations import greedy
from spaql.kernels.partition.standardise import StateMap, coordinates, standardise


@njit_apart
def greedy_balls(
    balls: Balls, root: int, state_map: StateMap, observations: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Give, for each raw observation, the relevant ball with the highest Q."""
    chosen = np.empty(observations.shape[0], np.int64)
    for i in range(observations.shape[0]):
        found, count = relevant(balls, root, coordinates(standardise(state_map, observations[i])))
        chosen[i] = found.ball[greedy(balls, found, count)]
    return chosen
