"""A study as data: a grid of runs, in Python or as a TOML file."""

from __future__ import annotations

import difflib
import itertools
import math
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spaql.errors import SettingError
from spaql.plugins.sweeps.run import BUDGETS, Run
from spaql.plugins.sweeps.trainers import trainer_of
from spaql.problems import check_environment
from spaql.values import plain, whole_number

_EVALUATED = ("fresh_episodes", "evaluate_at")
_STUDY = ("problems", "algorithms", "seeds", "root_seed", *BUDGETS, *_EVALUATED, "grid")
_MOST_RUNS = 1_000_000
"""Of one study: more would be a mistake, and would not fit in memory."""


def grid(
    problems: Sequence[str],
    algorithms: Sequence[str],
    *,
    seeds: int | Iterable[int] = 1,
    root_seed: int = 0,
    iterations: int | None = None,
    total_timesteps: int | None = None,
    total_interactions: int | None = None,
    fresh_episodes: int = 100,
    evaluate_at: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
    **varied: Sequence[Any],
) -> list[Run]:
    """Return the runs of every combination of problem, algorithm, varied setting and seed.

    Parameters
    ----------
    problems, algorithms
        Their names.
    seeds
        How many, counted from 0; or which.
    root_seed
        The seed from which the agents' seeds are spawned.
    iterations, total_timesteps, total_interactions, fresh_episodes, evaluate_at
        Of every run (see `Run`).
    settings
        Of every run; they are not part of the ids.
    **varied
        For each setting that varies, its values.

    Examples
    --------
    >>> runs = grid(["cartpole200"], ["spaql", "spaql-ts"], seeds=2, scaling=[0.4, 20])
    >>> len(runs), runs[0].id
    (8, 'cartpole200/spaql/scaling=0.4/seed=0')
    """
    if isinstance(problems, str) or isinstance(algorithms, str):
        raise SettingError("problems and algorithms are lists of names.")
    numbers = [len(problems), len(algorithms), len(_seeds(seeds)), *map(len, varied.values())]
    if math.prod(numbers) > _MOST_RUNS:
        raise SettingError(f"A study has {_MOST_RUNS:,} runs at most, and this one {math.prod(numbers):,}.")
    return [
        Run(
            problem=problem,
            algorithm=algorithm,
            iterations=iterations,
            total_timesteps=total_timesteps,
            total_interactions=total_interactions,
            seed=seed,
            root_seed=root_seed,
            settings={**(settings or {}), **dict(zip(varied, values, strict=True))},
            named=tuple(varied),
            fresh_episodes=fresh_episodes,
            evaluate_at=tuple(evaluate_at),
        )
        for problem, algorithm in itertools.product(problems, algorithms)
        for values in itertools.product(*varied.values())
        for seed in _seeds(seeds)
    ]


def read_study(path: str | os.PathLike[str]) -> list[Run]:
    """Read the runs of a study from a TOML file (see `study_from`)."""
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise SettingError(f"Cannot read {Path(path)}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{Path(path)} is no TOML file: {error}.") from error
    return study_from(content)


def study_from(content: Mapping[str, Any]) -> list[Run]:
    """Return the runs of a study.

    Top-level keys: `problems`, `algorithms`, `seeds` (how many, or which), `root_seed`, one of `iterations`,
    `total_timesteps` and `total_interactions`, `fresh_episodes`, `evaluate_at`; all others are settings of
    every run. The table `grid` holds lists of settings to combine.

    Examples
    --------
    >>> study = {"problems": ["pendulum"], "algorithms": ["spaql"], "grid": {"scaling": [1, 4]}}
    >>> [run.id for run in study_from(study)]
    ['pendulum/spaql/scaling=1/seed=0', 'pendulum/spaql/scaling=4/seed=0']
    """
    common = {key: value for key, value in content.items() if key not in _STUDY}
    shared = {key: content[key] for key in ("root_seed", *BUDGETS, *_EVALUATED) if key in content}
    varied = content.get("grid", {})
    try:
        _check_shape(content, varied)
        runs = grid(
            content.get("problems", []),
            content.get("algorithms", []),
            seeds=content.get("seeds", 1),
            settings=common,
            **shared,
            **varied,
        )
    except TypeError as error:
        raise SettingError(f"The study has a value of a wrong type: {error}.") from error
    if not runs:
        raise SettingError("The study has no run: give problems and algorithms.")
    check(runs)
    return runs


def check(runs: Sequence[Run]) -> None:
    """Refuse different runs with the same id, and unknown names."""
    by_id: dict[str, Run] = {}
    for run in runs:
        if by_id.setdefault(run.id, run) != run:
            raise SettingError(
                f"Two different runs are called {run.id}: what differs between runs must be a setting in "
                "the grid, or go into a study of its own."
            )
    for run in {run.group: run for run in runs}.values():
        trainer_of(run.algorithm).check(run)
    for problem in {run.problem for run in runs}:
        check_environment(problem)


def _check_shape(content: Mapping[str, Any], varied: Any) -> None:
    for key in content:
        near = difflib.get_close_matches(key, _STUDY, 1, 0.8)
        if near and key not in _STUDY:
            raise SettingError(f"A study has no key {key!r}: did you mean {near[0]}?")
    for key in ("problems", "algorithms"):
        names = content.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise SettingError(f'{key} is a list of names, such as {key} = ["..."].')
    if not isinstance(varied, dict) or not all(
        isinstance(values, list) and values for values in varied.values()
    ):
        raise SettingError(
            "The table [grid] holds a list of values for each setting, such as scaling = [4, 20]."
        )
    if twice := set(varied) & set(_STUDY):
        raise SettingError(f"The table [grid] is for settings: put {', '.join(sorted(twice))} above it.")


def _seeds(seeds: int | Iterable[int]) -> Sequence[int]:
    numbers = plain(seeds)
    if isinstance(numbers, list | tuple | range):
        return [whole_number("One of the seeds", seed, least=0) for seed in numbers]
    if type(numbers) is not int or numbers < 1:
        raise SettingError(
            f"seeds is {numbers!r}, and must be how many, such as 20, or a list of which, such as [0, 5]."
        )
    if numbers > _MOST_RUNS:
        raise SettingError(f"seeds is {numbers}, and a study has {_MOST_RUNS:,} runs at most.")
    return range(numbers)
