"""A record of what a policy observes and does."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.policy import Policy, Rng


class RecordingPolicy(Policy):
    """Act as the policy does, and record observations and actions."""

    def __init__(self, policy: Policy) -> None:
        self.observation_space = policy.observation_space
        self.action_space = policy.action_space
        self.time_variant = policy.time_variant
        self._policy = policy
        self._observed: list[NDArray[np.float64]] = []
        self._done: list[NDArray[np.float64]] = []
        self._read: list[NDArray[np.float64]] = []

    def for_episodes(self, n: int) -> Policy:
        """Return the policy that plays n new episodes; it shares the record with this one."""
        playing = copy.copy(self)
        playing._policy = self._policy.for_episodes(n)
        return playing

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        self._observed.append(np.array(observations, np.float64).reshape(len(steps), -1))
        actions = self._policy.act(observations, steps, rng)
        read = self._policy.read
        self._read.append(self._observed[-1] if read is None else read)
        self._done.append(np.array(actions, np.float64).reshape(len(steps), -1))
        return actions

    @property
    def played(self) -> NDArray[np.float64]:
        """The recorded actions, one per row."""
        return np.concatenate(self._done)

    @property
    def visited(self) -> NDArray[np.float64]:
        """The recorded observations, one per row."""
        return np.concatenate(self._observed)

    @property
    def inputs(self) -> NDArray[np.float64]:
        """What the rules and laws of a controller read, one row for each recorded observation."""
        return np.concatenate(self._read)

    def episodes(self, lengths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Return the observations of every episode of an evaluation, given the lengths of the episodes.

        Environments are stepped together until the last episode ends; observations after the end of each
        episode are left out.
        """
        return _by_episode(self._observed, lengths)

    def episodes_of_actions(self, lengths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Return the actions of every episode of an evaluation, one per row."""
        return _by_episode(self._done, lengths)


def _by_episode(calls: list[NDArray[np.float64]], lengths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """Return what was recorded in calls, which have a row for each episode of a batch, by episode."""
    episodes: list[NDArray[np.float64]] = []
    call = 0
    while len(episodes) < len(lengths):
        together = lengths[len(episodes) : len(episodes) + len(calls[call])]
        batch = calls[call : call + int(together.max())]
        episodes += [np.array([rows[i] for rows in batch[:n]]) for i, n in enumerate(together.tolist())]
        call += len(batch)
    return episodes
