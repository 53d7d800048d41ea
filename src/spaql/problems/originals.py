"""Checks that Gymnasium's classic control problems are unmodified, so that their compiled versions apply."""

import importlib.util
import inspect
import types
from functools import cache
from typing import Any

import gymnasium

_ENTRY_POINTS = {
    "CartPole-v1": "cartpole:CartPoleEnv",
    "Pendulum-v1": "pendulum:PendulumEnv",
    "MountainCar-v0": "mountain_car:MountainCarEnv",
    "MountainCarContinuous-v0": "continuous_mountain_car:Continuous_MountainCarEnv",
    "Acrobot-v1": "acrobot:AcrobotEnv",
}
_FOLDER = "gymnasium.envs.classic_control."
_BASE_MODULES = ("gymnasium.core", "gymnasium.wrappers.common")
"""Modules of the base class and of the wrappers that `gymnasium.make` adds."""


def is_original(env: str) -> bool:
    """Return whether an id makes Gymnasium's own environment, with its code and constants as installed.

    Someone may have registered another environment under the id, or replaced a method of the class or a
    function that it calls.

    Examples
    --------
    >>> is_original("Pendulum-v1"), is_original("LunarLander-v3")
    (True, False)
    """
    spec = gymnasium.registry.get(env)
    entry_point = _FOLDER + _ENTRY_POINTS.get(env, "")
    if spec is None or spec.entry_point != entry_point or spec.kwargs or spec.additional_wrappers:
        return False
    module = entry_point.partition(":")[0]
    return all(_is_as_installed(name) for name in (module, *_BASE_MODULES))


def is_classic(env: str) -> bool:
    """Return whether an id is that of one of Gymnasium's classic control problems."""
    return env in _ENTRY_POINTS


def _is_as_installed(name: str) -> bool:
    return _same(vars(importlib.import_module(name)), vars(_as_installed(name)))


@cache
def _as_installed(name: str) -> types.ModuleType:
    """Return a second instance of a module, executed from its file."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _same(used: Any, installed: Any) -> bool:
    """Return whether two namespaces have the same functions, classes and constants."""
    names = {name for name in (*used, *installed) if not _is_magic(name)}
    return all(
        name in used and name in installed and _same_value(used[name], installed[name]) for name in names
    )


def _is_magic(name: str) -> bool:
    """Return whether Python generates the name; special methods, such as `__init__`, are compared."""
    return name.startswith("__") and name not in ("__init__", "__new__", "__getattr__", "__getattribute__")


def _same_value(used: Any, installed: Any) -> bool:
    if used is installed:
        return True
    if type(used) is not type(installed):
        return False
    if isinstance(used, types.FunctionType):
        written = "__code__", "__defaults__", "__kwdefaults__"
        return all(getattr(used, name) == getattr(installed, name) for name in written)
    if isinstance(used, property):
        return _same_value((used.fget, used.fset), (installed.fget, installed.fset))
    if isinstance(used, staticmethod | classmethod):
        return _same_value(used.__func__, installed.__func__)
    if isinstance(used, tuple | list):
        pairs = zip(used, installed, strict=False)
        return len(used) == len(installed) and all(_same_value(a, b) for a, b in pairs)
    if isinstance(used, dict):
        return _same(used, installed)
    if inspect.isclass(used):
        return _same(vars(used), vars(installed)) and _names(used) == _names(installed)
    # Type variables and the like differ between executions of the file.
    return not isinstance(used, bool | int | float | str | bytes) or used == installed


def _names(kind: type) -> list[str]:
    return [base.__qualname__ for base in kind.__mro__]
