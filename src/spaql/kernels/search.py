"""Improving a controller inside learned plants, for PlanTree: play, prune, polish."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.controllers import Controller, reach
from spaql.kernels.jit import njit, njit_apart
from spaql.kernels.plants import Floats, Ints, Plant

Bools = NDArray[np.bool_]

_OVER = 1e-3
"""Below this chance of going on, an episode is over."""
_FIRST_LOOK = 12
"""Episodes after which an edit that gains nothing is given up."""
_RISE, _FALL = 1.5, 0.7
"""How the step of a parameter changes after a gain, and without one."""
_LONGEST, _SHORTEST = 4.0, 1e-3


class Game(NamedTuple):
    """Where controllers are judged: starts, each in one of the learned plants."""

    plant: Plant
    actions: Floats
    """What the plant takes as each of the listed actions; for a Box only the width matters."""
    starts: Floats
    member: Ints
    """Which plant of the ensemble each start is played in."""
    steps: int
    """The longest episode."""
    price: float
    """Of a change of the action from one step to the next."""


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
def play(game: Game, tree: Controller, start: int, passed: Bools) -> tuple[float, int]:
    """Give the return and the length of an episode; marks the nodes that it passes.

    What it does at a step is `control` and `predict`, written out: a call costs as much as the step.
    """
    roots, feature, threshold, left, laws, centre, axes, low, high, rewards = game.plant[:10]
    end_feature, end_threshold, end_left, end_chance, end_score = game.plant[10:]
    actions, price, rules = game.actions, game.price, tree.law
    dims, inputs, numbers = game.starts.shape[1], actions.shape[1], rules.shape[1]
    z, moved, action, before = (
        game.starts[start].copy(),
        np.empty(dims + 1),
        np.empty(inputs),
        np.zeros(numbers),
    )
    tree_feature, tree_threshold, tree_left = tree.feature, tree.threshold, tree.left
    listed, squares, root = rules.shape[2] == 1, inputs > numbers, roots[game.member[start]]
    passed[:] = False
    passed[0] = True
    total, going = 0.0, 1.0
    for step in range(game.steps):
        node = 0
        while tree_feature[node] >= 0:
            node = tree_left[node] + (0 if z[tree_feature[node]] < tree_threshold[node] else 1)
            passed[node] = True
        if listed:
            choice = int(rules[node, 0, 0])
            for k in range(inputs):
                action[k] = actions[choice, k]
        else:
            for k in range(numbers):
                u = rules[node, k, 0]
                for j in range(dims):
                    u += rules[node, k, 1 + j] * z[j]
                u = min(max(u, -1.0), 1.0)
                action[k] = u
                if squares:
                    action[numbers + k] = u * u
                if step > 0:
                    total -= going * price * abs(u - before[k])
                before[k] = u
        cell = root
        while feature[cell] >= 0:
            cell = left[cell] + (0 if z[feature[cell]] < threshold[cell] else 1)
        for k in range(dims + 1):
            value = laws[cell, k, 0]
            for j in range(dims):
                value += laws[cell, k, 1 + j] * z[j]
            for j in range(inputs):
                value += laws[cell, k, 1 + dims + j] * action[j]
            moved[k] = value
        for k in range(dims):
            z[k] = moved[k]
        for k in range(dims):
            along = 0.0
            for j in range(dims):
                along += axes[cell, k, j] * (moved[j] - centre[cell, j])
            over = along - min(max(along, low[cell, k]), high[cell, k])
            if over != 0.0:
                for j in range(dims):
                    z[j] -= over * axes[cell, k, j]
        score = 0.0
        if end_score.shape[0] > 0:
            score, term = end_score[0], 1 + dims
            for i in range(dims):
                score += end_score[1 + i] * z[i]
                for j in range(i, dims):
                    score += end_score[term] * z[i] * z[j]
                    term += 1
        end = 0
        while end_feature[end] >= 0:
            look = score if end_feature[end] == dims else z[end_feature[end]]
            end = end_left[end] + (0 if look < end_threshold[end] else 1)
        chance = end_chance[end]
        reward = min(max(moved[dims], rewards[0]), rewards[1])
        total += going * ((1.0 - chance) * reward + chance * rewards[2])
        going *= 1.0 - chance
        if going < _OVER:
            return total, step + 1
    return total, game.steps


@njit_apart
def play_all(game: Game, tree: Controller) -> Floats:
    """Give the return from every start."""
    returns, passed = np.empty(game.starts.shape[0]), np.empty(tree.feature.shape[0], np.bool_)
    for i in range(returns.shape[0]):
        returns[i] = play(game, tree, i, passed)[0]
    return returns


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
