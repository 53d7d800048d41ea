"""The greedy policy of a partition."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.arrays import partition_arrays
from spaql.controllers.policy import Policy, Rng
from spaql.errors import BadEnvironmentError
from spaql.kernels.controller import ControllerArrays
from spaql.kernels.partition.lookup import flatten
from spaql.kernels.partition.lookup_batch import central_actions, look_up, redraw
from spaql.partition import Partition
from spaql.spaces import StandardActions, StandardStates


class PartitionPolicy(Policy):
    """Play an action of the relevant ball with the highest Q, for a snapshot of a partition.

    With a generator, the action is drawn uniformly from those of the ball, as in the paper's rollouts;
    otherwise it is the centre of an interval, or the first remaining action of a list.
    """

    draws = True

    def __init__(self, states: StandardStates, actions: StandardActions, partition: Partition) -> None:
        self.states = states
        self.actions = actions
        self.partition = partition
        self.observation_space = states.space
        self.action_space = actions.space
        self.time_variant = partition.trees > 1
        self.flat = flatten(partition.balls, partition.trees, states.state_map, states.thresholds)
        self._standing = central_actions(self.flat, partition.balls.action_sizes, actions.action_map)
        self._shaped = actions.shaped(self._standing)
        """The deterministic action of each leaf: as numbers, and in the form of the action space."""

    @cached_property
    def arrays(self) -> ControllerArrays:
        """The greedy policy, without drawing actions, as the closed loop reads it."""
        return partition_arrays(self)

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the observations."""
        return self.states.names

    @property
    def named_actions(self) -> tuple[str, ...]:
        """Names of the discrete actions, or of the components of an action."""
        return self.actions.names

    @property
    def size(self) -> tuple[int | None, str]:
        """Its arms."""
        return self.partition.arms, "arm"

    @property
    def leaf_actions(self) -> Any:
        """The deterministic actions, one for each node of `flat`; only those of its leaves are played."""
        return self._shaped

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        batch = self.states.batch(observations)
        leaves = np.empty(len(batch), np.int64)
        choices = look_up(tuple(self.flat), steps, batch, leaves)
        if choices < 0:
            row = -1 - choices
            raise BadEnvironmentError(f"Observation {row} of the batch holds NaN: {batch[row]}.")
        if rng is None or not choices:  # where one action remains, no random number is drawn
            return self._shaped[leaves]
        raw = self._standing[leaves]
        sizes = self.partition.balls.action_sizes
        redraw(self.flat, sizes, self.actions.action_map, leaves, rng.random(choices), raw)
        return self.actions.shaped(raw)
