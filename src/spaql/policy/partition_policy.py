"""The greedy policy of a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError
from spaql.kernels.steps import greedy_ranges, standard_actions
from spaql.kernels.tree import INTERVAL
from spaql.partition import Partition
from spaql.policy.policy import Policy, Rng
from spaql.spaces import StandardActions, StandardStates


class PartitionPolicy(Policy):
    """Play an action of the relevant ball with the highest Q.

    Drawn, the action is uniform over those of the ball, as in the paper's rollouts; otherwise it is the
    centre of an interval, or the first remaining action of a list.
    """

    def __init__(self, states: StandardStates, actions: StandardActions, partition: Partition) -> None:
        self.states = states
        self.actions = actions
        self.partition = partition
        self.observation_space = states.space
        self.action_space = actions.space
        self.time_variant = partition.trees > 1

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Give a batch of raw actions."""
        batch = self.states.batch(observations)
        if np.isnan(batch).any():
            row = int(np.flatnonzero(np.isnan(batch).any(axis=1))[0])
            raise BadEnvironmentError(f"Observation {row} of the batch holds NaN: {batch[row]}.")
        trees = np.minimum(steps, self.partition.trees - 1) if self.time_variant else steps * 0
        _, low, size = greedy_ranges(self.partition.balls, trees, self.states.state_map, batch)
        return self.actions.restore(self._standard(low, size, rng))

    def _standard(
        self, low: NDArray[np.int64], size: NDArray[np.int64], rng: Rng | None
    ) -> NDArray[np.float64]:
        """Draw a standard action from each ball, or take the one that stands for it."""
        sizes = self.partition.balls.action_sizes
        # At 0.5 an interval gives its centre, and at 0 a list its first remaining action.
        uniforms = np.where(sizes == INTERVAL, 0.5, 0.0) * np.ones(low.shape)
        if rng is not None:
            several = size > 1  # where one action remains, no random number is spent
            uniforms[several] = rng.random(int(several.sum()))
        return standard_actions(sizes, low, size, uniforms)
