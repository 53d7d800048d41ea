"""The input of pictures of a policy: the policy, the names of its numbers, and its episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.agents import PlanTree
from spaql.errors import SettingError
from spaql.evaluation.episodes import Evaluable, Playable
from spaql.figures.names import NAMES
from spaql.interpret.build import tree_number
from spaql.policy import FeatureController, PartitionPolicy, Policy, RuleTree
from spaql.policy.resolve import opened, policy_of
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.simulate import Episode, record
from spaql.spaces import action_names, observation_names


@dataclass(frozen=True, eq=False)
class Scene:
    """A policy with all data that its pictures need."""

    title: str
    policy: Policy
    observation_space: Box | Discrete
    action_space: Box | Discrete
    observations: tuple[str, ...]
    actions: tuple[str, ...]
    step: int
    """The time step at which a policy that depends on it is shown."""
    played: tuple[Episode, ...]
    horizon: int | None = None
    """Of the problem; None without one."""

    @property
    def visited(self) -> NDArray[np.float64] | None:
        """The states of the episodes, one per row; None if none were played."""
        return np.concatenate([one.observations for one in self.played]) if self.played else None

    def partition_policy(self, what: str) -> PartitionPolicy:
        """Return the policy, if it is that of a partition; `what` is named in the error."""
        if not isinstance(self.policy, PartitionPolicy):
            raise SettingError(
                f"Only the policy of a partition has {what}, and this is a {type(self.policy).__name__}."
            )
        return self.policy

    def act(self, batch: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the actions for rows of observations: indices of discrete actions, or rows of numbers."""
        if isinstance(self.policy, FeatureController):
            raise SettingError(
                "This controller has memory: its action is no function of the observation, and there is no "
                "map of it. Draw its tree, which is over features, or its episodes."
            )
        shape = self.observation_space.shape or ()
        steps = np.full(len(batch), self.step, np.int64)
        actions = np.asarray(self.policy.act(batch.reshape(-1, *shape), steps, None))
        if isinstance(self.action_space, Discrete):
            return actions.astype(np.float64) - float(self.action_space.start)
        return actions.astype(np.float64).reshape(len(batch), -1)


def set_scene(
    agent: Playable, env: EnvironmentLike | None, *, step: int | None, episodes: int, seed: int
) -> Scene:
    """Return the scene of an agent, policy, tree or file, with deterministic episodes if it has a problem.

    What was fitted to a log has the episodes of the log instead.
    """
    source = opened(agent)
    policy, problem = _parts(source, env)
    if not isinstance(policy.observation_space, Box | Discrete) or not isinstance(
        policy.action_space, Box | Discrete
    ):
        raise SettingError("Pictures are of policies with a Box or a list of observations and of actions.")
    number = tree_number(policy, step) if isinstance(policy, PartitionPolicy) else step or 0
    seen, done = _names(policy, problem)
    if problem is not None and problem.env is None and problem.log is not None:
        played = source.logged_episodes() if isinstance(source, PlanTree) else []
    else:
        played = [] if problem is None else record(policy, problem, range(seed, seed + episodes))
    return Scene(
        "Policy" if problem is None else NAMES.get(problem.name, problem.name),
        policy,
        policy.observation_space,
        policy.action_space,
        observation_names(policy.observation_space, seen),
        action_names(policy.action_space, done),
        number,
        tuple(played),
        None if problem is None else problem.horizon,
    )


def _parts(source: Evaluable | Policy, env: EnvironmentLike | None) -> tuple[Policy, Problem | None]:
    own = None if isinstance(source, Policy) else source.problem
    return policy_of(source), own if env is None else make_problem(env)


def _names(policy: Policy, problem: Problem | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(policy, RuleTree | FeatureController):
        return policy.observations, policy.actions
    if isinstance(policy, PartitionPolicy):
        return policy.states.names, policy.actions.names
    return (problem.states.names, problem.actions.names) if problem is not None else ((), ())
