"""Return against interactions, of any study."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spaql.errors import SettingError
from spaql.figures.drawing import register
from spaql.figures.style import (
    MARKERS,
    count,
    distinct_colours,
    label_ends,
    name_of,
    new_figure,
    number_ticks,
    short_number,
)
from spaql.plugins.sweeps.curve import CURVE
from spaql.plugins.sweeps.groups import Floats, Group, interval_note, study_groups, thinned, wrapped
from spaql.plugins.sweeps.store import RunStore, read_columns, read_history
from spaql.stats import mean_ci95

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROWS = 60
"""Points to which the history of a run is averaged."""
_MOST = 8
"""Lines of a panel, each in its own colour."""
_LOG_FROM = 20.0
"""The ratio of the longest run to the shortest from which the axis of interactions is logarithmic."""
_INCHES = 2.7
"""The height of a panel."""
_TOGETHER = 0.05
"""Relative difference of interactions below which two markers are set apart."""
_APART = 6.0
"""Distance of two such markers, in points."""
_ROOM = 0.04
"""Margin for each of them, as a share of the axis of interactions."""

_SHOWN = {
    "curve": "fresh episodes of the policy as it was then",
    "evaluations": "evaluations of the agent as it was then",
    "training": "training episodes as they were played",
    "end": "the end alone",
}


@dataclass(frozen=True)
class MeanCurve:
    """A group of runs; every number is a mean over the seeds, with its 95 % interval (NaN for one seed)."""

    label: str
    algorithm: str
    shows: str
    """The source of the returns before the end: `curve`, `evaluations`, `training`, or `end` if none."""
    seeds: int
    interactions: tuple[float, ...]
    mean: tuple[float, ...]
    ci95: tuple[float, ...]
    end: float
    """Interactions at the end."""
    fresh_mean: float
    """Of fresh episodes at the end."""
    fresh_ci95: float


@dataclass(frozen=True)
class CurvesPanel:
    """The groups on a problem."""

    problem: str
    lines: tuple[MeanCurve, ...]


@dataclass(frozen=True)
class LearningCurvesRecord:
    """The data of a figure of a study's learning curves."""

    title: str
    note: str
    panels: tuple[CurvesPanel, ...]


def compute_learning_curves(
    study: str | os.PathLike[str], *, title: str = "Return against interactions"
) -> LearningCurvesRecord:
    """Return the record of a study, the folder that `spaql.sweep` wrote to.

    The returns of a run are those of its `curve.csv` if it has one (`Run.evaluate_at`), and otherwise those
    of its history, averaged to 60 points at most.

    Examples
    --------
    >>> import tempfile, spaql
    >>> runs = spaql.grid(["cartpole200"], ["spaql"], seeds=2, iterations=2, settings={"rollouts": 2})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = spaql.sweep(runs, folder, workers=1, progress_bar=False)
    ...     [line.seeds for line in compute_learning_curves(folder).panels[0].lines]
    [2]
    """
    groups = study_groups(RunStore(study))
    panels = []
    early = False
    for problem in dict.fromkeys(group.problem for group in groups):
        own = [group for group in groups if group.problem == problem]
        if len(own) > _MOST:
            raise SettingError(
                f"{Path(study)} has {len(own)} groups of runs on {problem}, and there is room for {_MOST} "
                "curves: draw a folder in it."
            )
        lines = [_line(group) for group in own]
        early = early or any(differ for _, differ in lines)
        panels.append(CurvesPanel(problem, tuple(line for line, _ in lines)))
    return LearningCurvesRecord(title, _note(panels, groups, early), tuple(panels))


def _note(panels: Sequence[CurvesPanel], groups: Sequence[Group], early: bool) -> str:
    shown: dict[str, dict[str, None]] = {}
    for panel in panels:
        for line in panel.lines:
            shown.setdefault(line.shows if line.end else "level", {})[line.label] = None
    kinds = [kind for kind in _SHOWN if kind in shown]
    lines = "; ".join(
        _SHOWN[kind] + (f" ({', '.join(shown[kind])})" if len(kinds) > 1 else "") for kind in kinds
    )
    return wrapped(
        f"Lines: {lines}." if lines else "",
        f"Markers: fresh episodes at the end. {interval_note('Bands and bars', groups)}",
        "Dashed: fresh episodes of what takes no interactions." if "level" in shown else "",
        "A run that ended before others counts on with its last return." if early else "",
    )


def _line(group: Group) -> tuple[MeanCurve, bool]:
    """Return the line of a group, and whether some of its runs ended much earlier than others."""
    runs = [_points(folder, result) for folder, result in zip(group.folders, group.results, strict=True)]
    ends = np.array([result["interactions"] for result in group.results], np.float64)
    places = np.unique(np.concatenate([steps for _, steps, _ in runs]))
    places = places[places >= max(steps[0] for _, steps, _ in runs)]
    places = places[thinned(len(places))]
    # After its end, a run keeps its last policy.
    values = np.array([np.interp(places, steps, returns) for _, steps, returns in runs])
    means, halves = zip(*(mean_ci95(column) for column in values.T), strict=True)
    line = MeanCurve(
        group.label,
        group.algorithm,
        runs[0][0],
        len(runs),
        tuple(places.tolist()),
        means,
        halves,
        float(ends.mean()),
        *mean_ci95(group.fresh),
    )
    return line, bool(ends.min() < 0.95 * ends.max())


def _points(folder: Path, result: dict[str, Any]) -> tuple[str, Floats, Floats]:
    """Return the source of a run's returns, the interactions of each, and the returns."""
    if (folder / CURVE).exists():
        table = read_columns(folder / CURVE)
        return "curve", table["interactions"], table["mean_return"]
    table = read_history(folder) if (folder / "history.csv").exists() else {"mean_return": np.empty(0)}
    whole = np.isfinite(table["mean_return"])  # the budget may have cut the last episode
    if not whole.any():
        return "end", np.array([float(result["interactions"])]), np.array([float(result["fresh_return"])])
    table = {name: column[whole] for name, column in table.items()}
    steps = table["interactions"]
    returns = table["mean_return"]
    played = bool((steps == table["training_steps"]).all())
    parts = np.array_split(np.arange(len(steps)), min(len(steps), _ROWS))
    means = [np.array([column[part].mean() for part in parts]) for column in (steps, returns)]
    return "training" if played else "evaluations", means[0], means[1]


def draw_learning_curves(record: LearningCurvesRecord) -> Figure:
    """Draw a panel for each problem, with the name of every line at its end."""
    columns = min(2, len(record.panels))
    rows = math.ceil(len(record.panels) / columns)
    figure = new_figure(record.title, record.note, 1.1 + rows * _INCHES)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    algorithms = {line.label: line.algorithm for panel in record.panels for line in panel.lines}
    colours = dict(zip(algorithms, distinct_colours(list(algorithms.values())), strict=True))
    for ax, panel in zip(axes, record.panels, strict=False):
        _draw_panel(ax, panel, colours)
    for ax in axes[len(record.panels) :]:
        ax.set_axis_off()
    for ax in axes[::columns]:
        ax.set_ylabel("return")
    return figure


def _draw_panel(ax: Axes, panel: CurvesPanel, colours: dict[str, str]) -> None:
    ends: list[float] = []
    place = most = 0
    for line in panel.lines:
        place = sum(math.isclose(end, line.end, rel_tol=_TOGETHER) for end in ends)
        ends.append(line.end)
        most = max(most, place)
        _draw_line(ax, line, colours[line.label], _APART * place)
    ax.set_title(name_of(panel.problem))
    ax.set_xlabel("interactions")
    room = 1.02 + _ROOM * most
    learned = [end for end in ends if end > 0] or [1.0]
    if max(learned) > _LOG_FROM * min(learned):
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ax.set_xlim(low, high * (high / low) ** (room - 1.0))
        ax.minorticks_off()
        ax.set_xlabel("interactions (log)")
    else:
        ax.set_xlim(0, room * max(learned))
    ax.xaxis.set_major_formatter(count)
    ax.yaxis.set_major_formatter(number_ticks())
    ax.set_ylim(*_limits(panel))
    labels = [
        (line.fresh_mean, f"{line.label}  {short_number(line.fresh_mean)}", colours[line.label])
        for line in panel.lines
    ]
    label_ends(ax, labels, _INCHES - 0.7)


def _limits(panel: CurvesPanel) -> tuple[float, float]:
    """Return the ends of the axis: all means and bars are within; a band that is wider is cut."""
    values = [mean for line in panel.lines for mean in line.mean]
    for line in panel.lines:
        half = 0.0 if math.isnan(line.fresh_ci95) else line.fresh_ci95
        values += [line.fresh_mean - half, line.fresh_mean + half]
    room = 0.06 * ((max(values) - min(values)) or 1.0)
    return min(values) - room, max(values) + room


def _draw_line(ax: Axes, line: MeanCurve, colour: str, offset: float) -> None:
    """Draw a line in its band, and the fresh return at its end; a level if it takes no interactions."""
    from matplotlib.transforms import ScaledTranslation

    if line.end == 0:
        ax.axhline(line.fresh_mean, color=colour, linestyle=(0, (5, 3)), linewidth=1.0)
        return
    mean = np.array(line.mean)
    half = np.array(line.ci95)
    ax.fill_between(line.interactions, mean - half, mean + half, color=colour, alpha=0.18, linewidth=0)
    ax.plot(line.interactions, mean, color=colour)
    ax.errorbar(
        line.end,
        line.fresh_mean,
        line.fresh_ci95,
        color=colour,
        fmt=MARKERS.get(line.algorithm, "o"),
        markersize=5.5,
        markerfacecolor="white",
        zorder=5,
        clip_on=False,
        transform=ax.transData + ScaledTranslation(offset / 72, 0, ax.figure.dpi_scale_trans),
    )


register("learning-curves", LearningCurvesRecord, draw_learning_curves)
