"""A run as data: what is trained, how, for how long, and from which seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

import numpy as np

from spaql.errors import SettingError
from spaql.values import plain, whole_number

_NAME_AT_MOST = 200
"""Bytes of one part of an id: file systems take 255, and temporary names need some."""

_ITERATIONS = 100
"""Of a run without a budget."""

BUDGETS = ("iterations", "total_timesteps", "total_interactions")
"""The fields of which one sets the length of a run."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training run, as data: the same run writes the same bytes wherever it is executed.

    Parameters
    ----------
    problem
        An environment's id (`module:id` imports the module first) or a preset.
    algorithm
        Its name (`module:name` imports the module first).
    iterations
        Training episodes; 100 by default.
    total_timesteps
        Instead: training ends after the iteration in which so many training steps are reached.
    total_interactions
        Instead: it ends after the iteration in which so many interactions are reached, those of the
        algorithm's own evaluations included.
    seed
        Which of the seeds spawned from `root_seed`; runs that differ in settings alone share them.
    root_seed
        The seed of the whole study.
    settings
        Keyword arguments of the agent: settings of the algorithm, and `horizon`, `levels` and the like.
    named
        The settings in the id, and the budget if it is among them; all settings by default.
    fresh_episodes
        New episodes in which the result is evaluated.
    evaluate_at
        Numbers of interactions at which the policy is evaluated while it learns, by as many episodes: the
        run folder then has a `curve.csv` (see `LearningCurve`), whose last point is the end of the run.

    Examples
    --------
    >>> run = Run(problem="cartpole200", algorithm="spaql-ts", settings={"scaling": 20}, seed=3)
    >>> run.id
    'cartpole200/spaql-ts/scaling=20/seed=3'
    """

    problem: str
    algorithm: str
    iterations: int | None = None
    total_timesteps: int | None = None
    total_interactions: int | None = None
    seed: int = 0
    root_seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    named: tuple[str, ...] | None = None
    fresh_episodes: int = 100
    evaluate_at: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        plain = {name: _plain(name, value) for name, value in self.settings.items()}
        object.__setattr__(self, "settings", plain)
        if self.named is None:
            object.__setattr__(self, "named", tuple(self.settings))
        budgets = [name for name in BUDGETS if getattr(self, name) is not None]
        if len(budgets) > 1:
            raise SettingError(f"A run has one budget: give either {' or '.join(budgets)}.")
        if not budgets:
            object.__setattr__(self, "iterations", _ITERATIONS)
        budget = budgets[0] if budgets else BUDGETS[0]
        if unknown := set(self.named or ()) - {*self.settings, budget}:
            raise SettingError(f"The id of a run spells its settings, and {', '.join(unknown)} is not one.")
        # A controller derived from a plant's equations needs no interaction.
        least = 0 if budget == "total_interactions" else 1
        for name, at_least in ((budget, least), ("fresh_episodes", 1), ("seed", 0), ("root_seed", 0)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), at_least))
        object.__setattr__(self, "evaluate_at", _points(self.evaluate_at))

    def __hash__(self) -> int:
        return hash(self.id)

    @cached_property
    def group(self) -> str:
        """The id without the seed: runs of one group are repetitions of each other."""
        parts = [_shown(self.problem), _shown(self.algorithm)]
        for name in self.named or ():
            value = getattr(self, name) if name in BUDGETS else self.settings[name]
            parts.append(f"{name}={_shown(value)}")
        return "/".join(_checked(part) for part in parts)

    @cached_property
    def id(self) -> str:
        """A readable name, which is also the path of the run's folder in a store."""
        return f"{self.group}/seed={self.seed}"

    def as_data(self) -> dict[str, Any]:
        """Return the run as it is written to files."""
        return asdict(self)

    @property
    def digest(self) -> str:
        """A short hash of all fields of the run, also of those that are not in its id."""
        return hashlib.sha256(json.dumps(self.as_data()).encode()).hexdigest()[:16]

    @property
    def agent_seed(self) -> int:
        """The seed of the agent, spawned from the root seed."""
        spawned = np.random.SeedSequence(self.root_seed, spawn_key=(self.seed,))
        return int(spawned.generate_state(1, np.uint64)[0] >> 1)


def _plain(name: str, value: Any) -> Any:
    """Return a setting as plain data."""
    value = plain(value)
    try:
        json.dumps(value)
    except TypeError as error:
        raise SettingError(f"{name} is {value!r}, and a run holds plain data only: {error}.") from error
    return value


def _points(counts: Any) -> tuple[int, ...]:
    """Return sorted numbers of interactions."""
    if not isinstance(counts := plain(counts), list | tuple):
        raise SettingError(f"evaluate_at is {counts!r}, and must be a list of numbers of interactions.")
    return tuple(sorted({whole_number("One of evaluate_at", at, least=0) for at in counts}))


def _shown(value: Any) -> str:
    """Return a value as a part of a path; different values have different texts."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(int(value)) if float(value).is_integer() else repr(value)
    if isinstance(value, list | tuple):
        return ",".join(map(_shown, value))
    return quote(str(value).replace("/", "-"), safe=",+@")


def _checked(part: str) -> str:
    if not part or part.startswith(".") or len(part) > _NAME_AT_MOST:
        raise SettingError(f"{part!r} cannot name a folder: it is empty, too long, or begins with a dot.")
    return part
