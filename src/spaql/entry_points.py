"""What installed packages declare in a group of entry points, such as `spaql.targets`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from spaql.errors import SettingError


def declared_names(group: str) -> list[str]:
    """Return the names in a group, in alphabetical order."""
    return sorted(entry_points(group=group).names)


def find_declared(group: str, name: str) -> EntryPoint | None:
    """Return the entry point of a name, None if there is none; two packages may not declare the same name."""
    found = list(entry_points(group=group, name=name))
    if len(found) > 1:
        packages = " and ".join(sorted(map(_package, found)))
        raise SettingError(f"{name} of {group} is declared by {packages}: uninstall all but one.")
    return found[0] if found else None


def load_declared(entry: EntryPoint) -> Any:
    """Return the object that a package declares; one that cannot be imported is a `SettingError`."""
    try:
        return entry.load()
    except Exception as error:
        said = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise SettingError(f"Cannot load {origin_of(entry)}: {said}.") from error


def origin_of(entry: EntryPoint) -> str:
    """Return what declares an object, for people."""
    return f"{entry.name} ({entry.value}) of the package {_package(entry)}"


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "?"
