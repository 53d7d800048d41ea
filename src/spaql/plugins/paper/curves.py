"""Return and arms while agents learn (figures 2, 4, 7, and with TRPO 9 and 10 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spaql.figures.drawing import register
from spaql.figures.style import COLOURS, GREY, MARKERS, algorithm_label, count, label_ends, new_figure, number
from spaql.plugins.paper.study import VARIANTS, Size, long_runs, random_baseline, trpo_runs
from spaql.plugins.sweeps.groups import check_finished, fresh_returns, histories, thinned
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.store import RunStore
from spaql.stats import mean_ci95

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TOGETHER = 0.1
"""Relative difference of steps below which two curves count as ending at the same place."""
_APART = 5.5
"""Distance of two markers of fresh returns, in points."""
_ROOM = 0.15
"""Margin right of the curves, as a share of the axis of steps."""


@dataclass(frozen=True)
class Curve:
    """An algorithm over its iterations; every number is a mean over the seeds, with its 95 % interval."""

    algorithm: str
    shows: str
    """The column of the history in `mean`."""
    iteration: tuple[int, ...]
    training_steps: tuple[float, ...]
    interactions: tuple[float, ...]
    mean: tuple[float, ...]
    ci95: tuple[float, ...]
    arms: tuple[float, ...]
    """Empty where the figure shows none."""
    arms_ci95: tuple[float, ...]
    fresh_mean: float
    """Of fresh episodes of the agents that were kept; `best_return` is biased upwards."""
    fresh_ci95: float


@dataclass(frozen=True)
class CurvesRecord:
    """The data of a figure of learning."""

    title: str
    note: str
    problem: str
    curves: tuple[Curve, ...]
    random_mean: float
    random_ci95: float


def compute_curves(
    store: RunStore, size: Size, problem: str, title: str, *, trpo: bool = False
) -> CurvesRecord:
    """Return the record of a problem: with the arms, or with TRPO if its runs are finished."""
    runs = [run for run in long_runs(size) if run.problem == problem]
    trpo_only = [run for run in trpo_runs(size) if run.problem == problem] if trpo else []
    missing = len(store.missing(trpo_only))
    groups: dict[str, list[Run]] = {}
    for run in runs + ([] if missing else trpo_only):
        groups.setdefault(run.algorithm, []).append(run)
    check_finished(store, runs)
    note = (
        "Lines: best mean return seen so far (SPAQL, SPAQL-TS), mean return of the current agent "
        f"({'AQL' if missing or not trpo else 'AQL, TRPO'}).\n"
        f"Markers, and numbers on the right: {size.fresh_episodes} fresh episodes of each agent at the end. "
        f"Bands and bars: 95 % interval over {size.seeds} agents."
    )
    if missing:
        title += " (not yet finished)"
        note += f"\nTRPO is left out: {missing} of its {len(trpo_only)} runs are not finished."
    curves = (_curve(store, algorithm, own, arms=not trpo) for algorithm, own in groups.items())
    return CurvesRecord(title, note, problem, tuple(curves), *random_baseline(problem, size))


def _curve(store: RunStore, algorithm: str, runs: Sequence[Run], *, arms: bool) -> Curve:
    history = histories(store, runs)
    kept = thinned(history["iteration"].shape[1])
    shows = "best_return" if algorithm in VARIANTS else "mean_return"

    def points(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        means, halves = zip(*(mean_ci95(history[name][:, i]) for i in kept), strict=True)
        return means, halves

    return Curve(
        algorithm,
        shows,
        tuple(int(i) for i in history["iteration"][0, kept]),
        points("training_steps")[0],
        points("interactions")[0],
        *points(shows),
        *(points("arms") if arms else ((), ())),
        *mean_ci95(fresh_returns(store, runs)),
    )


def draw_curves(record: CurvesRecord) -> Figure:
    """Draw the return, and the arms if there are any, against training steps and against interactions."""
    curves = record.curves
    with_arms = bool(curves[0].arms)
    figure = new_figure(record.title, record.note, 6.4 if with_arms else 4.2)
    axes = figure.subplots(2 if with_arms else 1, 2, sharex="col", sharey="row", squeeze=False)
    for column, x in enumerate(("training_steps", "interactions")):
        _draw_returns(figure, axes[0, column], record, x)
        if with_arms:
            _draw_arms(axes[1, column], record, x)
    _set_steps(axes[-1, 0], [curve.training_steps for curve in curves], log=False)
    _set_steps(axes[-1, 1], [curve.interactions for curve in curves], log=True)
    axes[0, 0].set_title("by training steps, evaluations left out")
    axes[0, 1].set_title("by all steps, evaluations included (log)")
    axes[0, 0].set_ylabel("return")
    axes[0, 0].yaxis.set_major_formatter(number)
    ends = [(curve.fresh_mean, curve.algorithm) for curve in curves] + [(record.random_mean, "random")]
    label_ends(axes[0, 1], [algorithm_label(mean, number(mean), name) for mean, name in ends], 2.2)
    if with_arms:
        axes[1, 0].set_ylabel("arms (log)")
        axes[1, 0].set_yscale("log")
        axes[1, 0].yaxis.set_major_formatter(count)
        axes[1, 0].minorticks_off()
        arms = [(curve.arms[-1], curve.algorithm) for curve in curves]
        label_ends(axes[1, 1], [algorithm_label(mean, count(mean), name) for mean, name in arms], 2.2)
    return figure


def _draw_returns(figure: Figure, ax: Axes, record: CurvesRecord, x: str) -> None:
    """Draw the curves and, right of their ends, the fresh returns: side by side where curves end together."""
    from matplotlib.transforms import offset_copy

    ax.axhline(record.random_mean, color=GREY, linewidth=0.8)
    ends: list[float] = []
    for curve in record.curves:
        steps = getattr(curve, x)
        colour = COLOURS[curve.algorithm]
        ends.append(steps[-1])
        place = sum(math.isclose(end, steps[-1], rel_tol=_TOGETHER) for end in ends)
        _draw_band(ax, steps, curve.mean, curve.ci95, colour)
        ax.errorbar(
            steps[-1],
            curve.fresh_mean,
            curve.fresh_ci95,
            color=colour,
            fmt=MARKERS[curve.algorithm],
            markersize=5.5,
            markerfacecolor="white",
            zorder=5,
            transform=offset_copy(ax.transData, figure, x=_APART * place, units="points"),
        )


def _draw_arms(ax: Axes, record: CurvesRecord, x: str) -> None:
    for curve in record.curves:
        _draw_band(ax, getattr(curve, x), curve.arms, curve.arms_ci95, COLOURS[curve.algorithm], least=1.0)


def _draw_band(
    ax: Axes,
    x: Sequence[float],
    mean: Sequence[float],
    half: Sequence[float],
    colour: str,
    least: float = -math.inf,
) -> None:
    """Draw a line in its band, which is cut at the lowest possible value."""
    middle = np.array(mean)
    width = np.array(half)
    ax.fill_between(
        x, np.maximum(middle - width, least), middle + width, color=colour, alpha=0.18, linewidth=0
    )
    ax.plot(x, middle, color=colour)


def _set_steps(ax: Axes, steps: Sequence[Sequence[float]], *, log: bool) -> None:
    """Set up the axis of steps, with room for the markers on the right."""
    low = min(s[0] for s in steps)
    high = max(s[-1] for s in steps)
    if log:
        ax.set_xscale("log")
        ax.set_xlim(low, high * (high / low) ** _ROOM)
        ax.minorticks_off()
        ax.set_xlabel("environment steps")
    else:
        ax.set_xlim(0, high * (1 + _ROOM))
        ax.set_xlabel("training steps")
    ax.xaxis.set_major_formatter(count)


register("curves", CurvesRecord, draw_curves)
