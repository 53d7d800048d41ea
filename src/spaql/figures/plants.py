"""The cells of a learned plant, and where its predictions are wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spaql.agents import PlanTree
from spaql.controllers import RandomPolicy
from spaql.errors import SettingError
from spaql.figures.axis import Axis
from spaql.figures.drawing import register
from spaql.figures.map_drawing import mark_axes
from spaql.figures.maps import AxisRange, axis_range, lay_out
from spaql.figures.scene import set_scene
from spaql.figures.style import new_figure
from spaql.formatting import counted
from spaql.simulate import record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 2_000
"""The number of steps that are drawn, at most."""
_LEAST = 1e-4
"""Smaller errors are drawn as this one."""


@dataclass(frozen=True)
class PlantRecord:
    """The data of a figure of a learned plant."""

    title: str
    note: str
    x: AxisRange
    y: AxisRange
    cells: tuple[tuple[int, ...], ...]
    """The index of the cell at each place of a grid, row by row from the lowest y."""
    at_x: tuple[float, ...]
    """Where steps of fresh episodes were taken."""
    at_y: tuple[float, ...]
    error: tuple[float, ...]
    """Of the prediction of each step: the root of the mean square over the numbers of an observation, each in
    its standard deviations."""


def compute_plant(
    agent: PlanTree,
    x: str | int | Axis,
    y: str | int | Axis,
    *,
    at: Mapping[str | int, float] | None = None,
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
    episodes: int = 20,
    seed: int = 0,
    resolution: int = 400,
) -> PlantRecord:
    """Return a map of the cells of a learned plant, with the error of its predictions in fresh episodes.

    The parameters are those of `compute_map`. Half of the episodes are played by the controller and half by
    random actions, so that there are steps all over the map; for the cells, observations that are neither on
    an axis nor given are fixed at their median.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> agent = agent.learn(total_timesteps=600, progress_bar=False)
    >>> compute_plant(agent, "angle", "speed", episodes=2, resolution=8).x.label
    'angle [rad]'
    """
    if episodes < 2:
        raise SettingError("One episode is played by the controller, and one by random actions: give two.")
    model = agent.model
    problem = agent.problem
    half = episodes // 2
    played = record(agent.conclude(), problem, range(seed, seed + half))
    policy = RandomPolicy(problem.states, problem.actions)
    played += record(policy, problem, range(seed + half, seed + episodes), np.random.default_rng(seed))
    before = np.concatenate([episode.observations[:-1] for episode in played])
    after = np.concatenate([episode.observations[1:] for episode in played])
    predicted = model.predict(before, np.concatenate([episode.actions for episode in played])).observations
    error = np.sqrt(np.mean(((predicted - after) / before.std(axis=0)) ** 2, axis=1))
    scene = set_scene(agent, None, step=None, episodes=half, seed=seed)
    plane = lay_out(scene, (x, y), (x_limits, y_limits), at or {}, averaged=False)
    states = plane.grid(plane.states[0], resolution)[:, : problem.states.dims]
    grid = model.find(states).reshape(resolution, resolution)
    some = np.unique(np.linspace(0, len(before) - 1, _POINTS).astype(np.int64))
    fixed = f", at {plane.fixed}" if plane.fixed else ""
    return PlantRecord(
        f"{scene.title}: the learned plant",
        f"Lines: borders of its {counted(model.n_cells, 'cell')}{fixed}. Dots: {len(some):,} steps of "
        f"{counted(half, 'episode')} of the controller\nand {episodes - half} of random actions, by how far "
        "the next observation is from what was predicted.",
        axis_range(plane.x),
        axis_range(plane.y),
        tuple(map(tuple, grid.tolist())),
        tuple(plane.x.read(before[some]).tolist()),
        tuple(plane.y.read(before[some]).tolist()),
        tuple(error[some].tolist()),
    )


def draw_plant(record: PlantRecord) -> Figure:
    """Draw the borders of cells, and steps in the colour of their error."""
    from matplotlib.colors import LogNorm

    figure = new_figure(record.title, record.note, 5.2, width=7.2)
    ax = figure.subplots()
    ax.grid(visible=False)
    errors = np.maximum(record.error, _LEAST)
    order = np.argsort(errors)  # the worst on top
    dots = ax.scatter(
        np.array(record.at_x)[order],
        np.array(record.at_y)[order],
        c=errors[order],
        s=5,
        cmap="viridis_r",
        norm=LogNorm(_LEAST, max(1.0, float(errors.max()))),
        linewidths=0,
        rasterized=True,
    )
    _draw_borders(ax, record)
    mark_axes(ax, record.x, record.y)
    figure.colorbar(dots, ax=ax, label="error of one step [standard deviations]")
    return figure


def _draw_borders(ax: Axes, record: PlantRecord) -> None:
    """Draw a line between neighbouring places of different cells."""
    from matplotlib.collections import LineCollection

    cells = np.array(record.cells)
    rows, columns = cells.shape
    xs = np.linspace(record.x.low, record.x.high, columns + 1)
    ys = np.linspace(record.y.low, record.y.high, rows + 1)
    lines: list[Any] = []
    for j, differs in enumerate((cells[:, 1:] != cells[:, :-1]).T):
        lines += [[(xs[j + 1], ys[first]), (xs[j + 1], ys[last])] for first, last in _runs(differs)]
    for i, differs in enumerate(cells[1:] != cells[:-1]):
        lines += [[(xs[first], ys[i + 1]), (xs[last], ys[i + 1])] for first, last in _runs(differs)]
    ax.add_collection(LineCollection(lines, colors="#222222", linewidths=0.5))


def _runs(flags: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Return the start and the end of each run of true flags.

    Examples
    --------
    >>> list(_runs(np.array([True, True, False, True])))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


register("plant", PlantRecord, draw_plant)
