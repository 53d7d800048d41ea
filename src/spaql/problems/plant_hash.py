"""Hashes by which a run knows the plant that it was trained on: of its functions, its file or its class."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import sysconfig
import textwrap
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium

from spaql.archive import file_sha256
from spaql.errors import ChangedPlantWarning
from spaql.problems.content import content_of, is_shipped, sha256, value_token
from spaql.problems.dynamics import Dynamics
from spaql.problems.environment import DynamicsEnv
from spaql.problems.meaning import meaning_of
from spaql.problems.source_text import written

PlantHash = Mapping[str, str]
"""Hashes of the parts of a plant, by their names; empty if it has none."""
UNKNOWN = "unknown"
"""In place of the hash of a part whose content cannot be followed."""
FILE = "file"
"""The part of a plant that is a file: its whole SHA-256, as other tools print it."""
_DIGITS = 16
_SHOWN = 8
_NOT_DECLARED = {"id", "start", "step", "observe", "plant_dims", "state_dims"}


def equations_hash(dynamics: Dynamics) -> PlantHash:
    """Return the hashes of a plant's functions, of all that they refer to, and of what is declared.

    Examples
    --------
    >>> import spaql
    >>> list(equations_hash(spaql.problems.find_dynamics("Pendulum-v1")))[:4]
    ['observe', 'start', 'step', 'declared observations']
    """
    functions = {"start": dynamics.start, "observe": dynamics.observe, "step": dynamics.step}
    hashes = _hashed(functions)
    for declared in dataclasses.fields(dynamics):
        value = getattr(dynamics, declared.name)
        if declared.name not in _NOT_DECLARED and not _is_empty(value):
            hashes[f"declared {declared.name}"] = sha256(value_token(_as_data(value)))[:_DIGITS]
    return hashes


def environment_hash(env: gymnasium.Env[Any, Any]) -> PlantHash:
    """Return the hashes that an environment declares, those of its equations, or that of its class."""
    plant = env.unwrapped
    if isinstance(plant, DynamicsEnv):
        return equations_hash(plant.dynamics)
    return meaning_of(env).plant or _class_hash(type(plant))


def _class_hash(kind: type) -> PlantHash:
    """Return the hash of the text of a class, without comments and layout; none if it is installed."""
    if kind.__module__.startswith(("spaql.", "gymnasium.")) or _is_installed(kind.__module__):
        return {}
    try:
        text = textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError):  # it was written in a shell
        return {}
    return {kind.__qualname__: sha256(ast.unparse(ast.parse(text)))[:_DIGITS]}


def file_hash(path: str | Path) -> PlantHash:
    """Return the hash of a plant that is a file; empty if there is none."""
    return {FILE: file_sha256(path)} if Path(path).is_file() else {}


def differences(kept: PlantHash, now: PlantHash) -> list[str]:
    """Return the parts in which two plants differ; none if one of them has no hash.

    Examples
    --------
    >>> differences({"step": "1", "params.GAIN": "2"}, {"step": "1", "params.GAIN": "3"})
    ['params.GAIN']
    """
    if not kept or not now:
        return []
    return [name for name in sorted({**kept, **now}) if kept.get(name) != now.get(name)]


def change_text(name: str, kept: PlantHash, now: PlantHash) -> str:
    """Return how a plant differs from what was trained on; empty if it is not known to."""
    other = differences(kept, now)
    if not other:
        return ""
    if other == [FILE]:
        what = f"its SHA-256 is {now[FILE]}, and that one's was {kept[FILE]}"
    else:
        more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
        what = f"it differs in {', '.join(other[:_SHOWN])}{more}"
    return f"{name} is not the plant that this was trained on: {what}."


def warn_of_change(name: str, kept: PlantHash, now: PlantHash, *, stacklevel: int) -> None:
    """Warn if a plant is not the one that was trained on."""
    if text := change_text(name, kept, now):
        warnings.warn(f"{text} What is run now is another plant.", ChangedPlantWarning, stacklevel=stacklevel)


def _hashed(functions: Mapping[str, Any]) -> dict[str, str]:
    """Return the hashes of functions, by their text, and of what they refer to but installed packages."""
    followed = {"spaql", *(str(function.__module__).partition(".")[0] for function in functions.values())}

    def by_name(module: str | None) -> bool:
        own = (module or "").partition(".")[0] in followed
        return is_shipped(module) or (not own and _is_installed(module))

    content = content_of(functions, written, by_name)
    hashes = {name: content.parts[name][:_DIGITS] for name in sorted(content.parts)}
    return hashes | dict.fromkeys(sorted(content.unknown), UNKNOWN)


def _is_installed(module: str | None) -> bool:
    """Return whether a module is one of an installed package, and not a file of the user's."""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    return file is not None and any(file.startswith(str(folder)) for folder in folders)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, Mapping | tuple | list) and not value) or value == 0


def _as_data(value: Any) -> Any:
    """Return what is declared, with the same numbers written in the same way."""
    if isinstance(value, Mapping):
        return [(name, _as_data(item)) for name, item in value.items()]
    if isinstance(value, str) or value is None:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _as_data(dataclasses.asdict(value))
    return [_as_data(item) for item in value] if isinstance(value, list | tuple) else float(value)
