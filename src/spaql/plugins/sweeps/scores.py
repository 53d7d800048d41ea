"""Final scores of any study, by algorithm and problem, and performance profiles."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.figures.drawing import register
from spaql.figures.style import GREY, distinct_colours, name_of, new_figure, number_ticks, short_number
from spaql.plugins.sweeps.groups import Floats, Group, in_order, interval_note, study_groups, wrapped
from spaql.plugins.sweeps.store import RunStore
from spaql.stats import bootstrap_ci95, mean_ci95

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SPREAD = 0.22
"""Spread of the seeds of a group, as a share of the distance of two rows."""
_LEVELS = 201
"""Scores at which a profile is computed."""
_FAR = 0.5
"""How far below 0 and above 1 scores are shown."""
_RESAMPLES = 2_000


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


@dataclass(frozen=True)
class Profile:
    """The runs of an algorithm on all problems."""

    label: str
    algorithm: str
    share: tuple[float, ...]
    """Of the runs whose score is at least the level, at each of the levels; problems have equal weights."""
    low: tuple[float, ...]
    """Lower end of its 95 % interval; NaN if a problem has only one seed."""
    high: tuple[float, ...]


@dataclass(frozen=True)
class ProfileRecord:
    """The data of a figure of performance profiles."""

    title: str
    note: str
    problems: tuple[str, ...]
    lowest: tuple[float, ...]
    """Of each problem, the mean return that has the score 0."""
    highest: tuple[float, ...]
    """The one that has the score 1."""
    levels: tuple[float, ...]
    profiles: tuple[Profile, ...]


def compute_profile(study: str | os.PathLike[str], *, title: str = "Performance profiles") -> ProfileRecord:
    """Return the record of a study, the folder that `spaql.sweep` wrote to.

    A score is a run's fresh return, scaled so that on each problem the lowest mean of a group is 0 and the
    highest 1. A profile is the share of runs with at least a score (Agarwal et al., 2021).
    """
    groups = study_groups(RunStore(study))
    every_problem, labels = in_order(groups)
    by_key = {(group.problem, group.label): group for group in groups}
    ends = {problem: _ends(groups, problem) for problem in every_problem}
    problems = [problem for problem in every_problem if ends[problem][0] < ends[problem][1]]
    whole = [label for label in labels if all((problem, label) in by_key for problem in problems)]
    if not problems or len(whole) < 2:
        raise SettingError(
            f"A profile compares algorithms that were run on the same problems and differ somewhere, and "
            f"{Path(study)} has no two of them: draw scores."
        )
    scores = {
        label: [
            (by_key[problem, label].fresh - ends[problem][0]) / (ends[problem][1] - ends[problem][0])
            for problem in problems
        ]
        for label in whole
    }
    every = np.concatenate([score for own in scores.values() for score in own])
    levels = np.linspace(max(min(0.0, every.min()), -_FAR), min(max(1.0, every.max()), 1 + _FAR), _LEVELS)
    kept = [by_key[problem, label] for problem in problems for label in whole]
    return ProfileRecord(
        title,
        _profile_note(kept, ends, problems, every_problem, labels, whole),
        tuple(problems),
        tuple(ends[problem][0] for problem in problems),
        tuple(ends[problem][1] for problem in problems),
        tuple(levels.tolist()),
        tuple(_profile(label, labels[label], scores[label], levels) for label in whole),
    )


def _ends(groups: Sequence[Group], problem: str) -> tuple[float, float]:
    means = [float(group.fresh.mean()) for group in groups if group.problem == problem]
    return min(means), max(means)


def _profile(label: str, algorithm: str, scores: Sequence[Floats], levels: Floats) -> Profile:
    def share(*runs: NDArray[Any], axis: int, level: float) -> Floats:
        shares = np.array([(of_problem >= level).mean(axis) for of_problem in runs])
        return np.asarray(shares.mean(axis=0))

    shares = [float(share(*scores, axis=-1, level=level)) for level in levels]
    intervals = [(math.nan, math.nan)] * len(levels)
    if min(map(len, scores)) > 1:
        intervals = [
            bootstrap_ci95(
                lambda *runs, axis, level=level: share(*runs, axis=axis, level=level),
                *scores,
                seed=0,
                resamples=_RESAMPLES,
            )
            for level in levels
        ]
    low, high = zip(*intervals, strict=True)
    return Profile(label, algorithm, tuple(shares), low, high)


def _profile_note(
    kept: Sequence[Group],
    ends: dict[str, tuple[float, float]],
    problems: Sequence[str],
    every_problem: Sequence[str],
    labels: dict[str, str],
    whole: Sequence[str],
) -> str:
    """Return a note on how scores are scaled, and what is not shown."""
    scaled = "; ".join(
        f"{name_of(problem)}: {' and '.join(map(short_number, ends[problem]))}" for problem in problems
    )
    same = ", ".join(name_of(problem) for problem in every_problem if problem not in problems)
    partly = ", ".join(label for label in labels if label not in whole)
    return wrapped(
        "Score: fresh return of a run, scaled so that 0 is the lowest and 1 the highest mean of an algorithm "
        f"on the problem ({scaled}). Problems count alike.",
        interval_note("Bands", kept, "stratified bootstrap, at each score"),
        f"Left out, because all algorithms have the same mean: {same}." if same else "",
        f"Left out, because they were not run on every problem: {partly}." if partly else "",
    )


def draw_profile(record: ProfileRecord) -> Figure:
    """Draw a line for each algorithm: higher is better."""
    figure = new_figure(record.title, record.note, 4.6)
    ax = figure.subplots()
    for level in (0.0, 1.0):
        ax.axvline(level, color=GREY, linewidth=0.8, linestyle=(0, (5, 3)))
    colours = distinct_colours([profile.algorithm for profile in record.profiles])
    for profile, colour in zip(record.profiles, colours, strict=True):
        ax.fill_between(record.levels, profile.low, profile.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(record.levels, profile.share, color=colour, label=profile.label)
    ax.set(xlabel="score", ylabel="share of runs with at least this score")
    ax.set_xlim(record.levels[0], record.levels[-1])
    ax.set_ylim(0, 1.02)
    ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


register("scores", ScoresRecord, draw_scores)
register("profile", ProfileRecord, draw_profile)
