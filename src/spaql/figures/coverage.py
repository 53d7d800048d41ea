"""The states that a log covers, and where the controller fitted to it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaql.agents import PlanTree
from spaql.errors import SettingError
from spaql.figures.axis import Axis, find_axis
from spaql.figures.drawing import register
from spaql.figures.map_drawing import mark_axes
from spaql.figures.maps import AxisRange, axis_range
from spaql.figures.style import draw_grid, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 2_000
"""The number of steps of the controller that are drawn, at most; clipped ones are all drawn."""
_STEP = "#222222"
_CLIPPED = "#d62728"


@dataclass(frozen=True)
class CoverageRecord:
    """The data of a map of covered states."""

    title: str
    note: str
    x: AxisRange
    y: AxisRange
    rows: tuple[tuple[int, ...], ...]
    """Of the log at each place of a grid, row by row from the lowest y."""
    at_x: tuple[float, ...]
    """Where the controller goes in the learned plant."""
    at_y: tuple[float, ...]
    clipped: tuple[bool, ...]
    """Whether the prediction from there is cut at the edge of the data."""


def compute_coverage(
    agent: PlanTree,
    x: str | int | Axis,
    y: str | int | Axis,
    *,
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
    resolution: int = 60,
) -> CoverageRecord:
    """Return a map of how many logged rows there are, with steps of the controller in the learned plant.

    The agent must have been fitted to a log (see `spaql.fit`). Axes are as of `compute_map`; observations
    that are on neither are not looked at.
    """
    if agent.problem.log is None:
        raise SettingError("Coverage is that of a log, and this agent was not fitted to one.")
    coverage = agent.coverage()
    names = agent.problem.states.names
    space = agent.problem.states.space
    both = np.concatenate([coverage.logged, coverage.visited])
    along_x, along_y = (
        find_axis(wanted, names, space, both, limits) for wanted, limits in ((x, x_limits), (y, y_limits))
    )
    if along_x.label == along_y.label:
        raise SettingError(f"Both axes are {along_x.label}: give two different ones.")
    ends = ((along_y.low, along_y.high), (along_x.low, along_x.high))
    rows, *_ = np.histogram2d(along_y.read(coverage.logged), along_x.read(coverage.logged), resolution, ends)
    some = np.zeros(len(coverage.visited), np.bool_)
    some[np.linspace(0, len(some) - 1, _POINTS).astype(np.int64)] = True
    some |= coverage.clipped
    return CoverageRecord(
        f"{agent.problem.name}: states that the log covers",
        f"Colour: {len(coverage.logged):,} rows of the log. Dots: steps of the controller in the learned "
        f"plant;\nred: {coverage.clipped.mean():.1%} of them, whose prediction is cut at the edge of the "
        "data.",
        axis_range(along_x),
        axis_range(along_y),
        tuple(map(tuple, rows.astype(int).tolist())),
        tuple(along_x.read(coverage.visited[some]).tolist()),
        tuple(along_y.read(coverage.visited[some]).tolist()),
        tuple(coverage.clipped[some].tolist()),
    )


def draw_coverage(record: CoverageRecord) -> Figure:
    """Draw the rows of the log by colour, and steps of the controller as dots, clipped ones on top."""
    from matplotlib.colors import LogNorm

    figure = new_figure(record.title, record.note, 5.2, width=7.2)
    ax = figure.subplots()
    rows = np.array(record.rows)
    image = draw_grid(
        ax,
        np.ma.masked_equal(rows, 0),
        (record.x.low, record.x.high),
        (record.y.low, record.y.high),
        interpolation="none",
        cmap="Blues",
        norm=LogNorm(0.5, max(2, int(rows.max()))),
    )
    at = np.array([record.at_x, record.at_y])
    clipped = np.array(record.clipped, np.bool_)
    ax.scatter(at[0, ~clipped], at[1, ~clipped], s=2, color=_STEP, linewidths=0, rasterized=True)
    ax.scatter(at[0, clipped], at[1, clipped], s=8, color=_CLIPPED, linewidths=0, rasterized=True)
    mark_axes(ax, record.x, record.y)
    figure.colorbar(image, ax=ax, label="logged rows; white: none")
    return figure


register("coverage", CoverageRecord, draw_coverage)
