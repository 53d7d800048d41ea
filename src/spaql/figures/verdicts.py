"""Maps of what `spaql.verify` proved, refuted and left undecided, over two numbers of the state."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.figures.drawing import register
from spaql.figures.style import draw_grid, mark_quarter_turns, new_figure
from spaql.verify import Verdict
from spaql.verify.statement import box_text
from spaql.verify.verdict import (
    PROVEN,
    REFUTED,
    UNDECIDED,
    percent,
    worst_status,
    worst_times,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's green, lightened, orange, and grey: they differ in brightness too.
_COLOURS = {PROVEN: "#7fcfb4", REFUTED: "#D55E00", UNDECIDED: "#bdbdbd"}
_WORDS = {PROVEN: "proven", REFUTED: "refuted", UNDECIDED: "undecided"}
_PIXELS = 512
"""Most cells that are drawn along an axis; of more, the worst of several is drawn."""


@dataclass(frozen=True)
class VerdictRecord:
    """The data of a map of cells."""

    title: str
    note: str
    x_name: str
    y_name: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    status: tuple[tuple[int, ...], ...]
    """Of each cell, 0 proven, 1 refuted, 2 undecided: rows from the lowest y up, each from the lowest x."""
    steps: tuple[tuple[int, ...], ...]
    """Steps that suffice from each cell, -1 where none are proven."""
    shares: tuple[float, float, float]
    """Of all states: proven, refuted, undecided."""
    start: tuple[float, ...]
    """x and y of the counterexample; empty if there is none."""


def compute_verdict(verdict: Verdict, axes: tuple[int, int] = (0, 1)) -> VerdictRecord:
    """Return the map of a verdict over two numbers of the state; the others are at mid-range.

    Examples
    --------
    >>> import spaql
    >>> plant = spaql.problems.classic.find_dynamics("MountainCar-v0")
    >>> tree = spaql.Controller(
    ...     feature=[1, -1, -1],
    ...     threshold=[0.0, 0.0, 0.0],
    ...     left=[1, -1, -1],
    ...     right=[2, -1, -1],
    ...     leaf=[-1, 0, 1],
    ...     laws=[0, 2],
    ...     observation_space=plant.observation_space,
    ...     action_space=plant.action_space,
    ... )
    >>> record = compute_verdict(spaql.verify(tree, plant, levels=4))
    >>> record.x_name, len(record.status)
    ('position', 16)
    """
    n = verdict.status.ndim
    x, y = axes
    if n < 2 or verdict.status.size == 1:
        raise SettingError(
            "There is no map of cells: the statement is about one number of the state, or was verified "
            "forwards from its starts."
        )
    if x == y or not {x, y} <= set(range(n)):
        raise SettingError(
            f"A map is over two different numbers of a state, 0 to {n - 1}: {', '.join(verdict.names)}."
        )
    others = [verdict.status.shape[j] // 2 if j not in axes else slice(None) for j in range(n)]
    status = verdict.status[tuple(others)]
    steps = verdict.times[tuple(others)]
    if x < y:
        status = status.T
        steps = steps.T
    fixed = [
        f"{verdict.names[j]} {(verdict.low[j] + verdict.high[j]) / 2:.4g}" for j in range(n) if j not in axes
    ]
    counterexample = verdict.counterexample
    place = () if counterexample is None else tuple(counterexample.start[j] for j in axes)
    return VerdictRecord(
        f"{verdict.plant}: proven from {percent(verdict.proven)} of the states",
        textwrap.fill(
            f"From {box_text(verdict.statement.starts, wider=False)}{verdict.disturbed}: "
            f"{verdict.sentence}." + (f" The map is at {', '.join(fixed)}." if fixed else ""),
            105,
        ),
        verdict.names[x],
        verdict.names[y],
        (float(verdict.low[x]), float(verdict.high[x])),
        (float(verdict.low[y]), float(verdict.high[y])),
        tuple(tuple(int(s) for s in row) for row in worst_status(status, _width(status))),
        tuple(tuple(int(s) for s in row) for row in worst_times(steps, _width(steps))),
        (verdict.proven, verdict.refuted, verdict.undecided),
        place,
    )


def _width(cells: NDArray[np.generic]) -> list[int]:
    return [max(1, side // _PIXELS) for side in cells.shape]


def draw_verdict(record: VerdictRecord) -> Figure:
    """Draw the cells in three colours, and beside them the steps that suffice."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    figure = new_figure(record.title, record.note, 4.6)
    left, right = figure.subplots(1, 2, sharey=True)
    kinds = (PROVEN, REFUTED, UNDECIDED)
    ends = (record.x_range, record.y_range)
    colours = ListedColormap([_COLOURS[kind] for kind in kinds])
    draw_grid(left, record.status, *ends, cmap=colours, vmin=0, vmax=2)
    handles = [
        Patch(color=_COLOURS[kind], label=f"{_WORDS[kind]} {percent(share)}")
        for kind, share in zip(kinds, record.shares, strict=True)
    ]
    if record.start:
        (point,) = left.plot(*record.start, "x", color="black", label="counterexample", linestyle="none")
        handles.append(point)
    steps = np.array(record.steps, np.float64)
    shown = draw_grid(right, np.where(steps < 0, np.nan, steps), *ends, cmap="viridis")
    figure.colorbar(shown, ax=right, label="steps that suffice")
    left.set(ylabel=record.y_name)
    for ax in (left, right):
        ax.set(xlabel=record.x_name)
        mark_quarter_turns(ax)
    left.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    return figure


register("verdict", VerdictRecord, draw_verdict)
