"""Controllers that imitate a policy, by dataset aggregation (DAgger) in the problem itself.

The states that trees reach are labelled with the actions of the policy and added to the data, so that a tree
is also fitted where its own errors lead. The trees are those of PlanTree: constant actions or linear scores
for a list of actions, affine laws for a Box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from gymnasium.spaces import Box

from spaql.algorithms.plantree.rule_trees import to_rules, with_laws, within_space
from spaql.algorithms.replay import ActionCode, Scale
from spaql.controllers import Controller, Laws, Policy, RecordingPolicy
from spaql.kernels.numerics import Floats, moments, weighted_sum
from spaql.kernels.plantree.controllers import ControllerTree, grow_choices, grow_laws
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner, Phase, Purpose, generator
from spaql.values import rounded

_MOST = 40_000
"""Labelled states to fit to, at most; of more, evenly spaced ones are taken."""
_SIZES = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64)
"""Numbers of leaves of the trees that are compared."""
_DIGITS = (3, 4, 6)
_DIGITS_LOSS = 0.1
"""Significant digits of a tree's numbers that are tried, and what they may cost, as a share of the loss."""


@dataclass(frozen=True, eq=False)
class Imitation:
    """A controller that imitates a policy."""

    tree: Controller
    agreement: float
    """Of a list, the share of the labelled states in which the action is the same; for a Box, the share of
    the variance of the actions there that the tree explains."""
    labelled: int
    """States that were labelled with the actions of the policy."""


def imitate(
    expert: Policy,
    problem: Problem,
    runner: EpisodeRunner,
    *,
    leaves: int,
    rounds: int,
    loss: float,
    seed: int,
) -> Imitation:
    """Return the smallest tree whose mean return is within a share of the policy's, or else the best one.

    Parameters
    ----------
    expert
        The policy to imitate; it has no memory.
    problem
        The problem to play.
    runner
        Plays and counts: the episodes of the expert, those of trees whose states are labelled as training,
        and those that compare trees as own play.
    leaves
        Of a tree, at most.
    rounds
        Rounds of play and labelling after the first, in which the expert plays.
    loss
        The share of the expert's return that a smaller tree may lose.
    seed
        Of the episodes.
    """
    data = _Data(expert, problem)
    played = RecordingPolicy(expert)
    first = runner.evaluate(
        played, generator(seed, Purpose.SELECTION, 0), deterministic=True, phase=Phase.EXPERT
    )
    data.add(np.concatenate(played.episodes(first.lengths)))
    for index in range(1, rounds + 1):
        # The kinds of trees take turns, so that states are known where either of them errs.
        kinds = list(data.trees(leaves))
        player = RecordingPolicy(kinds[index % len(kinds)])
        result = runner.evaluate(player, generator(seed, Purpose.SELECTION, index), phase=Phase.TRAINING)
        data.add(np.concatenate(player.episodes(result.lengths)))
    sizes = [n for n in _SIZES if n < leaves] + [leaves]
    trees = sorted(
        (tree for n in sizes for tree in data.trees(n)), key=lambda tree: (tree.n_leaves, tree.n_numbers)
    )

    def mean_return(tree: Controller) -> float:
        rng = generator(seed, Purpose.SELECTION, 0)  # the starts of the expert
        return runner.evaluate(tree, rng, phase=Phase.OWN_PLAY).mean

    means = [mean_return(tree) for tree in trees]
    good = [i for i, mean in enumerate(means) if mean >= first.mean - loss * abs(first.mean)]
    best = good[0] if good else int(np.argmax(means))
    chosen = trees[best]
    least = means[best] - _DIGITS_LOSS * loss * abs(first.mean)
    short = (_rounded(chosen, digits) for digits in _DIGITS)
    chosen = next((tree for tree in short if mean_return(tree) >= least), chosen)
    return Imitation(chosen, data.agreement(chosen), data.labelled)


class _Data:
    """States with the actions of the expert, and the trees that are fitted to them."""

    def __init__(self, expert: Policy, problem: Problem) -> None:
        self._expert = expert
        self._problem = problem
        self._code = ActionCode(problem.actions.space)
        self._states: list[Floats] = []
        self._actions: list[Floats] = []

    @property
    def labelled(self) -> int:
        """Number of states."""
        return sum(map(len, self._states))

    def add(self, states: Floats) -> None:
        """Label states with the actions of the expert, and add them."""
        space = self._problem.states.space
        rows = states.reshape(-1, *(space.shape or ())).astype(space.dtype)
        actions = np.asarray(self._expert.act(rows, np.zeros(len(rows), np.int64), None))
        self._states.append(states)
        self._actions.append(self._code.standard(actions))

    def trees(self, leaves: int) -> Iterator[Controller]:
        """Yield a tree of each kind, fitted to all states."""
        states = np.concatenate(self._states)
        actions = np.concatenate(self._actions)
        stride = -(-len(states) // _MOST)
        states = states[::stride]
        actions = actions[::stride]
        mean, deviation = moments(states)
        scale = Scale(mean, deviation + 1e-9)
        z = scale.z(states)
        weight = np.ones(len(states))
        space = self._code.space
        if isinstance(space, Box):
            tree = grow_laws(z, actions, weight, leaves)
            yield within_space(to_rules(tree, scale, self._code, self._problem))
            return
        votes = np.asarray(actions == np.arange(float(space.n)), np.float64)
        chosen = grow_choices(z, votes, leaves)
        yield within_space(to_rules(chosen, scale, self._code, self._problem))
        # With targets of ±1, leaving out what is right by a margin is regression with a squared hinge loss.
        scores = grow_laws(z, 2.0 * votes - 1.0, weight, leaves)
        yield _switching(scores, scale, self._problem)

    def agreement(self, tree: Controller) -> float:
        """Return how well a tree agrees with the labels (see `Imitation`)."""
        states = np.concatenate(self._states)
        wanted = np.concatenate(self._actions)
        done = self._code.standard(np.asarray(tree.act(states)))
        if self._code.listed:
            return float((done == wanted).mean())
        spread = float(((wanted - wanted.mean(axis=0)) ** 2).sum())
        return 1.0 - float(((done - wanted) ** 2).sum()) / spread if spread > 0 else 1.0


def _switching(tree: ControllerTree, scale: Scale, problem: Problem) -> Controller:
    """Return a tree of scores as a controller in raw units.

    Only differences of scores matter: that of the first action is subtracted from all, and need not be read.
    """
    law = tree.law[tree.feature < 0]
    law = law - law[:, :1]
    gain = law[:, :, 1:] / scale.deviation
    offset = law[:, :, 0] - weighted_sum(gain, scale.mean)
    return with_laws(tree, Laws(gain, offset), scale, problem)


def _rounded(tree: Controller, digits: int) -> Controller:
    """Return a tree with its numbers rounded to significant digits."""
    laws = Laws(rounded(tree.laws.gain, digits), rounded(tree.laws.offset, digits))
    return replace(tree, threshold=rounded(tree.threshold, digits), laws=laws)
