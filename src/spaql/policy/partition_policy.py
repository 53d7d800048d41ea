"""The greedy policy of a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError
from spaql.kernels.batch import act, draw_again
from spaql.kernels.flat import flatten
from spaql.partition import Partition
from spaql.policy.policy import Policy, Rng
from spaql.spaces import StandardActions, StandardStates


class PartitionPolicy(Policy):
    """Play an action of the relevant ball with the highest Q, for a partition as it is now.

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
        self.flat = flatten(partition.balls, partition.trees, states.state_map, states.thresholds)

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Give a batch of raw actions."""
        batch = self.states.batch(observations)
        if self.time_variant:
            steps = np.minimum(steps, self.partition.trees - 1)  # past its last time step a policy goes on
        else:
            steps = np.zeros(len(batch), np.int64)
        sizes, to_raw = self.partition.balls.action_sizes, self.actions.action_map
        leaves, raw = np.empty(len(batch), np.int64), np.empty((len(batch), len(sizes)))
        choices = act(self.flat, steps, batch, sizes, to_raw, leaves, raw)
        if choices < 0:
            row = -1 - choices
            raise BadEnvironmentError(f"Observation {row} of the batch holds NaN: {batch[row]}.")
        if choices and rng is not None:  # where one action remains, no random number is spent
            draw_again(self.flat, sizes, to_raw, leaves, rng.random(choices), raw)
        return self.actions.shaped(raw)
