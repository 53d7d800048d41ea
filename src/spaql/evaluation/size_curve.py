"""The trade-off between the size of a controller and its return."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Controller, RecordingPolicy, controller_of, shrinking
from spaql.evaluation.episodes import Playable, evaluate, policy_and_problem
from spaql.formatting import with_interval
from spaql.problems import EnvironmentLike, Problem
from spaql.simulate import EpisodeRunner, Evaluation, Purpose, generator
from spaql.stats import mean_ci95
from spaql.tables import TextTable
from spaql.values import real_number, whole_number

_KEPT = 5_000
"""Largest number of observations to keep from the episodes of a simplified tree."""


@dataclass(frozen=True)
class SizedTree:
    """A tree on the curve."""

    tree: Controller
    agreement: float
    """Share of the states visited by the exact tree in which the action is the same; for Box actions, the
    constant or law that determines it."""
    evaluation: Evaluation
    """Evaluation in fresh episodes, which were not used to choose the tree."""


def size_curve(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    episodes: int = 100,
    rounds: int = 4,
    seed: int = 0,
) -> list[SizedTree]:
    """Return small rule trees whose returns are close to those of a large one.

    Smaller and smaller trees are fitted to the actions of the exact tree in the states it visits
    (`controllers.shrinking`). The states that these trees reach are added, labelled with the actions of the
    exact tree, for the next round (DAgger). The trees that return more than all smaller ones are kept
    and evaluated in fresh episodes.

    Parameters
    ----------
    agent
        An agent or design; a policy or controller, which needs `env`; or the path of a run folder or file.
    env
        The problem to run it on; the agent's own by default.
    episodes
        Episodes for each tree, in every round and at the end.
    rounds
        Number of rounds.
    seed
        Seed of the episodes.

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
    episodes = whole_number("episodes", episodes, least=1)
    rounds = whole_number("rounds", rounds, least=1)
    policy, problem = policy_and_problem(agent, env)
    exact = controller_of(policy, minimise=policy.draws or policy is not agent)
    tried, visited = _try(exact, problem, episodes, rounds, seed)
    wanted = _decided(exact, visited)
    return [
        SizedTree(
            tree,
            float((_decided(tree, visited) == wanted).mean()),
            evaluate(tree, problem, episodes=episodes, seed=seed),
        )
        for tree in _front(tried, exact)
    ]


def _decided(tree: Controller, inputs: NDArray[np.float64]) -> NDArray[Any]:
    """Return the discrete actions, or else the laws, for the comparison."""
    return tree.decide(inputs)[:, 0] if tree.discrete else tree.find(inputs)


def smallest_within(curve: Sequence[SizedTree], loss: float) -> SizedTree:
    """Return the smallest tree of a curve that loses at most a share of the exact tree's mean return.

    The choice biases its evaluation: evaluate it in other episodes.
    """
    loss = real_number("loss", loss, least=0)
    exact = curve[-1].evaluation.mean
    return next(sized for sized in curve if sized.evaluation.mean >= exact - loss * abs(exact))


def size_cells(curve: Sequence[SizedTree]) -> TextTable:
    """Return the trees of a curve as rows, with their paired differences from the exact tree."""
    exact = curve[-1].evaluation.returns
    return [
        {
            "leaves": str(sized.tree.n_leaves),
            "parameters": str(sized.tree.n_numbers),
            "same action": f"{sized.agreement:.1%}",
            "return": with_interval(sized.evaluation.mean, sized.evaluation.ci95),
            "difference": "" if sized is curve[-1] else with_interval(*_difference(sized, exact)),
        }
        for sized in curve
    ]


def as_good(curve: Sequence[SizedTree]) -> SizedTree:
    """Return the smallest tree of a curve that is not significantly worse than the exact one."""
    exact = curve[-1].evaluation.returns
    smaller = (sized for sized in curve[:-1] if sum(_difference(sized, exact)) >= 0.0)
    return next(smaller, curve[-1])


def _difference(sized: SizedTree, exact: NDArray[np.float64]) -> tuple[float, float]:
    """Return how much more a tree returns than the exact one, and half of the interval, from pairs."""
    return mean_ci95(sized.evaluation.returns - exact)


def _try(
    exact: Controller, problem: Problem, episodes: int, rounds: int, seed: int
) -> tuple[list[tuple[float, Controller]], NDArray[np.float64]]:
    """Fit trees and run them; return the mean return of each, and the inputs that the exact tree visits."""
    tried: list[tuple[float, Controller]] = []
    with closing(EpisodeRunner(problem, episodes)) as runner:
        first = RecordingPolicy(exact)
        runner.evaluate(first, generator(seed, Purpose.SELECTION, 0))
        visited = [first.inputs]
        for index in range(1, rounds + 1):
            known = np.concatenate(visited)
            for tree in shrinking(exact, known):
                player = RecordingPolicy(tree)
                result = runner.evaluate(player, generator(seed, Purpose.SELECTION, index))
                tried.append((result.mean, tree))
                visited.append(player.inputs[:: -(-len(player.inputs) // _KEPT)])
    return tried, visited[0]


def _front(tried: list[tuple[float, Controller]], exact: Controller) -> list[Controller]:
    """Return the trees that returned more than all smaller ones, and the exact one."""
    kept: list[Controller] = []
    best = -np.inf
    for mean, tree in sorted(tried, key=lambda pair: (pair[1].n_leaves, -pair[0])):
        if mean > best and tree.n_leaves < exact.n_leaves:
            best = mean
            kept.append(tree)
    return [*kept, exact]
