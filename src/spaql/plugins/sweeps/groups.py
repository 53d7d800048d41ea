"""The data of figures, read from a store of runs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.figures.style import name_of
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.store import RunStore, read_history

Floats = NDArray[np.float64]

_NOTE = 108
"""Characters of a line of a note."""
_POINTS = 200
"""Rows of a history that a curve is drawn through."""


def check_finished(store: RunStore, runs: Sequence[Run]) -> None:
    """Refuse runs that are not finished."""
    if missing := store.missing(runs):
        raise SettingError(
            f"{len(missing):,} of {len(runs):,} runs are not finished in {store.root}, {missing[0].id} for "
            "one: sweep them first."
        )


def fresh_returns(store: RunStore, runs: Sequence[Run]) -> Floats:
    """Return the mean return of fresh episodes of each run."""
    return np.array([store.result(run.id)["result"]["fresh_return"] for run in runs])


def histories(store: RunStore, runs: Sequence[Run]) -> dict[str, Floats]:
    """Return the columns of the runs' histories, each with a row per run and a column per iteration."""
    tables = [read_history(store.folder(run)) for run in runs]
    return {name: np.stack([table[name] for table in tables]) for name in tables[0]}


def thinned(n: int) -> NDArray[np.intp]:
    """Return some of n rows: half spaced evenly, half by ratio, for a log axis; and the last.

    Examples
    --------
    >>> kept = thinned(2001)
    >>> bool(len(kept) <= 200), kept[:4].tolist(), int(kept[-1])
    (True, [0, 1, 2, 3], 2000)
    """
    if n <= _POINTS:
        return np.arange(n)
    half = _POINTS // 2
    places = np.concatenate([np.linspace(0, n - 1, half), np.geomspace(1, n - 1, half)])
    return np.unique(places.round().astype(np.intp))


@dataclass(frozen=True)
class Group:
    """The finished runs of a study that differ in their seed alone."""

    problem: str
    algorithm: str
    label: str
    """The algorithm, and the settings that distinguish it from its other groups."""
    folders: tuple[Path, ...]
    results: tuple[dict[str, Any], ...]

    @property
    def fresh(self) -> Floats:
        """The mean return of fresh episodes of each run."""
        return np.array([result["fresh_return"] for result in self.results])


def study_groups(study: RunStore) -> list[Group]:
    """Return the groups of a study, or of a part of it, in the order of its folders."""
    if not study.root.is_dir():
        raise SettingError(f"There is no folder {study.root}.")
    runs: dict[str, list[tuple[Run, Path, dict[str, Any]]]] = {}
    for run_id in study.finished():
        content = study.result(run_id)
        try:
            run = Run(**{**content["run"], "named": tuple(content["run"]["named"])})
        except (TypeError, LookupError) as error:
            raise SettingError(f"{study.root / run_id} holds a run of another version ({error}).") from error
        runs.setdefault(run.group, []).append((run, study.root / run_id, content["result"]))
    if not runs:
        raise SettingError(
            f"No run is finished in {study.root}: give the folder of a study, as `spaql study run` leaves it."
        )
    labels = _labels([group[0][0] for group in runs.values()])
    return [
        Group(
            group[0][0].problem,
            group[0][0].algorithm,
            labels[name],
            tuple(folder for _, folder, _ in group),
            tuple(result for _, _, result in group),
        )
        for name, group in runs.items()
    ]


def _labels(runs: Sequence[Run]) -> dict[str, str]:
    """Return a label of each group: its algorithm and, if it has several on a problem, what differs."""
    labels = {}
    for run in runs:
        named = {
            other.group: set(other.group.split("/")[2:]) for other in runs if other.algorithm == run.algorithm
        }
        alone = len(named) == len({other.problem for other in runs if other.group in named})
        shared = set.intersection(*named.values())
        own = [part for part in run.group.split("/")[2:] if part not in shared and not alone]
        labels[run.group] = " ".join([name_of(run.algorithm.rpartition(":")[2]), *own])
    return labels


def wrapped(*sentences: str) -> str:
    """Return sentences as a note, each on a line of its own, or on several if it is too long for one."""
    return "\n".join(textwrap.fill(sentence, _NOTE) for sentence in sentences if sentence)


def interval_note(marks: str, groups: Sequence[Group]) -> str:
    """Return a note on the kind of interval, the number of seeds, and where there is none."""
    counts = sorted({len(group.folders) for group in groups})
    if counts[-1] == 1:
        return "One seed each: no interval."
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    single = ", none where there is one seed" if counts[0] == 1 else ""
    return f"{marks}: 95 % interval over {seeds} seeds (Student's t){single}."
