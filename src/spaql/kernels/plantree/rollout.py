"""Rollouts of a controller in learned plants, and its local search by them: polish and prune."""

import math
from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit, njit_inlined, njit_no_inline
from spaql.kernels.numerics import Bools, Floats, Ints, Rng
from spaql.kernels.plantree.controllers import ControllerTree, decide, reached
from spaql.kernels.plantree.pwa_model import PlantEnsemble, predict

NEGLIGIBLE = 1e-3
"""An episode ends when the probability that it continues is below this."""
_EDGE = 0.1
"""Cut of a prediction, in standard deviations of the states, from which on the penalty is due in full."""
_EARLY_STOP = 12
"""Episodes after which an edit without improvement is rejected."""
_NONE: Ints = np.empty(0, np.int64)


class Simulation(NamedTuple):
    """Learned plants, and the starts from which controllers are rolled out in them."""

    plant: PlantEnsemble
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


_RISE, _FALL = 1.5, 0.7
"""Factors on the step size of a parameter after an improvement, and without one."""
_LONGEST = 4.0
_LONGEST_CUT = 0.5
_SHORTEST = 1e-3


@njit_no_inline
def polish_node(
    simulation: Simulation,
    tree: ControllerTree,
    record: Record,
    node: int,
    strides: Floats,
    rng: Rng,
) -> None:
    """Try edits of a node one after the other, and accept those that improve the mean return.

    A threshold is moved twice, in either direction. The numbers of a law are moved one by one and then
    together, in either direction. Of Discrete actions every other one is tried.
    """
    numbers = tree.law.shape[1]
    inputs = tree.law.shape[2]
    each = numbers * inputs
    cut = tree.feature[node] >= 0
    listed = inputs == 1
    law = np.empty((numbers, inputs))
    move = np.empty((numbers, inputs))
    first = tree.law[node, 0, 0]
    turns = 2 if cut else simulation.actions.shape[0] if listed else 2 * each
    for turn in range(turns):
        threshold = tree.threshold[node]
        shift = 0.0
        tries = 2
        at = min(turn, each)
        for k in range(numbers):
            for j in range(inputs):
                law[k, j] = tree.law[node, k, j]
                move[k, j] = 0.0
        if cut:
            at = each + 1
            shift = strides[node, at] * rng.standard_normal()
        elif listed:
            if turn == first or turn == law[0, 0]:
                continue
            move[0, 0] = turn - law[0, 0]
            tries = 1
        elif turn < each:
            sign = 1.0 if rng.random() < 0.5 else -1.0
            move[turn // inputs, turn % inputs] = sign * strides[node, at] * (0.5 + rng.random())
        else:
            for k in range(numbers):
                for j in range(inputs):
                    move[k, j] = 0.7 * strides[node, at] * rng.standard_normal()
        gained = False
        way = 1.0
        for _ in range(tries):
            tree.threshold[node] = threshold + way * shift
            for k in range(numbers):
                for j in range(inputs):
                    tree.law[node, k, j] = law[k, j] + way * move[k, j]
            gained = improvement(simulation, tree, record, node, 0.0) > 0.0
            if gained:
                accept(record, node)
                break
            way = -1.0
        if not gained:
            tree.threshold[node] = threshold
            for k in range(numbers):
                for j in range(inputs):
                    tree.law[node, k, j] = law[k, j]
        stride = strides[node, at] * (_RISE if gained else _FALL)
        strides[node, at] = min(max(stride, _SHORTEST), _LONGEST_CUT if cut else _LONGEST)


def polish(simulation: Simulation, tree: ControllerTree, budget: int, rng: Rng) -> Floats:
    """Edit leaves and thresholds one at a time, and accept improvements; returns the return from every start.

    Takes about `budget` steps in the learned plants.
    """
    record = play_and_record(simulation, tree)
    spent = -1
    strides = np.full((len(tree.feature), tree.law[0].size + 2), 0.3)
    while spent < record.steps[0] < budget:
        spent = int(record.steps[0])
        for node in rng.permutation(reached(tree)):
            polish_node(simulation, tree, record, node, strides, rng)
            if record.steps[0] >= budget:
                break
    return record.returns


def _remove(tree: ControllerTree, node: int, way: int) -> None:
    """Replace a node by a child (way 0 or 1), or by a leaf with the mean of its two leaves' laws (2)."""
    child = tree.left[node]
    if way < 2:
        for array in tree:
            array[node] = array[child + way]
    else:
        tree.feature[node] = -1
        tree.law[node] = 0.5 * (tree.law[child] + tree.law[child + 1])


def _removals(tree: ControllerTree, node: int) -> list[int]:
    """Return the ways (see `_remove`) in which a node can be removed together with one leaf."""
    if tree.feature[node] < 0:
        return []
    leaf = tree.feature[tree.left[node] + np.arange(2)] < 0
    ways = [way for way in range(2) if leaf[1 - way]]
    return [*ways, 2] if leaf.all() and tree.law[node].size > 1 else ways


def prune(simulation: Simulation, tree: ControllerTree, leaves: int, skip: int) -> int:
    """Remove up to so many leaves, those whose removal alone costs least; returns how many.

    `skip` leaves out the cheapest removals, for another tree of the same size.
    """
    record = play_and_record(simulation, tree)
    costs = []
    for place, node in enumerate(reached(tree)):
        before = [np.array(array[node]) for array in tree]
        for way in _removals(tree, node):
            _remove(tree, node, way)
            costs.append((-improvement(simulation, tree, record, node, np.inf), place, way, node))
            for array, value in zip(tree, before, strict=True):
                array[node] = value
    touched: set[int] = set()
    removed = 0
    for _, _, way, node in sorted(costs):
        child = int(tree.left[node])
        if removed == leaves:
            break
        if not touched.isdisjoint((node, child, child + 1)):
            continue
        if skip > 0:
            skip -= 1
            touched.add(node)
            continue
        _remove(tree, node, way)
        touched.update((node, child, child + 1))
        if tree.feature[node] >= 0:
            touched.update((int(tree.left[node]), int(tree.left[node]) + 1))
        removed += 1
    return removed
