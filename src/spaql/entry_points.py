"""What installed packages, and the plugins of this one, declare in a group of entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from spaql.errors import SettingError

HOOKS = "spaql.hooks"
"""The group of what the core calls in the middle of its own work, such as certificates in `spaql verify`."""


def declared(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, by name in alphabetical order."""
    return sorted(entry_points(group=group), key=lambda entry: entry.name)


def declared_names(group: str) -> list[str]:
    """Return the names in a group, in alphabetical order."""
    return sorted({entry.name for entry in declared(group)})


def find_declared(group: str, name: str) -> EntryPoint | None:
    """Return the entry point of a name, None if there is none; two packages may not declare the same name."""
    entries = list(entry_points(group=group, name=name))
    if len(entries) > 1:
        packages = " and ".join(sorted(map(_package, entries)))
        raise SettingError(f"{name} of {group} is declared by {packages}: uninstall all but one.")
    return entries[0] if entries else None


def load_declared(entry: EntryPoint) -> Any:
    """Return the object that a package declares; one that cannot be imported is a `SettingError`."""
    try:
        return entry.load()
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{entry.module}.".startswith(f"{error.name}."):
            raise SettingError(
                f"{entry.name} needs the plugin {error.name} of the package {_package(entry)}, which is not "
                "installed."
            ) from error
        message = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise SettingError(f"Cannot load {origin_of(entry)}: {message}.") from error


def load_hook(name: str) -> Any:
    """Return what a plugin declares in the group `spaql.hooks`."""
    entry = find_declared(HOOKS, name)
    if entry is None:
        raise SettingError(f"This needs a plugin that declares {name} of {HOOKS}, and none is installed.")
    return load_declared(entry)


class Pictured:
    """What notebooks draw."""

    def _repr_html_(self) -> str:
        html: str = load_hook("picture")(self)
        return html


def origin_of(entry: EntryPoint) -> str:
    """Return what declares an object, for people."""
    return f"{entry.name} ({entry.value}) of the package {_package(entry)}"


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "?"
