"""The greedy policy of a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError
from spaql.kernels.batch import draw_again, look_up, standing
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
        self._standing = standing(self.flat, partition.balls.action_sizes, actions.action_map)
        self._shaped = actions.shaped(self._standing)
        """Of each leaf, the action without a draw: in numbers, and in the form of the action space."""

    @property
    def leaf_actions(self) -> Any:
        """The actions without a draw, one for each node of `flat`; only those of its leaves are played."""
        return self._shaped

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Give a batch of raw actions."""
        batch = self.states.batch(observations)
        leaves = np.empty(len(batch), np.int64)
        choices = look_up(tuple(self.flat), steps, batch, leaves)
        if choices < 0:
            row = -1 - choices
            raise BadEnvironmentError(f"Observation {row} of the batch holds NaN: {batch[row]}.")
        if rng is None or not choices:  # where one action remains, no random number is spent
            return self._shaped[leaves]
        raw, sizes = self._standing[leaves], self.partition.balls.action_sizes
        draw_again(self.flat, sizes, self.actions.action_map, leaves, rng.random(choices), raw)
        return self.actions.shaped(raw)
