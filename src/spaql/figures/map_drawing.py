"""Drawing maps of a policy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spaql.figures.colours import choice_colours, number_map, paler
from spaql.figures.drawing import register
from spaql.figures.maps import AxisRange, MapRecord, Trail
from spaql.figures.style import count, multiples_of_pi, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#222222"
_DECADES = 1e3
"""Ratio of the highest to the lowest count from which only powers of ten are marked."""


def draw_map(record: MapRecord) -> Figure:
    """Draw a map, with a key to its colours on the right."""
    figure = new_figure(record.title, record.note, 5.2, width=7.2)
    ax = figure.subplots()
    explain_colours(figure, [ax], record, draw_on(ax, record))
    return figure


def draw_on(ax: Axes, record: MapRecord) -> Any:
    """Draw a map on given axes, and return the image for the colour bar."""
    extent = (record.x.low, record.x.high, record.y.low, record.y.high)
    image = ax.imshow(
        _pixels(record), extent=extent, origin="lower", aspect="auto", interpolation="none", **_scale(record)
    )
    ax.grid(visible=False)
    _draw_balls(ax, record)
    for trail in record.trails:
        _draw_trail(ax, trail)
    mark_axes(ax, record.x, record.y)
    return image


def mark_axes(ax: Axes, x: AxisRange, y: AxisRange) -> None:
    """Set the labels and limits of axes, and ticks in multiples of pi on angles."""
    ax.set(xlabel=x.label, ylabel=y.label, xlim=(x.low, x.high), ylim=(y.low, y.high))
    for axis, along in ((ax.xaxis, x), (ax.yaxis, y)):
        if along.turns:
            _mark_turns(axis)


def explain_colours(figure: Figure, axes: list[Axes], record: MapRecord, image: Any) -> None:
    """Draw a legend or colour bar next to the axes."""
    from matplotlib.patches import Patch

    if not record.choices:
        bar = figure.colorbar(image, ax=axes, label=record.label)
        if record.shows == "visits":
            bar.set_ticks(ticks := count_ticks(record), labels=[count(tick) for tick in ticks])
            bar.minorticks_off()
        return
    colours = choice_colours(len(record.choices))
    patches = [Patch(facecolor=c, label=name) for c, name in zip(colours, record.choices, strict=True)]
    figure.legend(handles=patches, loc="outside right upper")


def count_ticks(record: MapRecord) -> list[float]:
    """Return the ticks of the visits: 1, 2, 5 and so on, or powers of ten if there are many."""
    low, high = _visits(record)
    digits = (1, 2, 5) if high / low < _DECADES else (1,)
    round_ones = [float(d * 10**k) for k in range(int(math.log10(high)) + 1) for d in digits]
    inside = [tick for tick in round_ones if low <= tick <= high]
    return inside if len(inside) > 1 else [low, high]


def _visits(record: MapRecord) -> tuple[float, float]:
    low = max(record.low, 1.0)
    return low, max(record.high, low + 1.0)


def _pixels(record: MapRecord) -> Any:
    values = np.array(record.values)
    if not record.choices:
        return values
    n = len(record.choices)
    colours = choice_colours(n)[values.astype(np.int64)]
    return paler(colours, np.array(record.share), n) if record.share else colours


def _scale(record: MapRecord) -> dict[str, Any]:
    from matplotlib.colors import LogNorm, Normalize

    if record.choices:
        return {}
    if record.shows == "visits":
        return {"norm": LogNorm(*_visits(record), clip=True), "cmap": "cividis"}
    if record.shows == "value":
        return {"norm": Normalize(record.low, record.high), "cmap": "viridis"}
    return {"norm": Normalize(record.low, record.high), "cmap": number_map(record.low, record.high)}


def _draw_balls(ax: Axes, record: MapRecord) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    shapes = [Rectangle((ball.x, ball.y), ball.width, ball.height) for ball in record.balls]
    ax.add_collection(PatchCollection(shapes, facecolor="none", edgecolor=_INK, linewidth=0.5))


def _draw_trail(ax: Axes, trail: Trail) -> None:
    """Draw an episode in dark ink with a light border, so that it is visible on every colour."""
    for colour, width in (("white", 1.8), (_INK, 0.8)):
        for piece in trail.pieces:
            ax.plot(piece.x, piece.y, color=colour, linewidth=width, solid_joinstyle="round")
    first = trail.pieces[0]
    last = trail.pieces[-1]
    ax.plot(first.x[0], first.y[0], "o", color=_INK, markerfacecolor="white", markersize=5)
    ax.plot(
        last.x[-1],
        last.y[-1],
        "X" if trail.terminated else "o",
        color=_INK,
        markeredgecolor="white",
        markersize=6,
        zorder=3,
    )


def _mark_turns(axis: Any) -> None:
    from matplotlib.ticker import MultipleLocator

    axis.set_major_locator(MultipleLocator(math.pi))
    axis.set_major_formatter(multiples_of_pi)


register("map", MapRecord, draw_map)
