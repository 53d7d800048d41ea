"""The episode that refutes a statement: every number of the state, and the actions, over the steps."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spaql.agents import Agent, Design
from spaql.agents.agent_file import verdict_file
from spaql.errors import SettingError
from spaql.figures.drawing import register
from spaql.figures.style import GREY, new_figure
from spaql.verify.replay import played_with_actions
from spaql.verify.statement import box_text
from spaql.verify.stored import verdict_about, verified_loop
from spaql.verify.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
