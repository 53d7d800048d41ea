"""Evaluation of an agent or policy by fresh episodes."""

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
        """The policy."""

    @property
    def problem(self) -> Problem:
        """The problem it is for."""


def policy_and_problem(agent: Evaluable | Policy, env: EnvironmentLike | None) -> tuple[Policy, Problem]:
    """Return the policy to run, and the problem to run it on."""
    if isinstance(agent, Policy):
        if env is None:
            raise SettingError("A policy alone has no problem to run on: give env.")
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
    """Return the evaluation of an agent or policy by fresh episodes.

    Parameters
    ----------
    agent
        An agent, or a policy (which needs `env`).
    env
        The problem to run it on; the agent's own by default.
    episodes
        Number of episodes.
    seed
        Of the episodes; the same seed repeats the same episodes.
    deterministic
        Play a ball's centre or first action instead of drawing from it.
    parallel
        Step the environments in separate processes (see `spaql.make_problem`).

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
