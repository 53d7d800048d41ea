"""Growth of a partition during training: six pictures side by side, or an animation."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spaql.agents import Agent
from spaql.controllers import PartitionPolicy
from spaql.errors import SettingError
from spaql.figures.axis import Axis
from spaql.figures.drawing import register
from spaql.figures.map_drawing import draw_on, explain_colours
from spaql.figures.maps import MapRecord, chart, lay_out
from spaql.figures.overlays import outlines
from spaql.figures.scene import partition_policy, set_scene
from spaql.figures.style import new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIDE_BY_SIDE = 6
_DPI = 80
_LAST = 2_500
"""Milliseconds for which the last frame of an animation is shown."""
_PALETTE = 64
"""Colours of an animation."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A policy during training."""

    iteration: int
    policy: PartitionPolicy


class Growth:
    """A callback for `Agent.learn` that keeps the policy whenever its partition has grown.

    Examples
    --------
    >>> import spaql
    >>> growth = Growth()
    >>> agent = spaql.SPAQL("pendulum5", rollouts=5, seed=1)
    >>> agent = agent.learn(iterations=20, callback=growth, progress_bar=False)
    >>> growth.snapshots[0].iteration
    0
    """

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def __call__(self, agent: Agent, row: dict[str, float]) -> None:
        """Keep the policy of an agent after an iteration, if its partition has grown."""
        policy = partition_policy(agent.policy, "a growth")
        arms = self.snapshots[-1].policy.partition.arms if self.snapshots else 0
        if policy.partition.arms != arms:
            kept = PartitionPolicy(policy.states, policy.actions, policy.partition.copy())
            self.snapshots.append(Snapshot(int(row["iteration"]), kept))


@dataclass(frozen=True)
class GrowthFrame:
    """The policy after an iteration."""

    iteration: int
    arms: int
    map: MapRecord
    """Of actions, with the balls."""


@dataclass(frozen=True)
class GrowthRecord:
    """The data of an animation."""

    title: str
    note: str
    frames: tuple[GrowthFrame, ...]


def compute_growth(
    growth: Growth,
    agent: Agent,
    x: str | int | Axis,
    y: str | int | Axis,
    *,
    at: Mapping[str | int, float] | None = None,
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
    step: int | None = None,
    frames: int = 30,
    episodes: int = 20,
    seed: int = 0,
    resolution: int = 160,
) -> GrowthRecord:
    """Return the maps of the kept policies, all with the same axes.

    Parameters
    ----------
    growth
        The callback that was passed to `agent.learn`.
    agent
        The trained agent: the states that it visits determine the limits of the axes.
    x, y, at, x_limits, y_limits, step, episodes, seed, resolution
        See `compute_balls`.
    frames
        The number of policies to show, at most.
    """
    if not growth.snapshots:
        raise SettingError("Nothing was kept: pass the growth to agent.learn as its callback.")
    scene = set_scene(agent, None, step=step, episodes=episodes, seed=seed)
    plane = lay_out(scene, (x, y), (x_limits, y_limits), at or {}, averaged=False)
    kept = np.unique(np.linspace(0, len(growth.snapshots) - 1, frames).round().astype(np.int64))
    shown = []
    for snapshot in (growth.snapshots[i] for i in kept):
        then = replace(scene, policy=snapshot.policy)
        drawn = replace(chart(then, plane, "action", 0, resolution), balls=outlines(then, plane))
        shown.append(GrowthFrame(snapshot.iteration, snapshot.policy.partition.arms, drawn))
    return GrowthRecord(f"{scene.title}: how the partition grows", shown[0].map.note, tuple(shown))


def draw_growth(record: GrowthRecord) -> Figure:
    """Draw the first, the last and some of the frames between them."""
    places = np.linspace(0, len(record.frames) - 1, _SIDE_BY_SIDE).round().astype(np.int64)
    frames = [record.frames[i] for i in np.unique(places)]
    rows = -(-len(frames) // 3)
    columns = min(3, len(frames))
    figure = new_figure(record.title, record.note, 0.9 + 2.4 * rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    image: Any = None
    for ax in axes.flat[len(frames) :]:
        ax.axis("off")
    for ax, frame in zip(axes.flat, frames, strict=False):
        image = draw_on(ax, frame.map)
        ax.set_title(_caption(frame), fontsize=9)
        ax.label_outer()
    explain_colours(figure, list(axes.flat), frames[0].map, image)
    return figure


def animate(record: GrowthRecord, *, milliseconds: int = 250) -> bytes:
    """Return an animated GIF of all frames, each shown for `milliseconds`, the last one longer."""
    with styled():
        from PIL import Image

        images = []
        for frame in record.frames:
            drawn = io.BytesIO()
            _draw_frame(record, frame).savefig(drawn, format="png", dpi=_DPI)
            pixels = Image.open(drawn).convert("RGB")
            images.append(pixels.quantize(_PALETTE, dither=Image.Dither.NONE))
    file = io.BytesIO()
    durations = [milliseconds] * (len(images) - 1) + [_LAST]
    images[0].save(
        file, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0, optimize=True
    )
    return file.getvalue()


def _draw_frame(record: GrowthRecord, frame: GrowthFrame) -> Figure:
    figure = new_figure(record.title, record.note, 4.6, width=6.4)
    ax = figure.subplots()
    explain_colours(figure, [ax], frame.map, draw_on(ax, frame.map))
    ax.set_title(_caption(frame))
    return figure


def _caption(frame: GrowthFrame) -> str:
    return f"iteration {frame.iteration:,}, arms: {frame.arms:,}"


register("growth", GrowthRecord, draw_growth, animate)
