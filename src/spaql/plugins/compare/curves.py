"""Return against interactions: PlanTree and other algorithms on one problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaql.errors import SettingError
from spaql.figures.drawing import register
from spaql.figures.style import COLOURS, GREY, MARKERS, algorithm_label, count, label_ends, new_figure, number
from spaql.plugins.compare.ranking import Standing, Standings
from spaql.plugins.compare.study import ALGORITHMS
from spaql.stats import mean_ci95

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CLOSE = 0.15
"""Share of the range of returns, from the best down, that the enlarged panel shows."""
_INCHES = (2.5, 2.3)
"""Heights of the two panels."""


@dataclass(frozen=True)
class AlgorithmCurve:
    """The returns of an algorithm: means over the seeds, with 95 % intervals."""

    algorithm: str
    interactions: tuple[float, ...]
    mean: tuple[float, ...]
    ci95: tuple[float, ...]
    seeds: tuple[int, ...]
    """Of each point: PlanTree has a run per point, the others one run for all points."""


@dataclass(frozen=True)
class ComparisonRecord:
    """The data of a figure of the comparison."""

    title: str
    note: str
    problem: str
    curves: tuple[AlgorithmCurve, ...]
    textbook: tuple[float, ...]
    """The mean return of the textbook's controller, if there is one; it needs no interactions."""


def compute_comparison(found: Standings, problem: str) -> ComparisonRecord:
    """Compute the record of a problem."""
    lines = [found[problem, name] for name in ALGORITHMS if (problem, name) in found]
    if not lines:
        raise SettingError(f"No run on {problem} is finished: leave out `--only report`.")
    note = (
        "Each point: fresh episodes of the policy as it was then. Bands and bars: 95 % interval over seeds.\n"
        "Interactions are all steps taken to learn; the episodes that measure are not counted."
    )
    textbook = found.get((problem, "classical"), ())
    return ComparisonRecord(
        f"{problem}: return against interactions",
        note,
        problem,
        tuple(_curve(line) for line in lines if line[0].algorithm != "classical"),
        tuple(float(standing.returns.mean()) for standing in textbook),
    )


def _curve(line: Sequence[Standing]) -> AlgorithmCurve:
    means, halves = zip(*(mean_ci95(standing.returns) for standing in line), strict=True)
    return AlgorithmCurve(
        line[0].algorithm,
        tuple(float(standing.interactions.mean()) for standing in line),
        means,
        halves,
        tuple(standing.seeds for standing in line),
    )


def draw_comparison(record: ComparisonRecord) -> Figure:
    """Draw all returns and, above them, the best ones enlarged; each label is where its curve's end shows."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    figure = new_figure(record.title, record.note, 1.6 + sum(_INCHES))
    close, whole = figure.subplots(2, 1, sharex=True, height_ratios=_INCHES)
    means = [mean for curve in record.curves for mean in curve.mean] + list(record.textbook)
    low = min(means)
    high = max(means)
    room = max(high - low, 1.0)
    border = high - _CLOSE * room
    for ax, limits in (
        (close, (border, high + 0.02 * room)),
        (whole, (low - 0.04 * room, high + 0.06 * room)),
    ):
        for level in record.textbook:
            ax.axhline(level, color=GREY, linewidth=1.0, linestyle=(0, (5, 3)))
        for curve in sorted(record.curves, key=lambda curve: curve.algorithm == "plantree"):
            _draw_curve(ax, curve)
        ax.set_ylim(*limits)
        ax.set_ylabel("return")
        ax.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10], integer=True))
        ax.yaxis.set_major_formatter(number)
    steps = [x for curve in record.curves for x in curve.interactions]
    whole.set_xscale("log")
    if steps:  # the textbook's controllers alone have none
        whole.set_xlim(min(steps) / 1.15, max(steps) * 1.15)
    whole.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    whole.minorticks_off()
    whole.xaxis.set_major_formatter(count)
    whole.set_xlabel("interactions (log)")
    close.set_title("the best, larger")
    whole.set_title("all")
    ends = [algorithm_label(curve.mean[-1], _label(curve), curve.algorithm) for curve in record.curves]
    ends += [
        algorithm_label(level, f"{number(level)}  no interactions", "classical") for level in record.textbook
    ]
    label_ends(close, [end for end in ends if end[0] >= border], _INCHES[0])
    label_ends(whole, [end for end in ends if end[0] < border], _INCHES[1])
    return figure


def _label(curve: AlgorithmCurve) -> str:
    seeds = f"{curve.seeds[-1]} seed{'s' if curve.seeds[-1] > 1 else ''}"
    return f"{number(curve.mean[-1])} at {count(curve.interactions[-1])}, {seeds}"


def _draw_curve(ax: Axes, curve: AlgorithmCurve) -> None:
    """Draw a line in its band; PlanTree as points with bars, because each point has its own runs."""
    colour = COLOURS[curve.algorithm]
    marker = MARKERS[curve.algorithm]
    mean = np.array(curve.mean)
    half = np.array(curve.ci95)
    if curve.algorithm == "plantree":
        ax.errorbar(
            curve.interactions,
            mean,
            half,
            color=colour,
            fmt=f"{marker}-",
            markersize=6,
            linewidth=1.8,
            zorder=5,
        )
        return
    ax.fill_between(curve.interactions, mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
    ax.plot(curve.interactions, mean, color=colour, marker=marker, markersize=3.5, linewidth=1.2)


register("rivals", ComparisonRecord, draw_comparison)
