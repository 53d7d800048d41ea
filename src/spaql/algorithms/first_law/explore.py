"""Exploration: short episodes with random actions that are held for some steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.algorithms.replay.encoding import ActionCode
from spaql.controllers import Policy
from spaql.controllers.policy import Rng
from spaql.problems import Problem


class HeldNoise(Policy):
    """A policy with noise that is held for some steps, on average; or random actions that are.

    Parameters
    ----------
    policy
        The policy; with None all is noise.
    space
        The actions.
    size
        Of the noise, as a share of half the range; of discrete actions, how often they are random.
    hold
        Steps for which noise is held.
    """

    def __init__(self, policy: Policy | None, space: Box | Discrete, size: float, hold: float) -> None:
        self.policy = policy
        self.action_space: Box | Discrete = space
        self._code = ActionCode(space)
        self._size = size
        self._hold = hold
        self._noise: NDArray[np.float64] | None = None

    def for_episodes(self, n: int) -> Policy:
        """Return the policy without noise so far."""
        return HeldNoise(self.policy, self.action_space, self._size, self._hold)

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        assert rng is not None
        count = len(steps)
        width = self._code.numbers
        drawn = rng.random((count, 2 + width))
        if self._noise is None:
            self._noise = drawn
        renewed = drawn[:, 0] < 1.0 / self._hold
        self._noise = np.where(renewed[:, np.newaxis], drawn, self._noise)
        level = self._noise[:, 1]
        wish = self._noise[:, 2:]
        if isinstance(self.action_space, Discrete):
            n = int(self.action_space.n)
            start = int(self.action_space.start)
            random = start + np.floor(wish[:, 0] * n).astype(np.int64)
            if self.policy is None:
                return random
            return np.where(level < self._size, random, self.policy.act(observations, steps, None))
        noise = 2.0 * wish - 1.0
        if self.policy is not None:
            chosen = self._code.standard(np.asarray(self.policy.act(observations, steps, None)))
            noise = np.clip(chosen + self._size * noise, -1.0, 1.0)
        raw = self._code.middle + self._code.half * noise
        return raw.reshape((count, *self.action_space.shape)).astype(self.action_space.dtype)


def exploring(policy: Policy | None, problem: Problem) -> HeldNoise:
    """Return random actions, or a policy with noise.

    Random actions are held for three steps: a plant that is slow does not answer to faster ones. The noise
    on a policy is smaller and faster.
    """
    space = problem.actions.space
    assert isinstance(space, Box | Discrete)
    return HeldNoise(policy, space, 1.0, 3.0) if policy is None else HeldNoise(policy, space, 0.3, 2.0)
