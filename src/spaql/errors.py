"""The exceptions of spaql, as a hierarchy; every message says what is wrong and what to do."""

import difflib
import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

_PACKAGES = {
    "baselines": "sb3_contrib",
    "fmi": "fmpy",
    "plot": "matplotlib",
    "stats": "scipy",
}
"""The packages that extras install, by import name."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the name that was probably meant, as the end of a sentence.

    Examples
    --------
    >>> nearest("spaq", ["aql", "spaql"])
    'did you mean spaql?'
    >>> nearest("trpo", ["aql", "spaql"])
    'there is aql, spaql.'
    """
    near = difflib.get_close_matches(name, known := list(known), 1)
    return f"did you mean {near[0]}?" if near else f"there is {', '.join(known)}."


class SpaqlError(Exception):
    """Base class of the errors that spaql raises.

    Parameters
    ----------
    message
        What is wrong, and what to do about it.
    settings
        What would help, by the names of settings with their values: for the command line, which adds its own
        options to the message.
    """

    def __init__(self, *message: object, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(*message)
        self.settings = dict(settings or {})


class UnsupportedSpaceError(SpaqlError, TypeError):
    """An observation or action space is not supported."""


class SettingError(SpaqlError, ValueError):
    """A setting is unknown, missing, or out of range."""


class NotTrainedError(SpaqlError, ValueError, AttributeError):
    """An agent is to act before it has learned."""


class BadEnvironmentError(SpaqlError, RuntimeError):
    """An environment cannot be made, or returned an invalid observation or reward."""


class ArchiveError(SpaqlError, ValueError):
    """A file is damaged, or was not written by spaql."""


class ContradictedProofError(SpaqlError, RuntimeError):
    """`spaql.verify` proved what the plant itself contradicts: a fault of the prover."""


class MissingExtraError(SpaqlError, ImportError):
    """A package of an optional extra is not installed."""


class SpaqlWarning(UserWarning):
    """Something is not as asked or as it was; the command line shows the message alone."""


class ChangedPlantWarning(SpaqlWarning):
    """A plant is not the one that a run was trained on."""


class UncachedPlantWarning(SpaqlWarning):
    """A plant is compiled in every process, since changes of what it depends on cannot be noticed."""


def imported(module: str, name: str) -> ModuleType:
    """Import a module of the user's, which is to define a name; whatever it raises is a `SettingError`."""
    try:
        return import_module(module)
    except Exception as error:
        said = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise SettingError(f"Cannot import {module}, which is to define {name}: {said}.") from error


def require(what: str, *extras: str) -> None:
    """Raise `MissingExtraError` if the packages of these extras are not installed.

    Examples
    --------
    >>> require("A picture", "plot")
    """
    if missing := [extra for extra in extras if find_spec(_PACKAGES[extra]) is None]:
        packages = " and ".join(_PACKAGES[extra] for extra in missing)
        raise MissingExtraError(f"{what} needs {packages}: pip install 'spaql[{','.join(missing)}]'.")


def deprecated(name: str, since: str, removed_in: str, instead: str) -> None:
    """Warn of a public name that a later release removes. A test fails in the release in which that is due.

    Parameters
    ----------
    name
        What is deprecated, as users write it.
    since, removed_in
        The version that deprecated it, and the one that removes it.
    instead
        What to use in its place.
    """
    text = f"{name} is deprecated since spaql {since}, and spaql {removed_in} removes it: use {instead}."
    warnings.warn(text, FutureWarning, stacklevel=3)
