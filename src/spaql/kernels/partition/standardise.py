"""Standardisation of raw observations to the cube [-1, 1]^ds."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit
from spaql.kernels.partition.balls import coordinate


class StateMap(NamedTuple):
    """How each observation dimension is mapped into [-1, 1].

    An affine dimension becomes (x - center) / scale, cut to [-1, 1]. A squashed one goes through the
    paper's phi_m(y) = 2 / (1 + exp(-2 m y)) - 1 = tanh(m y), with y = x - center and m = 1 / scale.
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    squash: NDArray[np.bool_]


@njit
def standardise_one(state_map: StateMap, j: int, raw: float) -> float:
    """Return dimension j of a raw observation mapped into [-1, 1]; NaN stays NaN."""
    x = float((raw - state_map.center[j]) / state_map.scale[j])
    if state_map.squash[j]:
        return math.tanh(x)
    if x < -1.0:
        return -1.0
    if x > 1.0:
        return 1.0
    return x


@njit
def standardise_to(state_map: StateMap, raw: NDArray[np.float64], standard: NDArray[np.float64]) -> None:
    """Write one raw observation in standard coordinates; NaN stays NaN."""
    for j in range(raw.shape[0]):
        standard[j] = standardise_one(state_map, j, raw[j])


@njit
def standardise(state_map: StateMap, raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map one raw observation into the cube; NaN stays NaN."""
    standard = np.empty(raw.shape[0])
    standardise_to(state_map, raw, standard)
    return standard


@njit
def misfit(
    batch: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    running: NDArray[np.bool_],
    ended: NDArray[np.bool_],
) -> int:
    """Return the index of the first number of a batch of observations that is not finite or out of bounds.

    Returns -1 if there is none. Observations of episodes that are not running are skipped, and those of
    episodes that have ended may be out of bounds.
    """
    for i in range(batch.shape[0]):
        for j in range(batch.shape[1]):
            x = batch[i, j]
            if running[i] and (not math.isfinite(x) or not (ended[i] or low[j] <= x <= high[j])):
                return int(i * batch.shape[1] + j)
    return -1


@njit
def are_finite(observation: NDArray[np.float64]) -> bool:
    """Return whether all numbers of an observation are finite."""
    sound = True
    for j in range(observation.shape[0]):
        sound = sound and math.isfinite(observation[j])
    return sound


@njit
def coordinates_to(standard: NDArray[np.float64], fixed: NDArray[np.int64]) -> None:
    """Turn a point of the cube into fixed-point coordinates."""
    for j in range(standard.shape[0]):
        fixed[j] = coordinate(standard[j])


@njit
def coordinates(standard: NDArray[np.float64]) -> NDArray[np.int64]:
    """Turn a point of the cube into fixed-point coordinates."""
    fixed = np.empty(standard.shape[0], np.int64)
    coordinates_to(standard, fixed)
    return fixed
