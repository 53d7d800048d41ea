"""Conversion of raw observations to the cube [-1, 1]^ds, and of standard actions to raw ones."""

import math
from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit
from spaql.kernels.numerics import Bools, Floats, Ints
from spaql.kernels.partition.balls import coordinate


class StateMap(NamedTuple):
    """How each observation dimension is mapped into [-1, 1].

    An affine dimension becomes (x - center) / scale, cut to [-1, 1]. A squashed one goes through the
    paper's phi_m(y) = 2 / (1 + exp(-2 m y)) - 1 = tanh(m y), with y = x - center and m = 1 / scale.
    """

    center: Floats
    scale: Floats
    squash: Bools


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
def standardise_to(state_map: StateMap, raw: Floats, standard: Floats) -> None:
    """Write one raw observation in standard coordinates; NaN stays NaN."""
    for j in range(raw.shape[0]):
        standard[j] = standardise_one(state_map, j, raw[j])


@njit
def standardise(state_map: StateMap, raw: Floats) -> Floats:
    """Map one raw observation into the cube; NaN stays NaN."""
    standard = np.empty(raw.shape[0])
    standardise_to(state_map, raw, standard)
    return standard


@njit
def misfit(
    batch: Floats,
    low: Floats,
    high: Floats,
    running: Bools,
    ended: Bools,
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
def are_finite(observation: Floats) -> bool:
    """Return whether all numbers of an observation are finite."""
    sound = True
    for j in range(observation.shape[0]):
        sound = sound and math.isfinite(observation[j])
    return sound


@njit
def coordinates_to(standard: Floats, fixed: Ints) -> None:
    """Turn a point of the cube into fixed-point coordinates."""
    for j in range(standard.shape[0]):
        fixed[j] = coordinate(standard[j])


@njit
def coordinates(standard: Floats) -> Ints:
    """Turn a point of the cube into fixed-point coordinates."""
    fixed = np.empty(standard.shape[0], np.int64)
    coordinates_to(standard, fixed)
    return fixed


class ActionMap(NamedTuple):
    """The map from standard to raw actions; a Discrete action is its own index."""

    low: Floats
    high: Floats
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
def raw_actions(action_map: ActionMap, standard: Floats) -> Floats:
    """Return standard actions, one per row, in raw units."""
    raw = np.empty(standard.shape)
    for i in range(standard.shape[0]):
        for j in range(standard.shape[1]):
            raw[i, j] = raw_action(action_map, j, standard[i, j])
    return raw
