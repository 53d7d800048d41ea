"""A controller in episodes: what it decides in a sample, and the policy with the memory of each episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.policy import Policy, Rng
from spaql.kernels.controller import Floats
from spaql.spaces import environment_actions

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller


class Decisions(NamedTuple):
    """What a controller computed from a batch of observations: one row each."""

    inputs: Floats
    wish: Floats
    """What the laws asked for, before any limit."""
    action: Floats
    """Of discrete actions the number, from 0 on."""


class Playing(Policy):
    """A controller with the memory of the episodes that it plays."""

    def __init__(self, controller: Controller, memory: Floats) -> None:
        self.observation_space = controller.observation_space
        self.action_space = controller.action_space
        self._controller = controller
        self._memory = memory

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        sample = self._controller.sample(observations, self._memory)
        self.read = sample.inputs
        return environment_actions(self.action_space, sample.action)
