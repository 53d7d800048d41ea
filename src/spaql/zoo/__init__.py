"""The zoo: trained controllers that ship with the package, how each was trained, and what was measured of it.

`python benchmarks/zoo.py` makes the files and the figures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from spaql import archive
from spaql.agents import Design, agent_type
from spaql.agents.design import design_from
from spaql.controllers import controller_of
from spaql.errors import SettingError, nearest

ENTRIES = "entries.json"
"""The file with the figures."""
CONTROLLERS = "controllers"
"""The folder of the controllers' files."""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A figure to hold a controller against, for the same problem."""

    kind: str
    """`classical`, `neural` or `bound`."""
    name: str
    mean: float
    ci95: float | None
    """Half-width of the 95 % interval of the mean, if there is one."""
    numbers: int | None
    """Parameters, if it has any."""
    interactions: int | None
    """Simulator steps that it took, if known."""
    source: str
    """Where the figure comes from."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A controller of the zoo: how it was trained, and what was measured of it."""

    name: str
    problem: str
    algorithm: str
    seed: int
    total_timesteps: int
    """The budget of its training."""
    interactions: int
    """Simulator steps of its training, all phases."""
    mean: float
    """Mean return in fresh episodes."""
    ci95: float
    """Half-width of the 95 % interval of the mean."""
    worst: float
    """Return from the worst start among them."""
    worst_start: tuple[float, ...]
    """The first observation of that episode."""
    episodes: int
    evaluation_seed: int
    leaves: int
    numbers: int
    """All numbers of its rules: thresholds, offsets and gains. An action of a list is none."""
    flash: int | None
    """Bytes of the exported C, compiled for a Cortex-M4F; None if it was not measured."""
    file_bytes: int
    """Bytes of its file."""
    beside: tuple[Beside, ...]


@cache
def _entries() -> Mapping[str, Entry]:
    data = json.loads(files("spaql.zoo").joinpath(ENTRIES).read_text(encoding="utf-8"))
    return {row["name"]: entry_from(row) for row in data}


def entry_from(data: Mapping[str, Any]) -> Entry:
    """Return an entry that `dataclasses.asdict` made plain data of."""
    beside = tuple(Beside(**one) for one in data["beside"])
    return Entry(**{**data, "beside": beside, "worst_start": tuple(data["worst_start"])})


def entries() -> list[Entry]:
    """Return all entries."""
    return list(_entries().values())


def names() -> list[str]:
    """Return the names of all controllers.

    Examples
    --------
    >>> "cartpole-treesearch" in names()
    True
    """
    return list(_entries())


def entry(name: str) -> Entry:
    """Return the entry of a controller."""
    if name not in _entries():
        raise SettingError(f"The zoo has no controller {name!r}: {nearest(name, names())}")
    return _entries()[name]


def content(name: str) -> bytes:
    """Return the file of a controller, as `Design.save` wrote it."""
    return files("spaql.zoo").joinpath(CONTROLLERS, f"{entry(name).name}.spaql").read_bytes()


def load(name: str) -> Design:
    """Return a controller, with the problem that it is for.

    Examples
    --------
    >>> int(load("cartpole-treesearch").predict([0.0, 0.0, 0.1, 0.0])[0])
    1
    """
    return design_from(archive.loads(content(name)))


def train(problem: str, algorithm: str, *, seed: int, total_timesteps: int) -> Design:
    """Return the controller that an algorithm learns with its default settings.

    With the arguments that an entry states, it is the controller that is shipped, to the last byte on the
    same kind of machine.
    """
    agent = agent_type(algorithm)(problem, seed=seed).learn(total_timesteps)
    origin = {
        "algorithm": algorithm,
        "seed": seed,
        "total_timesteps": total_timesteps,
        "interactions": int(agent.history.last()["interactions"]),
    }
    return Design(controller_of(agent, minimise=False), agent.problem, origin)
