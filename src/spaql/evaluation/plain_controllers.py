"""Baselines for a trained controller: random actions, constants, and a law of one leaf."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike

from spaql.agents import Agent
from spaql.controllers import Controller, Laws, Policy, RandomPolicy
from spaql.controllers.arrays import action_range
from spaql.evaluation.episodes import evaluate
from spaql.formatting import number, places, with_interval
from spaql.problems import Problem
from spaql.simulate import Evaluation
from spaql.stats import standard_error, t975
from spaql.tables import TextTable

_CHOSEN, _FEW, _MANY = 3, 20, 100
"""Episodes for the choice of the best constant; and for each baseline, in an environment and in
compiled dynamics."""
_MOST_ACTIONS = 10
"""Largest number of discrete actions that are tried as constants."""
_SURE = 2.0
"""Standard errors by which a controller must be better than one that has learned nothing."""
_RISING = 0.1
"""Share of the total improvement that came in the last fifth of the budget."""


@dataclass(frozen=True)
class PlainControllers:
    """Mean returns of trivial controllers, in fresh episodes."""

    returns: dict[str, float]
    errors: dict[str, float]
    """Standard errors of the means."""
    episodes: int
    steps: int
    """Simulator steps to choose and to evaluate them."""

    @property
    def text(self) -> str:
        """One line."""
        shown = ", ".join(f"{name} {number(mean, places(mean))}" for name, mean in self.returns.items())
        return f"{shown}  ({self.episodes} new episodes each)"

    @property
    def cells(self) -> TextTable:
        """A row for each."""
        return [
            {"controller": name, "return": with_interval(mean, t975(self.episodes - 1) * self.errors[name])}
            for name, mean in self.returns.items()
        ]

    def better(self, fresh: Evaluation) -> str:
        """Return which of them is better, or as good if it has learned nothing; empty if none is."""
        error = standard_error(fresh.returns)
        for name, mean in sorted(self.returns.items(), key=lambda item: -item[1]):
            sure = _SURE * math.hypot(error, self.errors[name])
            gain = fresh.mean - mean
            if gain < -sure or (gain <= sure and name != ONE_LEAF):
                word = "better" if mean > fresh.mean else "not significantly worse"
                return f"{name} is {word}"
        return ""


ONE_LEAF = "a law of one leaf"


def plain_controllers(agent: Agent, *, seed: int) -> PlainControllers:
    """Evaluate random actions, the best constant, and a law of one leaf, if the training had one.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("CartPole-v1", seed=0).learn(600, progress_bar=False)
    >>> list(plain_controllers(agent, seed=1).returns)
    ['random', 'always push right']
    """
    problem = agent.problem
    steps = 0

    def played(policy: Policy, episodes: int, seed: int) -> Evaluation:
        nonlocal steps
        evaluation = evaluate(policy, problem, episodes=episodes, seed=seed)
        steps += evaluation.steps
        return evaluation

    constants = _constants(problem)
    chosen = max(constants, key=lambda name: played(constants[name], _CHOSEN, seed + 1).mean)
    rivals: dict[str, Policy] = {
        "random": RandomPolicy(problem.states, problem.actions),
        f"always {chosen}": constants[chosen],
    }
    if agent.first_law is not None:
        rivals[ONE_LEAF] = agent.first_law
    episodes = _FEW if problem.dynamics is None else _MANY
    evaluations = {name: played(policy, episodes, seed) for name, policy in rivals.items()}
    return PlainControllers(
        {name: evaluation.mean for name, evaluation in evaluations.items()},
        {name: standard_error(evaluation.returns) for name, evaluation in evaluations.items()},
        episodes,
        steps,
    )


def failure(agent: Agent, fresh: Evaluation, plain: PlainControllers) -> str:
    """Return why training seems to have failed or ended too early, and what to do; empty otherwise."""
    better = plain.better(fresh)
    if better:
        why = f"Training seems to have failed: {better}."
    elif agent.learner_type.name == "treesearch" and is_rising(agent):
        why = "The returns were still rising when the budget ended."
    else:
        return ""
    other = {"plantree": "treesearch", "treesearch": "plantree"}[agent.learner_type.name]
    return f"{why} Try more steps (--steps), several seeds (--tries 8), or --algo {other}."


def is_rising(agent: Agent) -> bool:
    """Return whether returns were still rising in the last fifth of the iterations."""
    returns = agent.history["mean_return"]
    returns = returns[np.isfinite(returns)]
    fifth = len(returns) // 5
    if fifth < 2:
        return False
    first = returns[:fifth].mean()
    before = returns[-2 * fifth : -fifth].mean()
    last = returns[-fifth:].mean()
    return bool(last - before > _RISING * abs(last - first))


def _constants(problem: Problem) -> dict[str, Policy]:
    """Return constant policies: each of a few discrete actions, or the middle and the ends of ranges."""
    space = problem.actions.space
    if isinstance(space, Discrete):
        count = min(int(space.n), _MOST_ACTIONS)
        names = problem.actions.names or tuple(map(str, range(count)))
        return {names[k]: _always(problem, int(space.start) + k) for k in range(count)}
    assert isinstance(space, Box)
    low, high = action_range(space)
    policies: dict[str, Policy] = {}
    for share in (0.0, 0.5, 1.0):
        action = low + share * (high - low)
        name = ", ".join(number(value, places(value)) for value in action.tolist())
        policies[name] = _always(problem, action)
    return policies


def _always(problem: Problem, action: ArrayLike) -> Controller:
    """Return a controller with one leaf and a constant action."""
    return Controller(
        laws=Laws.of_actions(np.array([action]), problem.actions.space, problem.states.dims),
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
    )
