"""A learned plant in raw units, for use outside PlanTree."""

from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit, njit_no_inline
from spaql.kernels.numerics import Floats, Ints
from spaql.kernels.plantree.pwa_model import apply_laws, quadratic_score


class RawPlant(NamedTuple):
    """Cells with an affine law each, and the termination tree.

    Both trees are parallel arrays with node 0 as the root and children after their parents. A state goes to
    the left child if the number that the node tests is below its threshold.
    """

    feature: Ints
    """The number of an observation that a node tests; -1 for a cell."""
    threshold: Floats
    left: Ints
    right: Ints
    cell: Ints
    """The row of a cell in the tables below; -1 for other nodes."""
    law: Floats
    """Cells × outputs × [1, observation, inputs]; the outputs are the next observation, then the reward."""
    centre: Floats
    """The mean of the next observations of each cell."""
    axes: Floats
    """The principal axes of the next observations of each cell, one per row, in units of `scale`."""
    low: Floats
    """Lower bound of a prediction along each axis, from the centre, in units of `scale`."""
    high: Floats
    scale: Floats
    """The standard deviation of each number of an observation."""
    rewards: Floats
    """The lowest and highest reward seen, and the mean reward of the steps that end an episode."""
    end_feature: Ints
    """The number of a next observation that a node tests; the score counts as one more number."""
    end_threshold: Floats
    end_left: Ints
    end_right: Ints
    end_chance: Floats
    """Termination probability of each node."""
    end_score: Floats
    """Weights of 1, the numbers of an observation, and their pairwise products; empty without a score."""


@njit
def find(plant: RawPlant, state: Floats) -> int:
    """Return the cell of a state."""
    node = 0
    while plant.feature[node] >= 0:
        below = state[plant.feature[node]] < plant.threshold[node]
        node = plant.left[node] if below else plant.right[node]
    return int(plant.cell[node])


@njit
def _cut(plant: RawPlant, cell: int, after: Floats) -> None:
    """Cut a prediction to the box of its cell; the axes are orthogonal, so that each is cut independently."""
    dims = after.shape[0]
    for k in range(dims):
        along = 0.0
        for j in range(dims):
            along += plant.axes[cell, k, j] * ((after[j] - plant.centre[cell, j]) / plant.scale[j])
        over = along - min(max(along, plant.low[cell, k]), plant.high[cell, k])
        if over != 0.0:
            for j in range(dims):
                after[j] -= over * plant.axes[cell, k, j] * plant.scale[j]


@njit
def end_chance(plant: RawPlant, after: Floats) -> float:
    """Return the probability that an episode ends in a state."""
    dims = after.shape[0]
    score = quadratic_score(plant.end_score, after)
    node = 0
    while plant.end_feature[node] >= 0:
        look = score if plant.end_feature[node] == dims else after[plant.end_feature[node]]
        node = plant.end_left[node] if look < plant.end_threshold[node] else plant.end_right[node]
    return float(plant.end_chance[node])


@njit_no_inline
def find_cells(plant: RawPlant, states: Floats) -> Ints:
    """Return the cell of each state."""
    cells = np.empty(states.shape[0], np.int64)
    for i in range(states.shape[0]):
        cells[i] = find(plant, states[i])
    return cells


@njit_no_inline
def predict_all(plant: RawPlant, states: Floats, inputs: Floats) -> tuple[Floats, Floats, Floats]:
    """Return, per row, the next state, the reward if not terminated, and the termination probability."""
    count, dims = states.shape
    outputs = np.empty(dims + 1)
    nexts = np.empty((count, dims))
    rewards = np.empty(count)
    chances = np.empty(count)
    for i in range(count):
        cell = find(plant, states[i])
        apply_laws(plant.law[cell], states[i], inputs[i], outputs)
        for k in range(dims):
            nexts[i, k] = outputs[k]
        rewards[i] = min(max(outputs[dims], plant.rewards[0]), plant.rewards[1])
        _cut(plant, cell, nexts[i])
        chances[i] = end_chance(plant, nexts[i])
    return nexts, rewards, chances
