"""Improving a controller inside learned plants, for PlanTree: polish and prune."""

import math
from typing import NamedTuple

import numpy as np

from spaql.kernels.controllers import Controller, reach
from spaql.kernels.games import Bools, Game, play
from spaql.kernels.jit import njit, njit_apart
from spaql.kernels.plants import Floats, Ints

_FIRST_LOOK = 12
"""Episodes after which an edit that gains nothing is given up."""
_RISE, _FALL = 1.5, 0.7
"""How the step of a parameter changes after a gain, and without one."""
_LONGEST, _SHORTEST = 4.0, 1e-3


class Marks(NamedTuple):
    """How a controller fares in a game."""

    returns: Floats
    passed: Bools
    """Starts × nodes: which nodes of the controller an episode passes."""
    new_returns: Floats
    new_passed: Bools
    lengths: Ints
    """Of each episode, and how many steps were spent in all."""


@njit_apart
def _new_marks(game: Game, tree: Controller) -> Marks:
    starts, nodes = game.starts.shape[0], tree.feature.shape[0]
    marks = Marks(
        np.empty(starts),
        np.zeros((starts, nodes), np.bool_),
        np.empty(starts),
        np.zeros((starts, nodes), np.bool_),
        np.zeros(starts + 1, np.int64),
    )
    for i in range(starts):
        marks.returns[i], steps = play(game, tree, i, marks.passed[i])
        marks.lengths[-1] += steps
    return marks


@njit_apart
def _gain(game: Game, tree: Controller, marks: Marks, node: int, floor: float) -> float:
    """Play the episodes that pass an edited node again; gives what the mean return gains, 0 if none passes.

    Gives up, with minus infinity, when the first episodes show a loss beyond the floor.
    """
    total, squares, count = 0.0, 0.0, 0
    starts = game.starts.shape[0]
    for i in range(starts):
        if marks.passed[i, node]:
            marks.new_returns[i], steps = play(game, tree, i, marks.new_passed[i])
            marks.lengths[-1] += steps
            difference = marks.new_returns[i] - marks.returns[i]
            total += difference
            squares += difference * difference
            count += 1
            if floor == 0.0 and count == _FIRST_LOOK and total <= 0.0:
                return -np.inf
            if count & (count - 1) == 0 and count >= 8:
                lost = -2.0 * floor * starts
                if total < lost and total < -1.5 * math.sqrt(squares):
                    return -np.inf
    return float(total / starts)


@njit
def _keep(marks: Marks, node: int) -> None:
    for i in range(marks.returns.shape[0]):
        if marks.passed[i, node]:
            marks.returns[i] = marks.new_returns[i]
            marks.passed[i] = marks.new_passed[i]


@njit
def _better(game: Game, tree: Controller, marks: Marks, node: int) -> bool:
    """Keep an edit of a node if it gains; tells whether it did."""
    if _gain(game, tree, marks, node, 0.0) > 0.0:
        _keep(marks, node)
        return True
    return False


@njit_apart
def _polish_choice(game: Game, tree: Controller, marks: Marks, leaf: int) -> None:
    """Try every other action in a leaf."""
    was = int(tree.law[leaf, 0, 0])
    for action in range(game.actions.shape[0]):
        before = tree.law[leaf, 0, 0]
        if action not in (was, int(before)):
            tree.law[leaf, 0, 0] = action
            if not _better(game, tree, marks, leaf):
                tree.law[leaf, 0, 0] = before


@njit_apart
def _polish_law(
    game: Game, tree: Controller, marks: Marks, leaf: int, strides: Floats, rng: np.random.Generator
) -> None:
    """Move the numbers of a law, one by one and then together, there or back."""
    numbers, inputs = tree.law.shape[1], tree.law.shape[2]
    each = numbers * inputs
    before, move = np.empty((numbers, inputs)), np.empty((numbers, inputs))
    for turn in range(2 * each):
        before[:] = tree.law[leaf]
        at = min(turn, each)
        if turn < each:
            move[:] = 0.0
            sign = 1.0 if rng.random() < 0.5 else -1.0
            move[turn // inputs, turn % inputs] = sign * strides[at] * (0.5 + rng.random())
        else:
            for k in range(numbers):
                for j in range(inputs):
                    move[k, j] = 0.7 * strides[at] * rng.standard_normal()
        tree.law[leaf] = before + move
        gained = _better(game, tree, marks, leaf)
        if not gained:
            tree.law[leaf] = before - move
            gained = _better(game, tree, marks, leaf)
        if not gained:
            tree.law[leaf] = before
        strides[at] = min(max(strides[at] * (_RISE if gained else _FALL), _SHORTEST), _LONGEST)


@njit_apart
def _polish_cut(
    game: Game, tree: Controller, marks: Marks, node: int, strides: Floats, rng: np.random.Generator
) -> None:
    """Move a cut there or back, twice."""
    for _ in range(2):
        before, move = tree.threshold[node], strides[-1] * rng.standard_normal()
        gained = False
        for sign in range(2):
            tree.threshold[node] = before + (move if sign == 0 else -move)
            gained = _better(game, tree, marks, node)
            if gained:
                break
        if not gained:
            tree.threshold[node] = before
        strides[-1] = min(max(strides[-1] * (_RISE if gained else _FALL), _SHORTEST), 0.5)


@njit_apart
def polish(game: Game, tree: Controller, budget: int, rng: np.random.Generator) -> float:
    """Edit leaves and cuts, one at a time, and keep what gains; gives the mean return in the game.

    Spends about `budget` steps of the learned plants.
    """
    nodes = tree.feature.shape[0]
    marks, order = _new_marks(game, tree), np.empty(nodes, np.int64)
    strides = np.full((nodes, tree.law.shape[1] * tree.law.shape[2] + 2), 0.3)
    while marks.lengths[-1] < budget:
        count = reach(tree, order)
        shuffled = rng.permutation(count)
        spent = marks.lengths[-1]
        for i in range(count):
            node = order[shuffled[i]]
            if tree.feature[node] >= 0:
                _polish_cut(game, tree, marks, node, strides[node], rng)
            elif tree.law.shape[2] == 1:
                _polish_choice(game, tree, marks, node)
            else:
                _polish_law(game, tree, marks, node, strides[node], rng)
            if marks.lengths[-1] >= budget:
                break
        if marks.lengths[-1] == spent:
            break
    return float(marks.returns.mean())


@njit
def _remove(tree: Controller, node: int, way: int) -> None:
    """Put a child (way 0 or 1) in the place of a node, or a leaf with the mean of two leaves' laws (2)."""
    child = tree.left[node]
    if way < 2:
        kept = child + way
        tree.law[node] = tree.law[kept]
        tree.threshold[node], tree.left[node] = tree.threshold[kept], tree.left[kept]
        tree.feature[node] = tree.feature[kept]
    else:
        tree.law[node] = 0.5 * (tree.law[child] + tree.law[child + 1])
        tree.feature[node] = -1


@njit_apart
def prune(game: Game, tree: Controller, leaves: int, skip: int) -> int:
    """Remove up to so many leaves whose removal costs least, judged one at a time; gives how many.

    `skip` leaves out the cheapest ones, for another way to the same size.
    """
    nodes = tree.feature.shape[0]
    marks, order = _new_marks(game, tree), np.empty(nodes, np.int64)
    count = reach(tree, order)
    cost, ways = np.full(count, np.inf), np.zeros(count, np.int64)
    law = np.empty(tree.law[0].shape)
    for i in range(count):
        node = order[i]
        feature, threshold, child = tree.feature[node], tree.threshold[node], tree.left[node]
        if feature < 0:
            continue
        law[:] = tree.law[node]
        for way in range(3):
            if way == 2:
                possible = tree.feature[child] < 0 and tree.feature[child + 1] < 0 and law.size > 1
            else:
                possible = tree.feature[child + 1 - way] < 0  # the other one is a leaf
            if possible:
                _remove(tree, node, way)
                loss = -_gain(game, tree, marks, node, np.inf)
                tree.feature[node], tree.threshold[node], tree.left[node] = feature, threshold, child
                tree.law[node] = law
                if loss < cost[i]:
                    cost[i], ways[i] = loss, way
    touched, removed = np.zeros(nodes, np.bool_), 0
    cheapest = np.argsort(cost)
    for i in range(count):
        node = order[cheapest[i]]
        if removed >= leaves or not np.isfinite(cost[cheapest[i]]):
            break
        child = tree.left[node]
        if touched[node] or touched[child] or touched[child + 1]:
            continue
        if skip > 0:
            skip -= 1
            continue
        _remove(tree, node, ways[cheapest[i]])
        touched[node] = touched[child] = touched[child + 1] = True
        if tree.feature[node] >= 0:
            touched[tree.left[node]] = touched[tree.left[node] + 1] = True
        removed += 1
    return removed
