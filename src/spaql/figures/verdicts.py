"""What `spaql.verify` found: maps of what is proven, refuted and undecided, and episodes that refute."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spaql.agents import Agent, Design
from spaql.agents.agent_file import verdict_file
from spaql.errors import SettingError
from spaql.figures.drawing import register
from spaql.figures.style import GREY, draw_grid, mark_quarter_turns, new_figure
from spaql.verify.replay import played_with_actions
from spaql.verify.statement import box_text
from spaql.verify.stored import verdict_about, verified_loop
from spaql.verify.verdict import (
    PROVEN,
    REFUTED,
    UNDECIDED,
    Verdict,
    percent,
    worst_status,
    worst_times,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


_AFTER = 20
"""Steps that are drawn after the one at which the statement is seen to be false."""
_LINE = "#0072B2"
_BAND = "#7fcfb4"
_FAULT = "#D55E00"


@dataclass(frozen=True)
class EpisodePanel:
    """One number of the state, or of the action."""

    name: str
    values: tuple[float, ...]
    """At each step."""
    low: float
    """Lower end of what is asked of it; -inf where nothing is."""
    high: float
    asked: str
    """`target` or `allowed`; empty where nothing is asked of it."""


@dataclass(frozen=True)
class CounterexampleRecord:
    """The data of a figure of an episode that refutes a statement."""

    title: str
    note: str
    step: int
    """At which the statement is seen to be false."""
    panels: tuple[EpisodePanel, ...]
    is_action: tuple[bool, ...]
    """Of each panel."""


def compute_counterexample(path: Path, source: Agent | Design) -> CounterexampleRecord:
    """Return the record of the counterexample that the last `spaql verify` of a run found, played again.

    Parameters
    ----------
    path
        The model file or run folder.
    source
        The agent or controller in it.
    """
    verdict = verdict_about(verdict_file(path), source)
    if verdict is None:
        raise SettingError(f"Nothing was verified of {path} yet: `spaql verify {path}` looks for one.")
    counterexample = verdict.counterexample
    if counterexample is None:
        raise SettingError(f"No counterexample was found when {path} was verified: {verdict.sentence}.")
    loop = verified_loop(verdict, source)
    episode = played_with_actions(loop.dynamics, loop.tree, counterexample.start, delayed=verdict.delayed)
    steps = list(islice(episode, counterexample.step + 1 + _AFTER))
    if steps[counterexample.step][0] != counterexample.state:
        raise SettingError(
            "The episode is not the one that was found: it has another state at step "
            f"{counterexample.step:,}. The machine computes differently: run `spaql verify` again."
        )
    ended = next((k for k, (_, over, _) in enumerate(steps) if over), len(steps) - 1)
    if verdict.statement.termination != "ignored":
        steps = steps[: max(ended, counterexample.step) + 1]
    turns = loop.arrays.period.tolist()
    states = np.array([state for state, _, _ in steps])
    panels = [
        _panel(verdict, name, states[:, j].tolist(), turns[j])
        for j, name in enumerate(loop.names[: loop.dynamics.state_dims])
    ]
    listed = len(steps[0][2]) == 1 and not hasattr(loop.dynamics.actions, "keys")
    names = ["action"] if listed else list(loop.dynamics.actions)
    actions = [
        EpisodePanel(name, tuple(action[k] for _, _, action in steps), -math.inf, math.inf, "")
        for k, name in enumerate(names)
    ]
    return CounterexampleRecord(
        f"{verdict.plant}: a counterexample",
        _note(verdict),
        counterexample.step,
        (*panels, *actions),
        (False,) * len(panels) + (True,) * len(actions),
    )


def _note(verdict: Verdict) -> str:
    counterexample = verdict.counterexample
    assert counterexample is not None
    text = (
        f"Refuted: from {box_text(verdict.statement.starts, wider=False)}{verdict.disturbed}, "
        f"{verdict.sentence}. From the state {', '.join(f'{x:.6g}' for x in counterexample.start)}, "
        f"{counterexample.why}."
    )
    return textwrap.fill(text, 105)


def _panel(verdict: Verdict, name: str, values: list[float], period: float) -> EpisodePanel:
    asked = verdict.statement
    box = {**(asked.target or {}), **asked.allowed}
    word = "target" if name in (asked.target or {}) else "allowed" if name in asked.allowed else ""
    low, high = box.get(name, (-math.inf, math.inf))
    if period > 0.0:  # an angle is drawn on the turn of what is asked of it
        middle = 0.5 * (low + high) if math.isfinite(low + high) else 0.0
        values = [x - math.floor((x - middle) / period + 0.5) * period for x in values]
    return EpisodePanel(name, tuple(values), low, high, word)


def draw_counterexample(record: CounterexampleRecord) -> Figure:
    """Draw a panel for each number and action, above each other, with what is asked of it as a band."""
    figure = new_figure(record.title, record.note, 1.4 + 1.5 * len(record.panels))
    panels = figure.subplots(len(record.panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, panel, is_action in zip(panels, record.panels, record.is_action, strict=True):
        _draw_panel(ax, panel, record.step, is_action)
    panels[-1].set_xlabel("step")
    return figure


def _draw_panel(ax: Axes, panel: EpisodePanel, step: int, is_action: bool) -> None:
    values = np.array(panel.values)
    jumps = np.abs(np.diff(values, prepend=values[0])) > 0.9 * max(float(np.ptp(values)), 1e-300)
    shown = values if is_action else np.where(jumps & (np.arange(len(values)) > 0), np.nan, values)
    ax.plot(np.arange(len(values)), shown, color=_LINE, drawstyle="steps-post" if is_action else "default")
    ax.axvline(step, color=_FAULT, linewidth=1.0, linestyle=":")
    if panel.asked:
        ends = [end for end in (panel.low, panel.high) if math.isfinite(end)]
        ax.axhspan(
            max(panel.low, float(values.min()) - 1.0) if math.isinf(panel.low) else panel.low,
            min(panel.high, float(values.max()) + 1.0) if math.isinf(panel.high) else panel.high,
            color=_BAND,
            alpha=0.35,
            linewidth=0,
            label=panel.asked,
        )
        for end in ends:
            ax.axhline(end, color=GREY, linewidth=0.6)
        ax.legend(loc="upper right", fontsize=8.5)
    ax.set_ylabel(panel.name)
    ax.margins(x=0.01)


register("counterexample", CounterexampleRecord, draw_counterexample)
