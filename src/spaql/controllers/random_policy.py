"""The random policy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.policy import Policy, Rng
from spaql.kernels.partition.balls import INTERVAL
from spaql.spaces import StandardActions, StandardStates


class RandomPolicy(Policy):
    """Draw every action uniformly, whatever the observation: the lower baseline for a policy."""

    def __init__(self, states: StandardStates, actions: StandardActions) -> None:
        self.actions = actions
        self.observation_space = states.space
        self.action_space = actions.space

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        rng = rng or np.random.default_rng(0)
        uniforms = rng.random((len(steps), self.actions.dims))
        sizes = np.array(self.actions.sizes)
        return self.actions.restore(
            np.where(sizes == INTERVAL, 2.0 * uniforms - 1.0, np.floor(uniforms * sizes))
        )
