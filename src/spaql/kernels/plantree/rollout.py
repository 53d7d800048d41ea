"""Episodes of a controller in learned plants, for PlanTree."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit, njit_apart
from spaql.kernels.plantree.controllers import Controller
from spaql.kernels.plantree.pwa_model import Floats, Ints, Plant

Bools = NDArray[np.bool_]

_OVER = 1e-3
"""Below this chance of going on, an episode is over."""
_FIRST_LOOK = 12
"""Episodes after which an edit that gains nothing is given up."""


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


@njit_apart
def play(game: Game, tree: Controller, start: int, passed: Bools) -> tuple[float, int]:
    """Give the return and the length of an episode; marks the nodes that it passes.

    What it does at a step is `control` and `predict`, written out: a call costs as much as the step.
    """
    roots, feature, threshold, left, laws, centre, axes, low, high, rewards = game.plant[:10]
    end_feature, end_threshold, end_left, end_chance, end_score = game.plant[10:]
    actions, price, rules = game.actions, game.price, tree.law
    dims, inputs, numbers = game.starts.shape[1], actions.shape[1], rules.shape[1]
    z, moved, action, before = np.empty(dims), np.empty(dims + 1), np.empty(inputs), np.zeros(numbers)
    tree_feature, tree_threshold, tree_left = tree.feature, tree.threshold, tree.left
    listed, squares, root = rules.shape[2] == 1, inputs > numbers, roots[game.member[start]]
    for j in range(dims):
        z[j] = game.starts[start, j]
    for node in range(passed.shape[0]):
        passed[node] = node == 0
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


class Marks(NamedTuple):
    """How a controller fares in a game."""

    returns: Floats
    passed: Bools
    """Starts × nodes: which nodes of the controller an episode passes."""
    new_returns: Floats
    """As `returns` and `passed`, of the controller with an edit."""
    new_passed: Bools
    steps: Ints
    """Those spent in all."""


@njit_apart
def gain(game: Game, tree: Controller, marks: Marks, node: int, floor: float) -> float:
    """Play the episodes that pass an edited node again; returns what the mean return gains.

    Gives up, with minus infinity, when the first episodes show a loss beyond the floor.
    """
    total, squares, count = 0.0, 0.0, 0
    starts = game.starts.shape[0]
    for i in range(starts):
        if marks.passed[i, node]:
            marks.new_returns[i], steps = play(game, tree, i, marks.new_passed[i])
            marks.steps[0] += steps
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
def keep(marks: Marks, node: int) -> None:
    """Take the edit of a node for good."""
    for i in range(marks.returns.shape[0]):
        if marks.passed[i, node]:
            marks.returns[i] = marks.new_returns[i]
            for k in range(marks.passed.shape[1]):
                marks.passed[i, k] = marks.new_passed[i, k]


def mark(game: Game, tree: Controller) -> Marks:
    """Play from every start."""
    starts, nodes = len(game.starts), len(tree.feature)
    passed = np.zeros((starts, nodes), np.bool_)
    passed[:, 0] = True
    marks = Marks(np.zeros(starts), passed, np.zeros(starts), np.zeros_like(passed), np.zeros(1, np.int64))
    gain(game, tree, marks, 0, np.inf)
    return marks._replace(returns=marks.new_returns.copy(), passed=marks.new_passed.copy())


def play_all(game: Game, tree: Controller) -> Floats:
    """Return the return from every start."""
    return mark(game, tree).returns
