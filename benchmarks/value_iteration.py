"""Value iteration on compiled dynamics, over a grid of states and all steps of an episode."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit
from spaql.kernels.plant import Function as Kernel
from spaql.kernels.plant import as_tuple

Floats = NDArray[np.float64]
Values = NDArray[np.float32]
Integers = NDArray[np.int64]

_NEVER = -1e30
"""Value of a step to a number that is not finite: finite itself, so that it can be interpolated."""
_TOLERANCE = 1e-6
"""Share of a cell by which a state may be outside the grid by rounding."""


class Grid(NamedTuple):
    """Grid points in each number of a state."""

    low: Floats
    cell: Floats
    """Distances of neighbouring points."""
    points: Integers
    periodic: NDArray[np.bool_]
    """Whether the last point is followed by the first."""


class Choices(NamedTuple):
    """The actions that are tried: a list, and then moves from the best one so far."""

    listed: Floats
    moves: Floats
    """What is added to the best action, one row each; none, to try the list alone."""
    low: Floats
    high: Floats
    """The range in which moved actions are kept."""


class ValueIteration(NamedTuple):
    """The kernels that are compiled for one set of dynamics."""

    sweep: Callable[..., None]
    play: Callable[..., tuple[int, int]]


def compile_value_iteration(step: Kernel, *, n_state: int, discrete: bool) -> ValueIteration:
    """Compile the kernels for dynamics with `step(state, action)`, in every process again."""

    def compiled(function: Kernel) -> Any:
        return njit(function, cached=False, inline=False)

    best = _best(step, n_state, discrete, lambda function: njit(function, cached=False))
    return ValueIteration(_sweep(best, n_state, compiled), _play(best, step, n_state, discrete, compiled))


def _interpolate(n_state: int, inlined: Callable[[Kernel], Any]) -> Kernel:
    # The loops are unrolled, because the length of a state is a constant to the compiler.
    @inlined
    def interpolate(
        values: Values, grid: Grid, state: Floats, lower: Integers, upper: Integers
    ) -> tuple[float, bool]:
        """Return the multilinear value of a state, which is overwritten, and whether it is outside."""
        outside = False
        for j in range(n_state):
            n = grid.points[j]
            x = (state[j] - grid.low[j]) / grid.cell[j]
            if grid.periodic[j]:
                x -= n * math.floor(x / n)
                i = int(x)
                if i >= n:  # by rounding
                    i, x = 0, 0.0
                following = i + 1 if i + 1 < n else 0
            else:
                outside = outside or x < -_TOLERANCE or x > n - 1 + _TOLERANCE
                x = min(max(x, 0.0), n - 1.0)
                i = min(int(x), n - 2)
                following = i + 1
            lower[j], upper[j], state[j] = i, following, x - i
        total = 0.0
        for corner in range(1 << n_state):
            weight, index = 1.0, 0
            for j in range(n_state):
                index *= grid.points[j]
                if corner >> j & 1:
                    weight *= state[j]
                    index += upper[j]
                else:
                    weight *= 1.0 - state[j]
                    index += lower[j]
            total += weight * values[index]
        return total, outside

    return cast(Kernel, interpolate)


@functools.partial(njit, cached=False)
def _candidate(choices: Choices, k: int, best: Floats, raw: Floats) -> None:
    """Write the k-th action to try, rounded as in Gymnasium's spaces; `best` is the best one so far."""
    n = choices.listed.shape[0]
    for j in range(raw.shape[0]):
        if k < n:
            raw[j] = choices.listed[k, j]
        else:
            moved = min(max(best[j] + choices.moves[k - n, j], choices.low[j]), choices.high[j])
            raw[j] = np.float64(np.float32(moved))


def _best(step: Kernel, n_state: int, discrete: bool, inlined: Callable[[Kernel], Any]) -> Kernel:
    interpolate = _interpolate(n_state, inlined)

    @inlined
    def best_action(
        row: Floats, values: Values, grid: Grid, choices: Choices, best: Floats, raw: Floats, after: Floats,
        lower: Integers, upper: Integers,
    ) -> tuple[float, int, int]:  # fmt: skip
        """Write the best action in a state; returns its value, the look-ups, and those outside the grid."""
        state = as_tuple(row, n_state)
        dims = raw.shape[0]
        highest, looked, outside = -math.inf, 0, 0
        for k in range(choices.listed.shape[0] + choices.moves.shape[0]):
            _candidate(choices, k, best, raw)
            if discrete:
                then, reward, terminated = step(state, int(raw[0]))
            else:
                then, reward, terminated = step(state, raw)
            value = float(reward)
            if not terminated:
                not_finite = 0.0
                for j in range(n_state):
                    after[j] = then[j]
                    not_finite += after[j] - after[j]
                value += not_finite
                if math.isfinite(value):
                    later, left = interpolate(values, grid, after, lower, upper)
                    value += later
                    looked += 1
                    outside += left
            if not math.isfinite(value):
                value = _NEVER
            if value > highest:
                highest = value
                for j in range(dims):
                    best[j] = raw[j]
        return highest, looked, outside

    return cast(Kernel, best_action)


def _sweep(best_action: Kernel, n_state: int, compiled: Callable[[Kernel], Any]) -> Kernel:
    @compiled
    def sweep(later: Values, values: Values, grid: Grid, choices: Choices) -> None:
        """Write the values of all grid points one step before those of `later`."""
        dims = choices.listed.shape[1]
        row, after, best, raw = np.empty(n_state), np.empty(n_state), np.empty(dims), np.empty(dims)
        lower, upper = np.empty(n_state, np.int64), np.empty(n_state, np.int64)
        for index in range(values.shape[0]):
            rest = index
            for j in range(n_state - 1, -1, -1):
                row[j] = grid.low[j] + grid.cell[j] * (rest % grid.points[j])
                rest //= grid.points[j]
            value, _, _ = best_action(row, later, grid, choices, best, raw, after, lower, upper)
            values[index] = value

    return cast(Kernel, sweep)


def _play(
    best_action: Kernel, step: Kernel, n_state: int, discrete: bool, compiled: Callable[[Kernel], Any]
) -> Kernel:
    @compiled
    def play(
        values: Values, grid: Grid, choices: Choices, starts: Floats, returns: Floats,
        lengths: Integers, actions: Floats, visited: Floats,
    ) -> tuple[int, int]:  # fmt: skip
        """Play an episode from each start with the best action one step ahead; `values` has a row per step.

        Writes returns, lengths, actions, and the range of all states before an action. Returns the look-ups,
        and those outside the grid.
        """
        dims, horizon = choices.listed.shape[1], actions.shape[1]
        row, after, best, raw = np.empty(n_state), np.empty(n_state), np.empty(dims), np.empty(dims)
        lower, upper = np.empty(n_state, np.int64), np.empty(n_state, np.int64)
        looked, outside = 0, 0
        for i in range(starts.shape[0]):
            for j in range(n_state):
                row[j] = starts[i, j]
            returns[i] = 0.0
            lengths[i] = horizon
            for t in range(horizon):
                for j in range(n_state):
                    visited[0, j] = min(visited[0, j], row[j])
                    visited[1, j] = max(visited[1, j], row[j])
                _, new, left = best_action(row, values[t + 1], grid, choices, best, raw, after, lower, upper)
                looked += new
                outside += left
                for j in range(dims):
                    actions[i, t, j] = best[j]
                if discrete:
                    then, reward, terminated = step(as_tuple(row, n_state), int(best[0]))
                else:
                    then, reward, terminated = step(as_tuple(row, n_state), best)
                returns[i] += reward
                if terminated or not math.isfinite(returns[i]):
                    lengths[i] = t + 1
                    break
                for j in range(n_state):
                    row[j] = then[j]
        return looked, outside

    return cast(Kernel, play)
