"""Rollouts of candidate trees in compiled dynamics."""

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from spaql.kernels.treesearch.candidates import ActionRange, Bools, Floats, Ints, choose

Kernel = Callable[..., Any]


def candidate_loop(dynamics: Any, as_tuple: Kernel) -> Kernel:
    """Return the loop that plays all starts with each candidate."""
    look, play, n_state, n_seen = dynamics.look, dynamics.play, dynamics.n_state, dynamics.n_seen

    @dynamics.compiled  # type: ignore[untyped-decorator]
    def play_candidates(
        left: Ints,
        allowed: Bools,
        numbers: Floats,
        ends: ActionRange,
        starts: Floats,
        horizon: int,
        returns: Floats,
        movement: Floats,
        visited: Floats,
    ) -> tuple[int, int]:
        """Play every start with each candidate; returns the steps, and the number of observations written.

        Episodes run side by side, so that the processor can overlap their steps. A return is -infinity where
        a reward or an observation is not finite. `movement` is the sum of the changes of an action, in shares
        of its range. Observations of the first candidate are written to `visited`, as many as fit.
        """
        count, n_actions = starts.shape[0], max(1, ends.low.shape[0])
        x, raw = np.empty(n_seen), np.empty(n_actions)
        states, before = np.empty((count, n_state)), np.empty((count, n_actions))
        running, spent, kept = np.empty(count, np.int64), 0, 0
        for c in range(numbers.shape[0]):
            candidate = numbers[c]
            for i in range(count):
                for j in range(n_state):
                    states[i, j] = starts[i, j]
                running[i] = i
                returns[c, i] = 0.0
                movement[c, i] = 0.0
            n = count
            for taken in range(horizon):
                still = 0
                for k in range(n):
                    i = running[k]
                    state = as_tuple(states[i], n_state)
                    look(state, x)
                    choose(left, allowed, candidate, ends, x, raw)
                    for j in range(n_actions):
                        if taken > 0:
                            change = abs(raw[j] - before[i, j])
                            if ends.low.shape[0] > 0:
                                movement[c, i] += change / (ends.high[j] - ends.low[j])
                            elif change > 0:
                                movement[c, i] += 1.0
                        before[i, j] = raw[j]
                    if c == 0 and kept < visited.shape[0]:
                        for j in range(n_seen):
                            visited[kept, j] = x[j]
                        kept += 1
                    after, reward, terminated = play(state, raw)
                    finite_check = 0.0  # becomes NaN if a number is not finite: one test per step
                    for j in range(n_seen):
                        finite_check += x[j] - x[j]
                    returns[c, i] += reward + finite_check
                    if not math.isfinite(returns[c, i]):
                        returns[c, i] = -np.inf
                        terminated = True
                    if not terminated:
                        for j, value in enumerate(after):
                            states[i, j] = value
                        running[still] = i
                        still += 1
                spent += n
                n = still
                if n == 0:
                    break
        return spent, kept

    return cast(Kernel, play_candidates)
