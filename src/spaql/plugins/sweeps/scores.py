"""Final scores of any study, by algorithm and problem."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaql.figures.drawing import register
from spaql.figures.style import distinct_colours, name_of, new_figure, number_ticks, short_number
from spaql.plugins.sweeps.groups import in_order, interval_note, study_groups, wrapped
from spaql.plugins.sweeps.store import RunStore
from spaql.stats import mean_ci95

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SPREAD = 0.22
"""Spread of the seeds of a group, as a share of the distance of two rows."""


@dataclass(frozen=True)
class Score:
    """The runs of an algorithm on a problem."""

    label: str
    algorithm: str
    returns: tuple[float, ...]
    """Of fresh episodes, one for each seed."""
    mean: float
    ci95: float
    """Half-width of Student's 95 % interval, NaN for one seed."""


@dataclass(frozen=True)
class ScoresPanel:
    """The groups on a problem."""

    problem: str
    scores: tuple[Score, ...]


@dataclass(frozen=True)
class ScoresRecord:
    """The data of a figure of final scores."""

    title: str
    note: str
    panels: tuple[ScoresPanel, ...]


def compute_scores(study: str | os.PathLike[str], *, title: str = "Final scores") -> ScoresRecord:
    """Return the record of a study, the folder that `spaql.sweep` wrote to."""
    groups = study_groups(RunStore(study))
    problems, labels = in_order(groups)
    panels = [
        ScoresPanel(
            problem,
            tuple(
                Score(label, group.algorithm, tuple(group.fresh.tolist()), *mean_ci95(group.fresh))
                for label in labels
                for group in groups
                if (group.problem, group.label) == (problem, label)
            ),
        )
        for problem in problems
    ]
    note = wrapped(
        f"Points: mean return of fresh episodes at the end, a seed each. {interval_note('Bars', groups)}"
    )
    return ScoresRecord(title, note, tuple(panels))


def draw_scores(record: ScoresRecord) -> Figure:
    """Draw a panel for each problem, with a row for each algorithm."""
    algorithms = {score.label: score.algorithm for panel in record.panels for score in panel.scores}
    colours = dict(zip(algorithms, distinct_colours(list(algorithms.values())), strict=True))
    columns = min(2, len(record.panels))
    rows = math.ceil(len(record.panels) / columns)
    figure = new_figure(record.title, record.note, 0.9 + rows * (0.75 + 0.36 * len(algorithms)))
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    places = {label: place for place, label in enumerate(algorithms)}
    for ax, panel in zip(axes, record.panels, strict=False):
        for score in panel.scores:
            _draw_score(ax, score, places[score.label], colours[score.label])
        ax.set_title(name_of(panel.problem))
        ax.set_xlabel("return")
        ax.grid(visible=False, axis="y")
        ax.grid(visible=True, axis="x")
        ax.margins(x=0.08)
        ax.xaxis.set_major_formatter(number_ticks())
    for ax in axes[len(record.panels) :]:
        ax.set_axis_off()
    axes[0].set_ylim(len(algorithms) - 0.5, -0.5)
    axes[0].set_yticks(list(places.values()), list(places))
    for ax in axes:
        ax.tick_params(axis="y", length=0)
    return figure


def _draw_score(ax: Axes, score: Score, place: int, colour: str) -> None:
    """Draw the seeds as points, the mean with its bar, and the mean as a number on the right."""
    n = len(score.returns)
    if n > 1:
        spread = np.linspace(-_SPREAD, _SPREAD, n)
        ax.plot(score.returns, place + spread, "o", color=colour, alpha=0.4, markersize=4, markeredgewidth=0)
    ax.errorbar(score.mean, place, xerr=score.ci95, color=colour, fmt="D", markersize=6, linewidth=1.8)
    ax.text(
        1.02,
        place,
        short_number(score.mean),
        color=colour,
        transform=ax.get_yaxis_transform(),
        va="center",
        fontsize=9,
    )


register("scores", ScoresRecord, draw_scores)
