"""How much the return depends on xi (figures 1 and 6 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaql.figures.drawing import register
from spaql.figures.style import COLOURS, GREY, MARKERS, algorithm_label, label_ends, new_figure, number
from spaql.plugins.paper.study import ALGORITHMS, SCALINGS, Size, random_baseline, scaling_runs
from spaql.plugins.sweeps.groups import check_finished, fresh_returns
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.store import RunStore
from spaql.stats import mean_ci95

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_APART = 0.2
"""Distance of two algorithms at one xi, as a share of the distance of two xi."""


@dataclass(frozen=True)
class ScalingSeries:
    """Fresh returns of an algorithm, for each xi, over the seeds."""

    algorithm: str
    mean: tuple[float, ...]
    ci95: tuple[float, ...]
    level: float
    """Mean over all xi but 0."""
    spread: float
    """Standard deviation of the means of all xi but 0."""


@dataclass(frozen=True)
class ScalingPanel:
    """All algorithms on one problem."""

    title: str
    problem: str
    series: tuple[ScalingSeries, ...]
    random: float
    """Mean return of random policies."""


@dataclass(frozen=True)
class ScalingRecord:
    """The data of a figure of xi."""

    title: str
    note: str
    scalings: tuple[float, ...]
    panels: tuple[ScalingPanel, ...]


def compute_scaling(
    store: RunStore, size: Size, title: str, panels: Sequence[tuple[str, str]]
) -> ScalingRecord:
    """Return the record of problems, each given with the title of its panel."""
    runs = [run for run in scaling_runs(size) if run.problem in dict(panels)]
    check_finished(store, runs)
    note = (
        f"Dots: mean of {size.seeds} agents after {size.scaling_iterations} iterations, each judged by "
        f"{size.fresh_episodes} fresh episodes; bars: 95 % interval.\n"
        "Dashed lines and bands: mean and standard deviation over all ξ but 0."
    )
    return ScalingRecord(
        title,
        note,
        tuple(float(xi) for xi in SCALINGS),
        tuple(
            ScalingPanel(
                text,
                problem,
                tuple(_series(store, runs, problem, algorithm) for algorithm in ALGORITHMS),
                random_baseline(problem, size)[0],
            )
            for problem, text in panels
        ),
    )


def _series(store: RunStore, runs: Sequence[Run], problem: str, algorithm: str) -> ScalingSeries:
    own = [run for run in runs if (run.problem, run.algorithm) == (problem, algorithm)]
    points = [
        mean_ci95(fresh_returns(store, [run for run in own if run.settings["scaling"] == xi]))
        for xi in SCALINGS
    ]
    means, halves = zip(*points, strict=True)
    others = np.array([mean for xi, mean in zip(SCALINGS, means, strict=True) if xi != 0])
    return ScalingSeries(algorithm, means, halves, float(others.mean()), float(others.std(ddof=1)))


def draw_scaling(record: ScalingRecord) -> Figure:
    """Draw a panel for each problem, one above the other."""
    n = len(record.panels)
    figure = new_figure(record.title, record.note, 1.3 + 2.4 * n)
    axes = figure.subplots(n, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for ax, panel in zip(axes, record.panels, strict=True):
        _draw_panel(ax, panel)
        ax.set_title(panel.title)
        ax.set_ylabel("return")
        ax.yaxis.set_major_formatter(number)
    axes[-1].set_xticks(range(len(record.scalings)), [f"{xi:g}" for xi in record.scalings])
    axes[-1].set_xlabel("scaling ξ of the exploration bonus")
    for ax, panel in zip(axes, record.panels, strict=True):
        levels = [(series.level, series.algorithm) for series in panel.series] + [(panel.random, "random")]
        label_ends(ax, [algorithm_label(level, number(level), name) for level, name in levels], 2.2)
    return figure


def _draw_panel(ax: Axes, panel: ScalingPanel) -> None:
    n = len(panel.series[0].mean)
    ax.axvline(0.5, color="#cccccc", linewidth=0.8)
    ax.axhline(panel.random, color=GREY, linewidth=0.8)
    for place, series in enumerate(panel.series):
        colour = COLOURS[series.algorithm]
        x = np.arange(n) + (place - (len(panel.series) - 1) / 2) * _APART
        ends = [0.5, n - 0.5]
        ax.fill_between(
            ends, series.level - series.spread, series.level + series.spread, color=colour, alpha=0.1, lw=0
        )
        ax.plot(ends, [series.level] * 2, color=colour, linestyle="--", linewidth=1.0)
        ax.errorbar(
            x,
            series.mean,
            series.ci95,
            color=colour,
            fmt=MARKERS[series.algorithm],
            markersize=4.5,
            linewidth=1.2,
        )
    ax.set_xlim(-0.5, n - 0.5)
    ax.tick_params(axis="x", length=0)


register("scaling", ScalingRecord, draw_scaling)
