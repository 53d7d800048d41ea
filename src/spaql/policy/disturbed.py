"""Wrappers of policies: noise, delay, a record."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike, NDArray

from spaql.policy.policy import Policy, Rng


class _PolicyWrapper(Policy):
    """A policy with the spaces of the one that it wraps."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.observation_space = policy.observation_space
        self.action_space = policy.action_space
        self.time_variant = policy.time_variant

    def for_episodes(self, n: int) -> Policy:
        """Return the policy that plays n new episodes; it shares noise and records with this one."""
        playing = self.policy.for_episodes(n)
        if playing is self.policy:
            return self
        wrapper = copy.copy(self)
        wrapper.policy = playing
        return wrapper


class NoisyPolicy(_PolicyWrapper):
    """Act on observations with added Gaussian noise.

    Parameters
    ----------
    policy
        The policy that acts on them.
    std
        Standard deviation of the noise, one for each number of an observation, in raw units. Noisy integer
        observations are rounded, and those of a Discrete space stay in it.
    noise
        Generator of the noise.

    Examples
    --------
    >>> import spaql
    >>> policy = spaql.SPAQL("cartpole200", seed=0).policy
    >>> noisy = NoisyPolicy(policy, [0.1, 0.1, 0.01, 0.1], np.random.default_rng(0))
    >>> noisy.act(np.zeros((1, 4)), np.zeros(1, np.int64), None).shape
    (1,)
    """

    def __init__(self, policy: Policy, std: ArrayLike, noise: Rng) -> None:
        super().__init__(policy)
        self._std = np.asarray(std, np.float64)
        self._noise = noise

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        std = self._std.reshape(np.shape(observations)[1:])
        seen = observations + self._noise.normal(size=np.shape(observations)) * std
        if isinstance(space := self.observation_space, Discrete):
            seen = np.clip(np.rint(seen), space.start, space.start + space.n - 1)
        elif observations.dtype.kind in "iu":
            ends = np.iinfo(observations.dtype)
            seen = np.clip(np.rint(seen), ends.min, ends.max)
        return self.policy.act(seen.astype(observations.dtype), steps, rng)


class DelayedPolicy(_PolicyWrapper):
    """Act on the observation of the step before; at the first step, on the current one.

    For a controller without memory, delayed observations and delayed actions are equivalent; one with memory
    sees the first observation twice. The rows of a batch must be the same episodes from call to call, as they
    are in evaluations.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self._before: NDArray[Any] | None = None

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        seen = np.array(observations)
        if self._before is not None and len(self._before) == len(seen):
            first = (steps == 0).reshape(-1, *[1] * (seen.ndim - 1))
            late = np.where(first, seen, self._before)
        else:
            late = seen
        self._before = seen
        return self.policy.act(late, np.maximum(steps - 1, 0), rng)


class DisturbedPolicy(_PolicyWrapper):
    """Disturb the actions of a policy: Gaussian noise for a Box, random replacements for a list.

    Parameters
    ----------
    policy
        The policy whose actions are disturbed.
    level
        For a Box, the standard deviation of the noise relative to that of the undisturbed actions; the sum is
        clipped to the bounds. For a list, the probability of replacing an action by a random one.
    played
        Undisturbed actions, one per row.
    noise
        Generator of the noise.

    Examples
    --------
    >>> import spaql
    >>> policy = spaql.SPAQL("pendulum", seed=0).policy
    >>> disturbed = DisturbedPolicy(policy, 0.1, np.array([[-2.0], [2.0]]), np.random.default_rng(0))
    >>> disturbed.act(np.zeros((5, 3)), np.zeros(5, np.int64), None).shape
    (5, 1)
    """

    def __init__(self, policy: Policy, level: float, played: ArrayLike, noise: Rng) -> None:
        super().__init__(policy)
        self._level = level
        self._std = level * np.asarray(played, np.float64).std(axis=0)
        self._noise = noise

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        actions, space = np.asarray(self.policy.act(observations, steps, rng)), self.action_space
        if isinstance(space, Discrete):
            drawn = self._noise.integers(space.start, space.start + space.n, size=len(steps))
            other = self._noise.random(len(steps)) < self._level
            return np.where(other, drawn, actions).astype(actions.dtype)
        assert isinstance(space, Box)
        off = self._noise.normal(size=actions.shape) * self._std.reshape(actions.shape[1:])
        return np.clip(actions + off, space.low, space.high).astype(actions.dtype)


class RecordingPolicy(_PolicyWrapper):
    """Act as the policy does, and record observations and actions."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self._seen: list[NDArray[np.float64]] = []
        self._done: list[NDArray[np.float64]] = []

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        self._seen.append(np.array(observations, np.float64).reshape(len(steps), -1))
        actions = self.policy.act(observations, steps, rng)
        self._done.append(np.array(actions, np.float64).reshape(len(steps), -1))
        return actions

    @property
    def played(self) -> NDArray[np.float64]:
        """The recorded actions, one per row."""
        return np.concatenate(self._done)

    @property
    def visited(self) -> NDArray[np.float64]:
        """The recorded observations, one per row."""
        return np.concatenate(self._seen)

    def episodes(self, lengths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Return the observations of every episode of an evaluation, given the lengths of the episodes.

        Environments are stepped together until the last episode ends; observations after the end of each
        episode are left out.
        """
        return _by_episode(self._seen, lengths)

    def episodes_of_actions(self, lengths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Return the actions of every episode of an evaluation, one per row."""
        return _by_episode(self._done, lengths)


def _by_episode(calls: list[NDArray[np.float64]], lengths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """Return what was recorded in calls, which have a row for each episode of a batch, by episode."""
    found: list[NDArray[np.float64]] = []
    call = 0
    while len(found) < len(lengths):
        together = lengths[len(found) : len(found) + len(calls[call])]
        batch = calls[call : call + int(together.max())]
        found += [np.array([rows[i] for rows in batch[:n]]) for i, n in enumerate(together.tolist())]
        call += len(batch)
    return found
