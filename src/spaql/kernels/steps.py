"""One step of training, and the greedy choice for a batch of observations."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit
from spaql.kernels.rules import (
    boltzmann,
    draw_action,
    greedy,
    highest_q,
    reference_weight,
    split_when_due,
    update,
)
from spaql.kernels.standard import StateMap, coordinates, standardise
from spaql.kernels.tree import Balls, new_found, relevant

ROOM = 64
"""Relevant balls that a search has room for before it must grow."""


class Rules(NamedTuple):
    """What the update and the choice depend on, beside the partition."""

    horizon: int
    scaling: float
    temperature: float
    """Of Boltzmann sampling; 0 is the greedy choice."""
    reference: NDArray[np.float64]
    """In standard coordinates."""
    reference_std: float
    """Infinite where states are not weighted (AQL and SPAQL)."""
    euclidean: bool
    """Metric of the distance to the reference: Euclidean, or infinity."""


@njit
def choose(
    balls: Balls,
    root: int,
    rules: Rules,
    state: NDArray[np.float64],
    uniforms: NDArray[np.float64],
    action: NDArray[np.float64],
    sizes: NDArray[np.int64],
) -> tuple[int, int]:
    """Choose a ball for a state and draw a standard action from it; gives the ball and its depth.

    The first of `uniforms` chooses the ball, the others the action. The sizes of the ball's action
    ranges go to `sizes`: a split will need them.
    """
    found, count = relevant(balls, root, coordinates(state), new_found(ROOM, balls.action_sizes.shape[0]))
    if rules.temperature > 0.0:
        chosen = boltzmann(balls, found, count, rules.temperature, uniforms[0])
    else:
        chosen = greedy(balls, found, count)
    draw_action(balls.action_sizes, found.low[chosen], found.size[chosen], uniforms[1:], action)
    sizes[:] = found.size[chosen]
    return found.ball[chosen], found.depth[chosen]


@njit
def learn(
    balls: Balls,
    next_root: int,
    rules: Rules,
    ball: int,
    depth: int,
    sizes: NDArray[np.int64],
    state: NDArray[np.float64],
    reward: float,
    next_state: NDArray[np.float64],
) -> bool:
    """Update the ball that was played and split it when due; tells whether it was split.

    V(x') = weight(x) min(H, max Q over RELEVANT(x')), and 0 where `next_root` is -1 (past the horizon).
    """
    value = 0.0
    if next_root >= 0:
        _, highest = highest_q(balls, next_root, coordinates(next_state), new_found(ROOM, sizes.shape[0]))
        value = min(float(rules.horizon), highest)
        if not math.isinf(rules.reference_std):
            value *= reference_weight(state, rules.reference, rules.reference_std, rules.euclidean)
    update(balls, ball, reward, value, rules.horizon, rules.scaling)
    return split_when_due(balls, ball, depth, sizes, state.shape[0])


@njit
def greedy_ranges(
    balls: Balls,
    roots: NDArray[np.int64],
    state_map: StateMap,
    observations: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find the greedy ball of each raw observation: its index, and its action ranges (low, size)."""
    n, dims = observations.shape[0], balls.action_sizes.shape[0]
    chosen = np.empty(n, np.int64)
    low = np.empty((n, dims), np.int64)
    size = np.empty((n, dims), np.int64)
    found = new_found(ROOM, dims)
    for i in range(n):
        state = coordinates(standardise(state_map, observations[i]))
        found, count = relevant(balls, roots[i], state, found)
        best = greedy(balls, found, count)
        chosen[i] = found.ball[best]
        low[i] = found.low[best]
        size[i] = found.size[best]
    return chosen, low, size


@njit
def standard_actions(
    action_sizes: NDArray[np.int64],
    low: NDArray[np.int64],
    size: NDArray[np.int64],
    uniforms: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Draw a standard action from the ranges of each ball, one a row."""
    actions = np.empty(low.shape)
    for i in range(low.shape[0]):
        draw_action(action_sizes, low[i], size[i], uniforms[i], actions[i])
    return actions
