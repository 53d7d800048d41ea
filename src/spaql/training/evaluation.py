"""Fresh episodes of an agent or policy."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from typing import Protocol

import numpy as np

from spaql.errors import SettingError
from spaql.policy import PartitionPolicy, Policy
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.training.arena import Arena
from spaql.training.results import Evaluation
from spaql.training.seeds import Purpose, generator
from spaql.values import whole_number

_TOGETHER = 100
"""Episodes that are run together."""


class Evaluable(Protocol):
    """An agent, or anything else with a policy and the problem it is for."""

    @property
    def policy(self) -> Policy:
        """What to run."""

    @property
    def problem(self) -> Problem:
        """Where to run it."""


def policy_and_problem(agent: Evaluable | Policy, env: EnvironmentLike | None) -> tuple[Policy, Problem]:
    """Tell what to run, and where."""
    if isinstance(agent, Policy):
        if env is None:
            raise SettingError("A policy alone does not say where to run it: give env.")
        return agent, make_problem(env)
    return agent.policy, agent.problem if env is None else make_problem(env)


def evaluate(
    agent: Evaluable | Policy,
    env: EnvironmentLike | None = None,
    *,
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = False,
    parallel: bool = False,
) -> Evaluation:
    """Run fresh episodes of an agent or policy.

    Parameters
    ----------
    agent
        An agent, or a policy (which needs `env`).
    env
        What to run it on; the agent's own problem by default.
    episodes
        How many.
    seed
        Of the episodes; the same seed gives the same episodes.
    deterministic
        Play a ball's centre or first action instead of drawing from it.
    parallel
        Step the environments in processes of their own (see `spaql.make_problem`).

    Examples
    --------
    >>> from spaql.policy import RandomPolicy
    >>> problem = make_problem("cartpole200")
    >>> result = evaluate(RandomPolicy(problem.states, problem.actions), problem, episodes=50)
    >>> 15 < result.mean < 30
    True
    """
    episodes = whole_number("episodes", episodes, least=1)
    policy, problem = policy_and_problem(agent, env)
    if parallel:
        problem = dataclasses.replace(problem, parallel=True)
    return _episodes(
        policy, problem, episodes, seed, Purpose.EVALUATION, together=_TOGETHER, deterministic=deterministic
    )


def select(agent: Evaluable, *, episodes: int, seed: int) -> Evaluation:
    """Run the episodes by which one of several agents is selected; none of them is one of `evaluate`.

    Agents of the same problem start each episode in the same state, so that their returns can be compared in
    pairs. Compiled code draws the starts and the actions of a partition from one stream: there each episode
    has a stream of its own.
    """
    policy, problem = agent.policy, agent.problem
    drawn_alike = problem.dynamics is not None and isinstance(policy, PartitionPolicy)
    together = 1 if drawn_alike else _TOGETHER
    return _episodes(policy, problem, episodes, seed, Purpose.TRY_SELECTION, together=together)


def _episodes(
    policy: Policy,
    problem: Problem,
    episodes: int,
    seed: int,
    purpose: Purpose,
    *,
    together: int,
    deterministic: bool = False,
) -> Evaluation:
    """Run episodes, so many together, each batch with a random stream of its own."""
    parts = []
    for index, first in enumerate(range(0, episodes, together)):
        with closing(Arena(problem, min(together, episodes - first))) as arena:
            rng = generator(seed, purpose, index)
            parts.append(arena.evaluate(policy, rng, deterministic=deterministic))
    return Evaluation(
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.starts for part in parts]),
    )
