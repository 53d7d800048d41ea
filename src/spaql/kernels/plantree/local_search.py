"""Local search of controllers by rollouts in learned plants, for PlanTree: polish and prune."""

import numpy as np

from spaql.kernels.jit import njit_no_inline
from spaql.kernels.plantree.controllers import ControllerTree, reached
from spaql.kernels.plantree.pwa_model import Floats
from spaql.kernels.plantree.rollout import Record, Simulation, accept, improvement, play_and_record

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
    rng: np.random.Generator,
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


def polish(simulation: Simulation, tree: ControllerTree, budget: int, rng: np.random.Generator) -> Floats:
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
