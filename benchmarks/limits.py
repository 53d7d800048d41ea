"""Nearly the highest possible return of a small plant: value iteration on its equations, and what that plays.

    python benchmarks/limits.py

computes them from the starts of the comparison: the table of `docs/compare.md`.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray
from state_range import FAR, led_to, periodic_numbers, state_range
from value_iteration import Choices, Grid, compile_value_iteration

from spaql.errors import BadEnvironmentError, SettingError
from spaql.experiments.curve import fresh_starts
from spaql.experiments.table import number_cell
from spaql.formatting import counted
from spaql.problems import Dynamics, EnvironmentLike, Problem, make_problem
from spaql.studies.compare.study import FULL, PROBLEMS, compare_runs
from spaql.tables import markdown
from spaql.values import whole_number

Floats = NDArray[np.float64]

STEPS = 500_000_000
"""Steps of the plant on the fine grid: about half a minute."""
_DIMS_AT_MOST = 3
_BYTES = 500_000_000
"""Memory of the values of all steps, in single precision."""
_POINTS_AT_LEAST, _POINTS_AT_MOST = 4, 1_000
"""Grid points of each number of a state."""
_LEVELS = {1: 5, 2: 5, 3: 3, 4: 3}
"""Listed levels of each number of an action, by how many numbers there are."""
_HALVINGS = 6
"""How often the distance of levels is halved around the best action so far."""
_MARGIN = 0.25
"""The grid extends by this share past the states that were visited, and past where steps lead from there."""
_SHRINKS = 8.0
"""A range becomes narrower by at most this factor at once: the first grid may be too coarse to trust."""
_RANGES, _ALIKE = 6, 0.1
"""Ranges that are tried on the coarse grid, and the share of the width by which two of them must differ."""


@dataclass(frozen=True)
class GridPlay:
    """What the values of one grid play."""

    points: tuple[int, ...]
    """Grid points of each number of a state."""
    mean: float
    """Mean return."""
    outside: float
    """Share of the looked-up states that were outside the grid, and had the value of its edge."""


@dataclass(frozen=True)
class Limit:
    """Returns that are nearly the highest possible from given starts.

    They were played, so that the highest possible ones are at least as high. How near they are is seen by
    `change`: what the finer grid adds to the mean.
    """

    returns: Floats
    """Of the better of two episodes from each start, on the coarse and on the fine grid."""
    lengths: NDArray[np.int64]
    starts: Floats
    """States of the plant."""
    actions: Floats
    """Of each episode, step and number; 0 after the end of an episode."""
    coarse: GridPlay
    fine: GridPlay
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Range of the grid."""
    periodic: tuple[bool, ...]
    """Which numbers of a state were found to be angles, by comparing steps from random states."""
    steps: int
    """Steps of the plant that were computed on all grids."""
    cpu: float
    """Seconds of processor time, compilation included."""

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())

    @property
    def change(self) -> float:
        """Mean return on the fine grid less that on the coarse one, whose cells are twice as wide."""
        return self.fine.mean - self.coarse.mean


def limit(env: EnvironmentLike, starts: Floats, *, steps: int = STEPS) -> Limit:
    """Return nearly the highest possible return from each of the given states of a plant.

    Value iteration on the true equations, over a grid of states and all steps of an episode, values the next
    states; then the best action one step ahead is played, on the true equations again. The range of the grid
    is that of random episodes, then that of what was played on a coarse grid, with a margin.

    Parameters
    ----------
    env
        The problem: with compiled dynamics, and a state of one to three numbers.
    starts
        States of the plant, one per row, such as those of `start_states`.
    steps
        Steps of the plant to compute on the fine grid, whose size follows from it: more are nearer to the
        limit. At most 1,000 points for each number of a state are used, and 500 MB for the values. Up to six
        coarse grids, with half as many points for each number, take their steps besides.
    """
    began = time.process_time()
    problem = make_problem(env)
    dynamics = _checked(problem)
    starts = np.atleast_2d(np.asarray(starts, np.float64))
    if starts.ndim != 2 or not starts.size or starts.shape[1] != dynamics.state_dims:
        raise SettingError(
            f"starts has the shape {starts.shape}, and must have a row for each start, of "
            f"{counted(dynamics.state_dims, 'number')}, as a state of {dynamics.id}."
        )
    if not np.isfinite(starts).all():
        raise SettingError("starts has numbers that are not finite.")
    player = _Player(problem, dynamics, starts)
    fine = player.points(whole_number("steps", steps, least=1))
    coarse = player.on_best_range(max(fine // 2, 2))
    last = player.on_grid(coarse.low, coarse.high, fine)
    better = last.returns >= coarse.returns
    returns = np.where(better, last.returns, coarse.returns)
    if not np.isfinite(returns).all():
        bad = int(np.flatnonzero(~np.isfinite(returns))[0])
        raise BadEnvironmentError(
            f"{problem.name} returned {returns[bad]} from the start {starts[bad].tolist()}, on every grid."
        )
    return Limit(
        returns,
        np.where(better, last.lengths, coarse.lengths),
        starts,
        np.where(better[:, None, None], last.actions, coarse.actions),
        coarse.summary,
        last.summary,
        tuple(last.low.tolist()),
        tuple(last.high.tolist()),
        tuple(player.periodic.tolist()),
        player.steps,
        time.process_time() - began,
    )


def _checked(problem: Problem) -> Dynamics:
    """Return the dynamics of a problem; one without a limit is refused."""
    if problem.dynamics is None:
        raise SettingError(
            f"The limit of {problem.name} cannot be computed: it has no compiled dynamics, and runs on "
            f"{problem.runs_on}. Give a plant's equations as spaql.Dynamics."
        )
    if problem.dynamics.disturbances.is_random:
        raise SettingError(
            f"The limit of {problem.name} cannot be computed: it is disturbed at random, and value "
            "iteration is for plants that are not. Give the plant without its disturbances."
        )
    if problem.dynamics.state_dims > _DIMS_AT_MOST:
        raise SettingError(
            f"The limit of {problem.name} cannot be computed: its state has {problem.dynamics.state_dims} "
            f"numbers, and a grid is too large beyond {_DIMS_AT_MOST}."
        )
    space = problem.actions.space
    if not isinstance(space, Discrete) and problem.actions.levels is None and space.shape[0] not in _LEVELS:
        raise SettingError(
            f"The limit of {problem.name} cannot be computed: its actions have {space.shape[0]} numbers, and "
            f"too many would have to be tried beyond {max(_LEVELS)}."
        )
    return problem.dynamics


def _choices(problem: Problem) -> Choices:
    """Return the actions that are tried; levels that the problem has are not refined."""
    space, levels = problem.actions.space, problem.actions.levels
    if isinstance(space, Discrete):
        low, high, count = np.zeros(1), np.array([space.n - 1.0]), int(space.n)
    else:
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        count = levels or _LEVELS[len(low)]
    axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
    listed = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(low))
    listed = listed.astype(np.float32).astype(np.float64)  # as in Gymnasium's spaces
    refined = levels is None and not isinstance(space, Discrete)
    moves = [
        sign * (high - low) / (count - 1) * 0.5**halving * axis
        for halving in range(1, _HALVINGS * refined + 1)
        for axis in np.eye(len(low))
        for sign in (-1.0, 1.0)
    ]
    return Choices(listed, np.array(moves).reshape(-1, len(low)), low, high)


@dataclass(frozen=True)
class _Played:
    """Episodes that were played on a grid."""

    summary: GridPlay
    returns: Floats
    lengths: NDArray[np.int64]
    actions: Floats
    low: Floats
    high: Floats
    visited: Floats
    """The lowest and the highest states."""


class _Player:
    """Sweeps grids of states, and plays from the starts."""

    def __init__(self, problem: Problem, dynamics: Dynamics, starts: Floats) -> None:
        self._problem = problem
        self._dynamics = dynamics
        self._starts = starts
        self._kernels = compile_value_iteration(
            dynamics.compiled_functions[1],
            n_state=dynamics.state_dims,
            discrete=not isinstance(dynamics.actions, Mapping),
        )
        self._choices = _choices(problem)
        self._tried = len(self._choices.listed) + len(self._choices.moves)
        self._range = state_range(dynamics, problem.horizon, starts, self._choices.listed)
        self.periodic = periodic_numbers(dynamics, self._range, self._choices.listed)
        self.steps = 0
        """Steps of the plant that were computed."""

    def points(self, steps: int) -> int:
        """Return the grid points of each number of a state for so many steps, and at most the memory."""
        horizon = self._problem.horizon
        cells = min(steps // (horizon * self._tried), _BYTES // (4 * (horizon + 1)))
        points = int(cells ** (1 / self._dynamics.state_dims) + 1e-9)
        return min(max(points, _POINTS_AT_LEAST), _POINTS_AT_MOST)

    def on_best_range(self, points: int) -> _Played:
        """Return the best episodes on a coarse grid: its range follows the states that are visited."""
        low, high = self._range
        best = self.on_grid(low, high, points)
        for _ in range(_RANGES - 1):
            low, high = self._around(best)
            moved = np.maximum(np.abs(low - best.low), np.abs(high - best.high))
            if (moved <= _ALIKE * (best.high - best.low))[~self.periodic].all():
                break
            tried = self.on_grid(low, high, points)
            if tried.summary.mean < best.summary.mean:
                break
            best = tried
        return best

    def _around(self, played: _Played) -> Floats:
        """Return the range of what was visited, with a margin, but within what was found possible."""
        possible = self._range
        visited = np.clip(np.where(np.isnan(played.visited), possible, played.visited), -FAR, FAR)
        near = led_to(self._dynamics, visited, self._choices.listed, np.random.default_rng(2))
        narrowest = (played.high - played.low) / _SHRINKS
        margin = np.maximum(_MARGIN * (near[1] - near[0]), (narrowest - near[1] + near[0]) / 2)
        low = np.maximum(near[0] - margin, np.minimum(possible[0], visited[0]))
        return np.array([low, np.minimum(near[1] + margin, np.maximum(possible[1], visited[1]))])

    def on_grid(self, low: Floats, high: Floats, points: int) -> _Played:
        """Sweep a grid with so many points a number from the last step to the first, and play."""
        low, high = np.where(self.periodic, -math.pi, low), np.where(self.periodic, math.pi, high)
        high = np.maximum(high, low + 1e-9 * (1.0 + np.abs(low)))  # a number that never changes
        cell = (high - low) / np.where(self.periodic, points, points - 1)
        grid = Grid(low, cell, np.full(len(low), points), self.periodic)
        kernels, horizon, n = self._kernels, self._problem.horizon, len(self._starts)
        values = np.zeros((horizon + 1, points ** len(low)), np.float32)
        for t in range(horizon - 1, 0, -1):
            kernels.sweep(values[t + 1], values[t], grid, self._choices)
        returns, lengths = np.zeros(n), np.zeros(n, np.int64)
        actions = np.zeros((n, horizon, self._choices.listed.shape[1]))
        visited = np.array([self._starts.min(0), self._starts.max(0)])
        looked, outside = kernels.play(
            values, grid, self._choices, self._starts, returns, lengths, actions, visited
        )
        self.steps += (horizon - 1) * values.shape[1] * self._tried
        self.steps += int(lengths.sum()) * (self._tried + 1)
        returns[~np.isfinite(returns)] = -math.inf  # a finer grid may keep the plant from exploding
        summary = GridPlay(tuple(grid.points.tolist()), float(returns.mean()), outside / max(looked, 1))
        return _Played(summary, returns, lengths, actions, low, high, visited)


def row(problem: str, best: Limit) -> dict[str, str]:
    """Return the cells of the table."""
    return {
        "problem": problem,
        "return": number_cell(best.mean),
        "worst start": number_cell(best.returns.min()),
        "starts": f"{len(best.returns):,}",
        "grid": " × ".join(map(str, best.fine.points)),
        "added by refining": f"{best.change:.3f}",
        "outside": f"{best.fine.outside:.2%}",
        "steps": f"{best.steps:,}",
        "cpu s": f"{best.cpu:,.0f}",
    }


def main() -> None:
    rows = []
    for problem in PROBLEMS:
        runs = compare_runs(FULL, only=["plantree", problem], budgets=[1])
        made = make_problem(problem)
        starts = [fresh_starts(made, run.fresh_episodes, run.agent_seed + 1) for run in runs]
        try:
            rows.append(row(problem, limit(made, np.concatenate(starts))))
        except SettingError as error:
            print(error)
    print(markdown(rows))


if __name__ == "__main__":
    main()
