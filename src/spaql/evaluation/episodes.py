"""Fresh episodes of an agent or policy."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from spaql.errors import SettingError
from spaql.policy import Policy
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.rollouts import Evaluation, fresh_episodes
from spaql.values import whole_number


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
    return fresh_episodes(policy, problem, episodes, seed, deterministic=deterministic)
