"""The encoding of states and actions for a learned plant."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.algorithms.replay.exact_sums import moments
from spaql.algorithms.replay.memory import Floats, Memory

_LEVELS = {1: 5, 2: 3}
"""Equidistant levels of each number of an action in planning, by how many numbers it has; for more numbers,
one is varied at a time."""


@dataclass(frozen=True)
class Scale:
    """States with mean 0 and standard deviation 1 over the memory: z = (s - mean) / deviation."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, memory: Memory) -> Scale:
        """Return the scale of the states of a memory."""
        mean, deviation = moments(memory.states)
        return cls(mean, deviation + 1e-9)

    def z(self, states: Floats) -> Floats:
        """Return standardised states."""
        return np.asarray((states - self.mean) / self.deviation)


@dataclass(frozen=True)
class ActionCode:
    """Conversions between the actions of the memory, of a learned plant, and of the environment."""

    space: Box | Discrete

    @property
    def listed(self) -> bool:
        """Whether actions are Discrete."""
        return isinstance(self.space, Discrete)

    @property
    def numbers(self) -> int:
        """How many numbers an action has in the memory."""
        return 1 if isinstance(self.space, Discrete) else int(np.prod(self.space.shape))

    @property
    def middle(self) -> Floats:
        """The centre of a Box."""
        assert isinstance(self.space, Box)
        return (self.space.low.astype(np.float64) + self.space.high).ravel() / 2

    @property
    def half(self) -> Floats:
        """Half the sides of a Box."""
        assert isinstance(self.space, Box)
        return (self.space.high.astype(np.float64) - self.space.low).ravel() / 2

    def tried(self) -> Floats:
        """Return the actions that planning considers, one per row."""
        if isinstance(self.space, Discrete):
            return np.arange(float(self.space.n))[:, np.newaxis]
        if self.numbers in _LEVELS:
            levels = np.linspace(-1.0, 1.0, _LEVELS[self.numbers])
            return np.array(list(product(levels, repeat=self.numbers)))
        steps = np.eye(self.numbers)
        return np.concatenate([np.zeros((1, self.numbers)), steps, -steps])

    def inputs(self, actions: Floats, *, squares: bool) -> Floats:
        """Return the inputs of a plant: Discrete actions one-hot, a Box as numbers and their squares."""
        if isinstance(self.space, Discrete):
            return np.asarray(actions == np.arange(1.0, float(self.space.n)), np.float64)
        return np.concatenate([actions, actions * actions], axis=1) if squares else actions

    def raw_numbers(self, actions: Floats) -> Floats:
        """Return actions of the memory, one per row, as numbers in the units of the environment."""
        if isinstance(self.space, Discrete):
            return np.asarray(actions + float(self.space.start))
        return np.asarray(self.middle + self.half * actions)

    @property
    def resting(self) -> Floats:
        """The action, in these units, that counts as the last one before an episode: next to 0."""
        if isinstance(self.space, Discrete):
            return np.array([float(self.space.start)])
        return np.asarray(np.clip(0.0, self.middle - self.half, self.middle + self.half))

    def raw(self, action: Floats) -> Any:
        """Return an action of the memory as one of the environment."""
        if isinstance(self.space, Discrete):
            return np.int64(self.space.start + action[0])
        return (self.middle + self.half * action).reshape(self.space.shape).astype(self.space.dtype)

    def standard(self, raw: NDArray[Any]) -> Floats:
        """Return actions of the environment, one per row, as actions of the memory."""
        rows = raw.astype(np.float64).reshape(len(raw), -1)
        if isinstance(self.space, Discrete):
            return rows - float(self.space.start)
        return np.asarray((rows - self.middle) / self.half)
