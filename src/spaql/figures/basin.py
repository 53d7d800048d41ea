"""Initial states from which a controller succeeds: a map over two state variables of the plant."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaql.errors import SettingError
from spaql.evaluation import Bench, stress
from spaql.evaluation.episodes import Playable, policy_and_problem
from spaql.evaluation.stress import known_bench
from spaql.figures.drawing import register
from spaql.figures.style import draw_grid, mark_quarter_turns, new_figure
from spaql.problems import EnvironmentLike, Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's blue, lightened, and orange: they differ in brightness too.
_SUCCEEDS = "#a6d4f2"
_FAILS = "#D55E00"
_RESETS = 200
"""Resets of an environment to find its initial states."""


@dataclass(frozen=True)
class BasinRecord:
    """The data of a map of starts."""

    title: str
    note: str
    problem: str
    x_name: str
    y_name: str
    x_range: tuple[float, float]
    """The ends of the x axis."""
    y_range: tuple[float, float]
    success: tuple[tuple[bool, ...], ...]
    """Of each start, the middle of a box: rows from the lowest y up, and along each from the lowest x."""
    returns: tuple[tuple[float, ...], ...]
    begins: tuple[float, ...]
    """The ranges of x and y in which the environment itself starts; empty if they are not known."""

    @property
    def share(self) -> float:
        """The share of starts on the map that succeed."""
        return float(np.mean(self.success))


def compute_basin(
    agent: Playable,
    env: EnvironmentLike | None = None,
    *,
    bench: Bench | None = None,
    axes: tuple[int, int] | None = None,
    side: int = 45,
) -> BasinRecord:
    """Return a map of a grid of starts over two state variables; the others are at mid-range.

    Parameters
    ----------
    agent
        An agent, or a policy (which needs `env`).
    env
        The environment; the agent's own problem by default.
    bench
        How the plant is tested; known for the problems of classic control.
    axes
        The two state variables; those of the bench by default.
    side
        Starts along each axis.

    Examples
    --------
    >>> import spaql
    >>> record = compute_basin(spaql.SPAQL("pendulum5", seed=0), side=5)
    >>> record.x_name, record.y_name, len(record.success)
    ('angle [rad]', 'speed [rad/s]', 5)
    """
    policy, problem = policy_and_problem(agent, env)
    bench = bench or known_bench(problem)
    names = list(bench.region)
    low = bench.low
    high = bench.high
    x, y = axes or bench.axes
    if x == y or not {x, y} <= set(range(len(names))) or side < 1:
        raise SettingError(
            f"A map is over two different numbers of a state, 0 to {len(names) - 1}: {', '.join(names)}."
        )
    middles = (np.arange(side) + 0.5) / side
    starts = np.tile((low + high) / 2, (side * side, 1))
    starts[:, x] = np.tile(low[x] + (high[x] - low[x]) * middles, side)
    starts[:, y] = np.repeat(low[y] + (high[y] - low[y]) * middles, side)
    result = stress(policy, problem, bench=bench, starts=starts)
    others = [_fixed(names[j], (low[j] + high[j]) / 2) for j in range(len(names)) if j not in (x, y)]
    beginning = f"All begin with {', '.join(others)}.\n" if others else ""
    return BasinRecord(
        f"{problem.name}: {100 * result.share:.0f} % of {side * side:,} starts succeed",
        f"{beginning}Success: {result.success_means}.\n"
        f"Each box is an episode of {problem.horizon} steps at most, from its middle.",
        problem.name,
        names[x],
        names[y],
        (float(low[x]), float(high[x])),
        (float(low[y]), float(high[y])),
        tuple(tuple(bool(s) for s in row) for row in result.success.reshape(side, side)),
        tuple(tuple(float(r) for r in row) for row in result.returns.reshape(side, side)),
        _own_starts(problem, x, y) if bench.set_state is None else (),
    )


def _own_starts(problem: Problem, x: int, y: int) -> tuple[float, ...]:
    """Return the ranges of the initial states over many resets of an environment with a readable state."""
    with closing(problem.make()) as env:
        states = []
        for seed in range(_RESETS):
            env.reset(seed=seed)
            states.append(env.unwrapped.state)  # type: ignore[attr-defined]
    reached = np.array(states, np.float64)[:, [x, y]]
    return tuple(float(v) for ends in zip(reached.min(0), reached.max(0), strict=True) for v in ends)


def _fixed(name: str, value: float) -> str:
    """Return a state variable that is the same in all starts, with its value and unit."""
    plain, _, unit = name.partition(" [")
    return f"{plain} {value:g} {unit.removesuffix(']')}".rstrip()


def draw_basin(record: BasinRecord) -> Figure:
    """Draw a box for each start, in one of two colours."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch, Rectangle

    figure = new_figure(record.title, record.note, 5.8)
    ax = figure.subplots()
    colours = ListedColormap([_FAILS, _SUCCEEDS])
    draw_grid(ax, record.success, record.x_range, record.y_range, cmap=colours, vmin=0, vmax=1)
    ax.set(xlabel=record.x_name, ylabel=record.y_name)
    mark_quarter_turns(ax)
    handles = [Patch(color=_SUCCEEDS, label="succeeds"), Patch(color=_FAILS, label="fails")]
    if record.begins:
        left, right, low, high = record.begins
        frame = Rectangle((left, low), right - left, high - low, fill=False, linestyle="--", linewidth=1.5)
        frame.set_label("where the environment begins")
        ax.add_patch(frame)
        handles.append(frame)
    ax.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, borderaxespad=0.2)
    return figure


register("basin", BasinRecord, draw_basin)
