"""Nearly the highest possible returns: value iteration on a plant's equations, and what that plays.

    python benchmarks/limits.py

computes them from the starts of the comparison: the table of `docs/compare.md`. States have two numbers, and
actions one.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.kernels.jit import call_with_three, njit
from spaql.plugins.compare.study import FULL, compare_runs
from spaql.plugins.sweeps.curve import fresh_starts
from spaql.plugins.sweeps.table import number_cell
from spaql.problems import Problem, make_problem
from studies import Row, parser, show

Floats = NDArray[np.float64]
Values = NDArray[np.float32]

LEVELS, HALVINGS = 5, 6
"""Levels of an action that is no list, and how often their distance is halved around the best one so far."""


class Box(NamedTuple):
    """The states of a plant; beyond, they have the value of the edge."""

    low: tuple[float, float]
    high: tuple[float, float]
    points: int
    """Of the fine grid in each number; the coarse one has half as many."""
    turns: bool = False
    """Whether the first number is an angle, from -pi to pi."""


BOXES = {
    "Pendulum-v1": Box((-math.pi, -8.0), (math.pi, 8.0), 383, turns=True),
    "MountainCar-v0": Box((-1.2, -0.07), (0.6, 0.07), 788),
    "MountainCarContinuous-v0": Box((-1.2, -0.07), (0.6, 0.07), 171),
}
"""What these plants do not leave."""


class Grid(NamedTuple):
    """A box, and the distances of its points."""

    low: tuple[float, float]
    cell: tuple[float, float]
    points: int
    turns: bool


class Actions(NamedTuple):
    """What is tried: levels, and then moves from the best of them."""

    low: float
    high: float
    levels: int
    tried: int


class Played(NamedTuple):
    """Episodes from given starts."""

    returns: Floats
    actions: Floats
    """Of each episode and step, NaN after the end."""
    steps: int
    """Steps of the plant that were computed."""


compiled = partial(njit, cached=False)


@compiled
def place(x: float, points: int, turns: bool) -> tuple[int, int, float]:
    """Return the points around a place, and the weight of the second."""
    if turns:
        x %= points
        return int(x) % points, (int(x) + 1) % points, x - int(x)
    x = min(max(x, 0.0), points - 1.0)
    i = min(int(x), points - 2)
    return i, i + 1, x - i


@compiled
def interpolated(values: Values, grid: Grid, state: Floats) -> float:
    """Return the value of a state."""
    i, k, a = place((state[0] - grid.low[0]) / grid.cell[0], grid.points, grid.turns)
    j, m, b = place((state[1] - grid.low[1]) / grid.cell[1], grid.points, False)
    left = (1.0 - b) * values[i, j] + b * values[i, m]
    return (1.0 - a) * left + a * ((1.0 - b) * values[k, j] + b * values[k, m])


@compiled
def best(
    step: Any, later: Values, grid: Grid, actions: Actions, state: Floats, scratch: Floats
) -> tuple[float, float]:
    """Return the value of a state, and the action that leads to it."""
    after = scratch[:2]
    action = scratch[2:3]
    outcome = scratch[3:]
    highest = -math.inf
    chosen = 0.0
    gap = (actions.high - actions.low) / (actions.levels - 1)
    for k in range(actions.tried):
        if k < actions.levels:
            action[0] = actions.low + k * gap
        else:
            move = gap * 0.5 ** (1 + (k - actions.levels) // 2)
            wish = chosen + (move if (k - actions.levels) % 2 else -move)
            action[0] = min(max(wish, actions.low), actions.high)
        after[:] = state
        call_with_three(step, after, action, outcome)
        value = outcome[0]
        if outcome[1] == 0.0:
            value += interpolated(later, grid, after)
        if value > highest:
            highest = value
            chosen = action[0]
    return highest, chosen


@compiled
def sweep(step: Any, values: Values, grid: Grid, actions: Actions) -> None:
    """Write the values of all steps, from the last to the second."""
    state = np.empty(2)
    scratch = np.empty(5)
    for t in range(values.shape[0] - 2, 0, -1):
        for i in range(grid.points):
            for j in range(grid.points):
                state[0] = grid.low[0] + i * grid.cell[0]
                state[1] = grid.low[1] + j * grid.cell[1]
                values[t, i, j] = best(step, values[t + 1], grid, actions, state, scratch)[0]


@compiled
def play(
    step: Any, values: Values, grid: Grid, actions: Actions, states: Floats, returns: Floats, played: Floats
) -> None:
    """Play from each start, which is overwritten, the best action one step ahead."""
    scratch = np.empty(5)
    action = np.empty(1)
    outcome = np.empty(2)
    for i in range(states.shape[0]):
        for t in range(played.shape[1]):
            action[0] = best(step, values[t + 1], grid, actions, states[i], scratch)[1]
            played[i, t] = action[0]
            call_with_three(step, states[i], action, outcome)
            returns[i] += outcome[0]
            if outcome[1] != 0.0:
                break


def limit(problem: Problem, box: Box, starts: Floats) -> Played:
    """Return what a grid of the states plays from given starts."""
    assert problem.dynamics is not None
    space = problem.actions.space
    low = np.array(box.low)
    high = np.array(box.high)
    cell = (high - low) / (box.points - np.array([not box.turns, True]))
    grid = Grid(box.low, tuple(cell.tolist()), box.points, box.turns)
    if isinstance(space, Discrete):
        actions = Actions(0.0, space.n - 1.0, int(space.n), int(space.n))
    else:
        actions = Actions(float(space.low[0]), float(space.high[0]), LEVELS, LEVELS + 2 * HALVINGS)
    values = np.zeros((problem.horizon + 1, box.points, box.points), np.float32)
    returns = np.zeros(len(starts))
    played = np.full((len(starts), problem.horizon), np.nan)
    plant = problem.dynamics.plant
    sweep(plant.addresses.step, values, grid, actions)
    play(plant.addresses.step, values, grid, actions, starts.copy(), returns, played)
    taken = int(np.isfinite(played).sum())
    return Played(returns, played, (values[1:-1].size + taken) * actions.tried + taken)


def row(name: str) -> Row:
    """Return the line of a problem, whose returns are of the better grid for each start."""
    runs = compare_runs(FULL, only=["plantree", name], budgets=[1])
    problem = make_problem(name)
    box = BOXES[name]
    starts = np.concatenate([fresh_starts(problem, run.fresh_episodes, run.agent_seed + 1) for run in runs])
    began = time.process_time()
    coarse = limit(problem, box._replace(points=box.points // 2), starts)
    fine = limit(problem, box, starts)
    returns = np.maximum(coarse.returns, fine.returns)
    return {
        "problem": name,
        "return": number_cell(returns.mean()),
        "worst start": number_cell(returns.min()),
        "starts": len(returns),
        "grid": f"{box.points} × {box.points}",
        "added by refining": f"{fine.returns.mean() - coarse.returns.mean():.3f}",
        "steps": coarse.steps + fine.steps,
        "cpu s": f"{time.process_time() - began:,.0f}",
    }


def main() -> None:
    """Print the table."""
    parser(__doc__).parse_args()
    show([row(name) for name in BOXES])


if __name__ == "__main__":
    main()
