"""Rollouts of a controller in learned plants, for PlanTree."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit, njit_inlined, njit_no_inline
from spaql.kernels.plantree.controllers import ControllerTree, decide
from spaql.kernels.plantree.pwa_model import Floats, Ints, Plant, predict

Bools = NDArray[np.bool_]

NEGLIGIBLE = 1e-3
"""An episode ends when the probability that it continues is below this."""
_EDGE = 0.1
"""Cut of a prediction, in standard deviations of the states, from which on the penalty is due in full."""
_EARLY_STOP = 12
"""Episodes after which an edit without improvement is rejected."""
_NONE: Ints = np.empty(0, np.int64)


class Simulation(NamedTuple):
    """Learned plants, and the starts from which controllers are rolled out in them."""

    plant: Plant
    actions: Floats
    """The plant's inputs for each Discrete action; for a Box only the width matters."""
    starts: Floats
    member: Ints
    """The member of the ensemble for each start."""
    steps: int
    """Most steps of an episode."""
    price: float
    """Penalty on the change of the action from one step to the next."""
    edge: float = 0.0
    """Penalty on a step whose prediction is cut to the box of its cell (see `_EDGE`): it leaves the data."""
    fold: int = -1
    """If not -1, controllers are for the half in which this number is not negative: a state outside of it is
    replaced by its mirror image."""
    mirror: Ints = _NONE
    """The number of a state, from 1 on, that is each number of its image; negative if its sign changes."""
    action_mirror: Ints = _NONE
    """The same for a Box of actions."""


@njit_inlined
def _mirror(places: Ints, numbers: Floats, room: Floats) -> None:
    """Replace numbers by those of their mirror image (see `Simulation.mirror`)."""
    for j in range(places.shape[0]):
        room[j] = numbers[j]
    for j in range(places.shape[0]):
        place = places[j]
        numbers[j] = room[place - 1] if place > 0 else -room[-place - 1]


@njit_no_inline
def play(simulation: Simulation, tree: ControllerTree, start: int, passed: Bools) -> tuple[float, int]:
    """Return the return and the length of an episode; marks the nodes that it passes in `passed`."""
    dims = simulation.starts.shape[1]
    numbers = tree.law.shape[1]
    listed = tree.law.shape[2] == 1
    fold = simulation.fold
    root = simulation.plant.roots[simulation.member[start]]
    z = np.empty(dims)
    room = np.empty(dims + 1)
    action = np.empty(simulation.actions.shape[1])
    before = np.zeros(numbers)
    for j in range(dims):
        z[j] = simulation.starts[start, j]
    for node in range(passed.shape[0]):
        passed[node] = node == 0
    total = 0.0
    alive = 1.0
    for step in range(simulation.steps):
        node = 0
        while tree.feature[node] >= 0:
            node = tree.left[node] + (0 if z[tree.feature[node]] < tree.threshold[node] else 1)
            passed[node] = True
        decide(tree, node, z, simulation.actions, action)
        if not listed:
            for k in range(numbers):
                if step > 0:
                    total -= alive * simulation.price * abs(action[k] - before[k])
                before[k] = action[k]
        chance, reward, cut = predict(simulation.plant, root, z, action, z, room)
        if cut > 0.0 and simulation.edge > 0.0:
            total -= alive * simulation.edge * min(1.0, cut / _EDGE)
        total += alive * reward
        alive *= 1.0 - chance
        if alive < NEGLIGIBLE:
            return total, step + 1
        if fold >= 0 and z[fold] < 0.0:
            _mirror(simulation.mirror, z, room)
            _mirror(simulation.action_mirror, before, action)
    return total, simulation.steps


class Record(NamedTuple):
    """Rollouts of a controller from all starts of a simulation."""

    returns: Floats
    passed: Bools
    """Starts × nodes: the nodes of the controller that an episode passes."""
    new_returns: Floats
    """`returns` and `passed` of the controller with an edit."""
    new_passed: Bools
    steps: Ints
    """Steps of all rollouts so far."""


@njit_no_inline
def improvement(
    simulation: Simulation, tree: ControllerTree, record: Record, node: int, tolerance: float
) -> float:
    """Repeat the episodes that pass an edited node; returns the change of the mean return.

    Returns minus infinity as soon as the episodes show a loss beyond the tolerance.
    """
    total = 0.0
    squares = 0.0
    count = 0
    starts = simulation.starts.shape[0]
    for i in range(starts):
        if record.passed[i, node]:
            record.new_returns[i], steps = play(simulation, tree, i, record.new_passed[i])
            record.steps[0] += steps
            difference = record.new_returns[i] - record.returns[i]
            total += difference
            squares += difference * difference
            count += 1
            if tolerance == 0.0 and count == _EARLY_STOP and total <= 0.0:
                return -np.inf
            if count & (count - 1) == 0 and count >= 8:
                lost = -2.0 * tolerance * starts
                if total < lost and total < -1.5 * math.sqrt(squares):
                    return -np.inf
    return float(total / starts)


@njit
def accept(record: Record, node: int) -> None:
    """Make the rollouts with the edit of a node the current ones."""
    for i in range(record.returns.shape[0]):
        if record.passed[i, node]:
            record.returns[i] = record.new_returns[i]
            for k in range(record.passed.shape[1]):
                record.passed[i, k] = record.new_passed[i, k]


def play_and_record(simulation: Simulation, tree: ControllerTree) -> Record:
    """Roll out a controller from every start."""
    starts = len(simulation.starts)
    nodes = len(tree.feature)
    passed = np.zeros((starts, nodes), np.bool_)
    passed[:, 0] = True
    record = Record(np.zeros(starts), passed, np.zeros(starts), np.zeros_like(passed), np.zeros(1, np.int64))
    improvement(simulation, tree, record, 0, np.inf)
    return record._replace(returns=record.new_returns.copy(), passed=record.new_passed.copy())


def play_all(simulation: Simulation, tree: ControllerTree) -> Floats:
    """Return the return from every start."""
    return play_and_record(simulation, tree).returns
