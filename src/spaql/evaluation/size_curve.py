"""How small a rule tree can be, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.evaluation.episodes import Playable, evaluate, policy_and_problem
from spaql.interpret import rule_tree, shrinking
from spaql.policy import RecordingPolicy, RuleTree
from spaql.problems import EnvironmentLike, Problem
from spaql.rollouts import EpisodeRunner, Evaluation, Purpose, generator
from spaql.values import real_number, whole_number

_KEPT = 5_000
"""Observations that are kept of the episodes of a simplified tree."""


@dataclass(frozen=True)
class SizedTree:
    """A tree of the curve."""

    tree: RuleTree
    agreement: float
    """In what part of the states that the exact tree visits the same action is given."""
    evaluation: Evaluation
    """Of fresh episodes, which the tree was not chosen by."""


def size_curve(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    episodes: int = 100,
    rounds: int = 4,
    seed: int = 0,
) -> list[SizedTree]:
    """Find small rule trees that control as well as a large one, or nearly.

    The exact tree plays, and ever smaller trees are found that do the same in the states it visits
    (`interpret.shrinking`). They play as well, and the states they come to are added, with what the exact
    tree would do there: so the next round's trees know how to come back. Of the trees that were tried, those
    remain that return more than all smaller ones; fresh episodes then tell what each is worth.

    Parameters
    ----------
    agent
        An agent or controller; a policy or rule tree, which needs `env`; or the path of a run folder or file.
    env
        Where to run it; the agent's own problem by default.
    episodes
        Of each tree, in every round and in the end.
    rounds
        Of finding trees.
    seed
        Of the episodes.

    Returns
    -------
    list of SizedTree
        From the fewest leaves to the most; the last is the exact tree.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> agent = agent.learn(iterations=100, progress_bar=False)
    >>> curve = size_curve(agent, episodes=20, rounds=1)
    >>> curve[0].tree.n_leaves, curve[-1].agreement
    (2, 1.0)
    """
    episodes, rounds = whole_number("episodes", episodes, least=1), whole_number("rounds", rounds, least=1)
    policy, problem = policy_and_problem(agent, env)
    exact = agent if isinstance(agent, RuleTree) else rule_tree(policy)
    tried, visited = _try(exact, problem, episodes, rounds, seed)
    wanted = exact.find(visited)
    return [
        SizedTree(
            tree,
            float((tree.find(visited) == wanted).mean()),
            evaluate(tree, problem, episodes=episodes, seed=seed),
        )
        for tree in _front(tried, exact)
    ]


def smallest_within(curve: Sequence[SizedTree], loss: float) -> SizedTree:
    """Choose the smallest tree of a curve that loses at most a part of the exact tree's mean return.

    Its episodes have then chosen it: judge it by others.
    """
    loss = real_number("loss", loss, least=0)
    exact = curve[-1].evaluation.mean
    return next(one for one in curve if one.evaluation.mean >= exact - loss * abs(exact))


def _try(
    exact: RuleTree, problem: Problem, episodes: int, rounds: int, seed: int
) -> tuple[list[tuple[float, RuleTree]], NDArray[np.float64]]:
    """Find trees and let them play; gives the mean return of each, and the states of the exact tree."""
    tried: list[tuple[float, RuleTree]] = []
    with closing(EpisodeRunner(problem, episodes)) as runner:
        first = RecordingPolicy(exact)
        runner.evaluate(first, generator(seed, Purpose.SELECTION, 0))
        visited = [first.visited]
        for index in range(1, rounds + 1):
            known = np.concatenate(visited)
            for tree in shrinking(exact, known):
                player = RecordingPolicy(tree)
                result = runner.evaluate(player, generator(seed, Purpose.SELECTION, index))
                tried.append((result.mean, tree))
                visited.append(player.visited[:: -(-len(player.visited) // _KEPT)])
    return tried, visited[0]


def _front(tried: list[tuple[float, RuleTree]], exact: RuleTree) -> list[RuleTree]:
    """Keep the trees that returned more than all smaller ones, and the exact one."""
    kept: list[RuleTree] = []
    best = -np.inf
    for mean, tree in sorted(tried, key=lambda one: (one[1].n_leaves, -one[0])):
        if mean > best and tree.n_leaves < exact.n_leaves:
            best = mean
            kept.append(tree)
    return [*kept, exact]
