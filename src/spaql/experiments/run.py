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
"""Of a run whose budget is not given."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training run, as data: the same run gives the same bytes wherever it is executed.

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
    seed
        Which of the seeds spawned from `root_seed`; runs that differ in settings alone share them.
    root_seed
        The seed of the whole study.
    settings
        Keyword arguments of the agent: settings of the algorithm, and `horizon`, `levels` and the like.
    named
        The settings that the id spells out; all by default.
    fresh_episodes
        New episodes by which the result is judged.

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
    seed: int = 0
    root_seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    named: tuple[str, ...] | None = None
    fresh_episodes: int = 100

    def __post_init__(self) -> None:
        plain = {name: _plain(name, value) for name, value in self.settings.items()}
        object.__setattr__(self, "settings", plain)
        if self.named is None:
            object.__setattr__(self, "named", tuple(self.settings))
        if unknown := set(self.named or ()) - set(self.settings):
            raise SettingError(f"The id of a run spells its settings, and {', '.join(unknown)} is not one.")
        if self.iterations is not None and self.total_timesteps is not None:
            raise SettingError("A run has one budget: give either iterations or total_timesteps.")
        if self.total_timesteps is None and self.iterations is None:
            object.__setattr__(self, "iterations", _ITERATIONS)
        budget = "iterations" if self.total_timesteps is None else "total_timesteps"
        for name, least in ((budget, 1), ("fresh_episodes", 1), ("seed", 0), ("root_seed", 0)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least))

    def __hash__(self) -> int:
        return hash(self.id)

    @cached_property
    def group(self) -> str:
        """The id without the seed: runs of one group are repetitions of each other."""
        parts = [_shown(self.problem), _shown(self.algorithm)]
        parts += [f"{name}={_shown(self.settings[name])}" for name in self.named or ()]
        return "/".join(_checked(part) for part in parts)

    @cached_property
    def id(self) -> str:
        """A readable name, which is also the path of the run's folder in a store."""
        return f"{self.group}/seed={self.seed}"

    @property
    def digest(self) -> str:
        """A short hash of all that the run is, also of what its id does not spell."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def agent_seed(self) -> int:
        """The seed that the agent is made with, spawned from the root seed."""
        spawned = np.random.SeedSequence(self.root_seed, spawn_key=(self.seed,))
        return int(spawned.generate_state(1, np.uint64)[0] >> 1)


def _plain(name: str, value: Any) -> Any:
    """Return a setting as plain data, of which a run consists."""
    value = plain(value)
    try:
        json.dumps(value)
    except TypeError as error:
        raise SettingError(f"{name} is {value!r}, and a run holds plain data only: {error}.") from error
    return value


def _shown(value: Any) -> str:
    """Write a value as a part of a path; different values are written differently."""
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
