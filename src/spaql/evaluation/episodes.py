"""Evaluation of an agent or policy in fresh episodes."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.controllers import Policy
from spaql.controllers.policy import PathLike, opened, policy_of
from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.simulate import Evaluation, fresh_episodes
from spaql.simulate.play import check_sample_time
from spaql.spaces import observation_names
from spaql.values import whole_number

_EQUAL = 1e-6
"""Difference below which the ends of action ranges count as equal."""


class Evaluable(Protocol):
    """An agent, or another object with a policy and its problem."""

    @property
    def policy(self) -> Policy:
        """The policy."""

    @property
    def problem(self) -> Problem:
        """The problem it is for."""


Playable = Evaluable | Policy | PathLike
"""An agent or design; a policy, such as a controller; or the path of a run folder or file."""


def policy_and_problem(agent: Playable, env: EnvironmentLike | None) -> tuple[Policy, Problem]:
    """Return the policy to run, and the problem to run it on."""
    source = opened(agent)
    if env is None and isinstance(source, Policy):
        raise SettingError("A policy without an agent has no problem to run on: give env.")
    policy = policy_of(source)
    if env is None:
        return policy, source.problem
    problem = make_problem(env)
    _check_spaces(policy, problem)
    check_sample_time(policy, problem)
    return policy, problem


def _check_spaces(policy: Policy, problem: Problem) -> None:
    """Raise unless a policy can be run in an environment that was not made for it."""
    observations = problem.states.space
    actions = problem.actions.space
    if gymnasium.spaces.flatdim(policy.observation_space) != gymnasium.spaces.flatdim(observations):
        names = ", ".join(observation_names(observations, problem.states.names))
        size = gymnasium.spaces.flatdim(policy.observation_space)
        differ = f"observes {counted(size, 'component')}, and {problem.name} has others ({names})"
    elif type(policy.action_space) is not type(actions) or policy.action_space.shape != actions.shape:
        differ = f"returns actions of {policy.action_space}, and {problem.name} takes {actions}"
    elif not _within(policy.action_space, actions):
        differ = f"returns actions of {policy.action_space}, some of them outside {actions} of {problem.name}"
    else:
        return
    raise SettingError(f"The policy {differ}: give an environment with the same observations and actions.")


def _within(inner: gymnasium.Space[Any], outer: gymnasium.Space[Any]) -> bool:
    """Return whether an action space is part of another of the same kind."""
    if isinstance(inner, Box) and isinstance(outer, Box):
        return bool(np.all(inner.low >= outer.low - _EQUAL) and np.all(inner.high <= outer.high + _EQUAL))
    if isinstance(inner, Discrete) and isinstance(outer, Discrete):
        return bool(inner.n <= outer.n and inner.start == outer.start)
    return True


def evaluate(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = False,
    parallel: bool = False,
) -> Evaluation:
    """Evaluate an agent, a controller, a policy or a file in fresh episodes.

    Parameters
    ----------
    agent
        An agent or design; a policy or controller, which needs `env`; or the path of a run folder or file.
    env
        The problem to run it on; the agent's own by default.
    episodes
        Number of episodes.
    seed
        Seed of the episodes; the same seed repeats the same episodes.
    deterministic
        Use a ball's centre or first action instead of sampling from it. By default partition policies (of
        AQL, SPAQL and SPAQL-TS) sample, as in the paper's evaluations and in `predict`; `evaluate_policy`
        of Stable-Baselines3 has True. Rule trees and controllers are always deterministic.
    parallel
        Step the environments in separate processes (see `spaql.make_problem`).

    Examples
    --------
    >>> from spaql.controllers import RandomPolicy
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
