"""The greedy policy of a partition."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.controllers.arrays import partition_arrays
from spaql.controllers.explanation import (
    DIGITS,
    Candidate,
    ExplainedAction,
    Explanation,
    conditions,
    explain_cell,
    observed,
)
from spaql.controllers.policy import Policy, Rng
from spaql.controllers.wording import number_text
from spaql.errors import BadEnvironmentError, SettingError
from spaql.kernels.controller import ControllerArrays
from spaql.kernels.partition.balls import BITS, INTERVAL
from spaql.kernels.partition.lookup import central_actions, flatten, look_up, redraw
from spaql.kernels.partition.standardise import raw_actions
from spaql.partition import Partition
from spaql.spaces import StandardActions, StandardStates, action_names, observation_names


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

    def explain(self, observation: Any, step: int = 0) -> Explanation:
        """Explain the action for an observation: the cell that it lies in, and Q and visits of each action.

        Parameters
        ----------
        observation
            One raw observation.
        step
            The time step, of a policy that depends on it.

        Examples
        --------
        >>> import spaql
        >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
        >>> policy = agent.learn(iterations=100, progress_bar=False).policy
        >>> print(policy.explain([0.0, 0.0, 0.1, 0.0]).action)
        push right
        """
        tree = step if self.time_variant else 0
        if not 0 <= tree < self.partition.trees:
            raise SettingError(f"The time step is a number from 0 to {self.partition.trees - 1}.")
        point, named = observed(observation, observation_names(self.states.space, self.states.names))

        def actions(batch: NDArray[np.float64]) -> NDArray[np.float64]:
            leaves = np.empty(len(batch), np.int64)
            look_up(tuple(self.flat), np.full(len(batch), tree), batch, leaves)
            return self._standing[leaves]

        def do(point: NDArray[np.float64]) -> ExplainedAction:
            value = tuple(actions(point[np.newaxis])[0].tolist())
            return ExplainedAction(self._ranges_text([(x,) for x in value]), value)

        low, high, cell, cuts = self._way_to(point, tree)
        return explain_cell(
            point,
            named,
            conditions(low, high, list(named)),
            f"cell {cell} of the partition",
            cuts,
            self.states.space,
            actions,
            actions,
            do,
            self._candidates(point, tree),
        )

    def _way_to(self, point: NDArray[np.float64], tree: int) -> tuple[Any, Any, int, list[Any]]:
        """Return the bounds and the number of the cell of an observation, and all cuts of the tree."""
        flat = self.flat
        dims = self.states.dims
        low = np.full(dims, -np.inf)
        high = np.full(dims, np.inf)
        node = int(flat.roots[tree])
        last = int(flat.roots[tree + 1]) if tree + 1 < len(flat.roots) else len(flat.cut)
        own = np.arange(node, last)
        cuts = [np.unique(flat.cut[own[flat.first_child[own] >= 0], j]) for j in range(dims)]
        while flat.first_child[node] >= 0:
            cut = flat.cut[node]
            above = point >= cut
            low = np.where(above, np.maximum(low, cut), low)
            high = np.where(above, high, np.minimum(high, cut))
            node = int(flat.first_child[node]) + int(above @ (1 << np.arange(dims - 1, -1, -1)))
        return low, high, node - int(flat.roots[tree]), cuts

    def _candidates(self, point: NDArray[np.float64], tree: int) -> tuple[Candidate, ...]:
        """Return the actions of each relevant ball, best first; of equal Q, the highest action is played."""
        relevant = self.partition.relevant(self.states.standardise(point).tolist(), tree)
        balls = self.partition.balls
        sizes = self.partition.balls.action_sizes
        candidates = []
        for ball, low, size in zip(relevant.ball, relevant.action_low, relevant.action_size, strict=True):
            ranges = []
            for j, whole in enumerate(sizes):
                ends = np.array([low[j], low[j] + size[j]], np.float64)
                numbers = ends / 2.0 ** (BITS - 1) - 1.0 if whole == INTERVAL else np.arange(*ends)
                standard = np.zeros((len(numbers), len(sizes)))
                standard[:, j] = numbers
                ranges.append(tuple(float(x) for x in raw_actions(self.actions.action_map, standard)[:, j]))
            candidates.append(
                Candidate(self._ranges_text(ranges), float(balls.q[ball]), int(balls.visits[ball]))
            )
        candidates.reverse()
        return tuple(sorted(candidates, key=lambda candidate: -candidate.q))

    def _ranges_text(self, ranges: list[tuple[float, ...]]) -> str:
        """Return ranges of actions as text: the values of each number, or the ends of its interval."""
        space = self.actions.space
        names = action_names(self.actions.space, self.actions.names)
        if isinstance(space, Discrete):
            return " or ".join(names[int(x) - int(space.start)] for x in ranges[0])
        separator = " or " if self.actions.levels else " to "
        return ", ".join(
            f"{name} = {separator.join(number_text(x, DIGITS) for x in row)}"
            for name, row in zip(names, ranges, strict=True)
        )
