"""The input of pictures of a policy: the policy, the names of its numbers, and its episodes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.agents import PlanTree
from spaql.controllers import Controller, PartitionPolicy, Policy
from spaql.controllers.build import tree_number
from spaql.controllers.policy import opened, policy_of
from spaql.errors import SettingError
from spaql.evaluation.episodes import Evaluable, Playable
from spaql.figures.names import NAMES
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

    @cached_property
    def states(self) -> list[NDArray[np.float64]]:
        """The states of each episode, one a row: the numbers that axes have names for, then the memory."""
        return [self._states(episode.observations) for episode in self.played]

    def _states(self, observations: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.hstack(self.policy.moments(observations.astype(np.float64)))

    @cached_property
    def visited(self) -> NDArray[np.float64] | None:
        """The states of all episodes, one a row; None if none were played."""
        return np.concatenate(self.states) if self.played else None

    @property
    def blank(self) -> NDArray[np.float64]:
        """A state before anything is known of it, as a row."""
        return self._states(np.zeros((1, self._observed)))

    def free(self, placed: Collection[int]) -> list[int]:
        """Return the observations that are to be given besides the numbers that are placed."""
        return [j for j in range(self._observed) if j not in placed]

    @property
    def _observed(self) -> int:
        return int(np.prod(self.observation_space.shape or (1,)))

    @property
    def axis_space(self) -> Box | Discrete:
        """The range of the numbers that axes have names for: that of features is not known."""
        more = len(self.observations) - self._observed
        if not more or isinstance(self.observation_space, Discrete):
            return self.observation_space
        free = np.full(more, np.inf)
        low = np.append(self.observation_space.low, -free)
        return Box(low, np.append(self.observation_space.high, free), dtype=np.float64)

    def act(self, batch: NDArray[np.float64], placed: Collection[int] = ()) -> NDArray[np.float64]:
        """Return the actions for rows of states: indices of discrete actions, or rows of numbers.

        The features of a controller are computed from its observations and memory, but for those that were
        `placed`: on an axis, or fixed.
        """
        if isinstance(self.policy, Controller):
            known, memory = np.split(batch, [len(self.observations)], axis=1)
            if not self.policy.remembers:
                memory = self.policy.new_memory(len(batch))
            x, _, actions = self.policy.arrays.sample(known[:, : self._observed], memory.copy())
            features = [j for j in placed if j >= self._observed]
            x[:, features] = known[:, features]
            return self.policy.arrays.decide(x, memory) if features else actions
        shape = self.observation_space.shape or ()
        steps = np.full(len(batch), self.step, np.int64)
        actions = np.asarray(self.policy.act(batch.reshape(-1, *shape), steps, None))
        if isinstance(self.action_space, Discrete):
            return actions.astype(np.float64) - float(self.action_space.start)
        return actions.astype(np.float64).reshape(len(batch), -1)


def set_scene(
    agent: Playable,
    env: EnvironmentLike | None,
    *,
    step: int | None,
    episodes: int,
    seed: int,
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
    number = step or 0
    if isinstance(policy, PartitionPolicy):
        number = tree_number(policy, step)
    observed = policy.known or (problem.states.names if problem else ())
    acted = policy.named_actions or (problem.actions.names if problem else ())
    if problem is not None and problem.env is None and problem.log is not None:
        played = source.logged_episodes() if isinstance(source, PlanTree) else []
    else:
        played = [] if problem is None else record(policy, problem, range(seed, seed + episodes))
    return Scene(
        "Policy" if problem is None else NAMES.get(problem.name, problem.name),
        policy,
        policy.observation_space,
        policy.action_space,
        observation_names(policy.observation_space, observed),
        action_names(policy.action_space, acted),
        number,
        tuple(played),
        None if problem is None else problem.horizon,
    )


def _parts(source: Evaluable | Policy, env: EnvironmentLike | None) -> tuple[Policy, Problem | None]:
    own = None if isinstance(source, Policy) else source.problem
    return policy_of(source), own if env is None else make_problem(env)


def partition_policy(policy: Policy, what: str) -> PartitionPolicy:
    """Return a policy, if it is that of a partition; `what` only that has is named in the error."""
    if not isinstance(policy, PartitionPolicy):
        raise SettingError(
            f"Only the policy of a partition has {what}, and this is a {type(policy).__name__}."
        )
    return policy
