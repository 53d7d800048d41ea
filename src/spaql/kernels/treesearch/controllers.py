"""Rollouts of candidate controllers with memory in compiled dynamics."""

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from spaql.kernels.features import LEAF, FeatureTable, Limiter, control, reset_memory
from spaql.kernels.treesearch.candidates import Floats, Ints

Kernel = Callable[..., Any]


def controller_loop(dynamics: Any, as_tuple: Kernel) -> Kernel:
    """Return the loop that plays all starts with each candidate."""
    look, play, n_state, n_seen = dynamics.look, dynamics.play, dynamics.n_state, dynamics.n_seen

    @dynamics.compiled  # type: ignore[untyped-decorator]
    def play_controllers(
        table: FeatureTable,
        limiter: Limiter,
        memory: Floats,
        setpoints: Ints,
        left: Ints,
        numbers: Floats,
        starts: Floats,
        horizon: int,
        returns: Floats,
        movement: Floats,
        switches: Floats,
        visited: Floats,
    ) -> tuple[int, int]:
        """Play every start with each candidate; returns the steps, and the number of rows written.

        A return is -infinity where a reward or an observation is not finite. `movement` is the sum of the
        changes of an action, in shares of its range; `switches` how often the leaf changed while no set-point
        did, whose places in an observation are `setpoints`. Features of the first candidate are written to
        `visited`, one episode after the other, as many as fit. `memory` is room for that of an episode.
        """
        n_actions, spent, kept = limiter.low.shape[0], 0, 0
        observation, x = np.empty(n_seen), np.empty(table.kind.shape[0])
        wish, target, action = np.empty(n_actions), np.empty(n_actions), np.empty(n_actions)
        before, row, margin = np.empty(n_actions), np.empty(n_state), np.empty(0)
        goal = np.empty(setpoints.shape[0])
        for c in range(numbers.shape[0]):
            for i in range(starts.shape[0]):
                for j in range(n_state):
                    row[j] = starts[i, j]
                reset_memory(table, limiter, memory)
                total, moved, switched = 0.0, 0.0, 0.0
                for taken in range(horizon):
                    state = as_tuple(row, n_state)
                    look(state, observation)
                    held, steady = int(memory[LEAF]), taken > 0
                    for g in range(setpoints.shape[0]):
                        steady = steady and observation[setpoints[g]] == goal[g]
                        goal[g] = observation[setpoints[g]]
                    leaf = control(
                        table,
                        limiter,
                        left,
                        numbers[c],
                        margin,
                        observation,
                        memory,
                        x,
                        wish,
                        target,
                        action,
                    )
                    if steady and leaf != held:
                        switched += 1.0
                    for k in range(n_actions):
                        if taken > 0:
                            moved += abs(action[k] - before[k]) / (limiter.high[k] - limiter.low[k])
                        before[k] = action[k]
                    if c == 0 and kept < visited.shape[0]:
                        for j in range(x.shape[0]):
                            visited[kept, j] = x[j]
                        kept += 1
                    after, reward, terminated = play(state, action)
                    spent += 1
                    total += reward
                    for j in range(n_seen):
                        total += observation[j] - observation[j]  # NaN if a number is not finite
                    if not math.isfinite(total):
                        total = -np.inf
                        break
                    if terminated:
                        break
                    for j, value in enumerate(after):
                        row[j] = value
                returns[c, i] = total
                movement[c, i] = moved
                switches[c, i] = switched
        return spent, kept

    return cast(Kernel, play_controllers)
