"""Comparison of an environment that was given as an object with what its id makes.

Environments are compared layer by layer: the same classes, with equal instance attributes. A method that was
replaced on the object is an attribute that the other does not have. What a reset overwrites is
ignored: both are reset with the same seed. What cannot be compared counts as different.
"""

from __future__ import annotations

import copy
import copyreg
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import HumanRendering, OrderEnforcing, PassiveEnvChecker, RenderCollection, TimeLimit

from spaql.problems.registry import make_named

Environment = gymnasium.Env[Any, Any]

_NEUTRAL = (TimeLimit, OrderEnforcing, PassiveEnvChecker, HumanRendering, RenderCollection)
"""Wrappers that change no observations, rewards or actions; the horizon of a problem is the time limit."""
_IGNORED = {"env", "spec", "render_mode", "_cached_spec"}
"""Attributes that do not affect behaviour, and the next layer, which is compared separately."""
_DRAWING = {"screen", "clock", "surf", "isopen"}
"""Attributes that Gymnasium's own environments need to render, and for nothing else."""
_PLAIN = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


def layers(env: Environment) -> Iterator[Environment]:
    """Yield the layers of an environment from the outermost wrapper to the environment itself."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def time_limit(env: Environment) -> int | None:
    """Return the fewest steps after which a wrapper of an environment truncates an episode, if any does.

    Examples
    --------
    >>> time_limit(gymnasium.wrappers.TimeLimit(gymnasium.make("MountainCar-v0"), 77))
    77
    """
    limits = (layer._max_episode_steps for layer in layers(env) if isinstance(layer, TimeLimit))
    return min(limits, default=None)


def options_of(spec: EnvSpec) -> dict[str, Any]:
    """Return the keyword arguments that make an environment again, without rendering."""
    return {key: value for key, value in spec.kwargs.items() if key != "render_mode"}


def difference_from_id(env: Environment) -> str:
    """Return how an environment differs from a new one of its id; empty if it provably does not.

    Examples
    --------
    >>> env = gymnasium.make("Pendulum-v1")
    >>> difference_from_id(env)
    ''
    >>> env.unwrapped.max_torque = 0.0
    >>> difference_from_id(env)
    'PendulumEnv.max_torque is 0.0, not 2.0'
    """
    spec = env.unwrapped.spec
    if spec is None:
        return "it has no id"
    return difference(env, lambda: make_named(spec.id, None, options_of(spec)))


def difference(env: Environment, make: Callable[[], Environment]) -> str:
    """Return how an environment differs from those that a function makes; empty if it provably does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the environment was made
        try:
            fresh = make()
            given, made = (_kinds(one) for one in (env, fresh))
            if given != made:
                return f"it is {_chain(given)}, not {_chain(made)}"
            found = _compare(env, fresh)
            return found and _difference_after_reset(env, fresh, make(), found)
        except Exception as error:  # from the environment's own code: then nothing is proven
            return f"it cannot be compared ({type(error).__name__}: {error})"


def _kinds(env: Environment) -> list[type]:
    return [type(layer) for layer in _relevant_layers(env)]


def _chain(kinds: list[type]) -> str:
    return f"{'('.join(kind.__name__ for kind in kinds)}{')' * (len(kinds) - 1)}"


def _relevant_layers(env: Environment) -> list[Environment]:
    """Return the layers that may change observations, rewards or actions."""
    return [layer for layer in layers(env) if not _is_neutral(layer)]


def _is_neutral(layer: Environment) -> bool:
    """Return whether a layer is one of `_NEUTRAL`, with nothing replaced."""
    own = vars(layer)
    replaced = any(hasattr(type(layer), name) for name in own)
    spaces = own.get("_action_space"), own.get("_observation_space")
    return type(layer) in _NEUTRAL and not replaced and spaces == (None, None)


def _is_gymnasiums(layer: Environment) -> bool:
    return type(layer).__module__.startswith("gymnasium.")


def drawing_tools(layer: Environment) -> list[Any]:
    """Return the windows, clocks and surfaces of one of Gymnasium's own environments that was rendered."""
    named = vars(layer).items() if _is_gymnasiums(layer) else ()
    return [value for name, value in named if name in _DRAWING and not isinstance(value, bool | None)]


def attributes_of(layer: Environment) -> dict[str, Any]:
    """Return the attributes of a layer that affect its behaviour."""
    ignored = _IGNORED | _DRAWING if _is_gymnasiums(layer) else _IGNORED
    return {name: value for name, value in vars(layer).items() if name not in ignored}


def _compare(env: Environment, other: Environment, opaque: set[tuple[int, str]] | None = None) -> str:
    """Return the first difference between the layers of two environments.

    Attributes of Gymnasium's own classes that cannot be compared are added to `opaque` if it is given.
    """
    comparison = _Comparison()
    pairs = list(zip(_relevant_layers(env), _relevant_layers(other), strict=True))
    comparison.assume(pairs)
    for i, pair in enumerate(pairs):
        kind = type(pair[0]).__name__
        left, right = (attributes_of(layer) for layer in pair)
        if opaque is not None and _is_gymnasiums(pair[0]):
            opaque |= {(i, name) for name, value in (left | right).items() if is_opaque(value)}
            left, right = (
                {name: value for name, value in one.items() if (i, name) not in opaque}
                for one in (left, right)
            )
        if found := comparison.of_attributes(left, right, kind):
            return found
    return ""


def _difference_after_reset(env: Environment, fresh: Environment, replica: Environment, found: str) -> str:
    """Return the first difference that is left after both environments were reset with the same seed.

    The given environment is not modified: a new one, the replica, gets its attributes. Gymnasium's Box2D
    environments hold objects that cannot be copied or compared; they are ignored if each reset replaces them.
    """
    pairs = list(zip(_relevant_layers(env), _relevant_layers(replica), strict=True))
    held = [{name for name, value in attributes_of(given).items() if is_opaque(value)} for given, _ in pairs]
    if any(names and not _is_gymnasiums(given) for names, (given, _) in zip(held, pairs, strict=True)):
        return found
    memo: dict[int, Any] = {id(given): made for given, made in pairs}
    for names, (given, made) in zip(held, pairs, strict=True):
        instead = {name: value for name, value in attributes_of(made).items() if name in names}
        known = {name: value for name, value in attributes_of(given).items() if name not in names}
        for name in attributes_of(made):
            del vars(made)[name]
        vars(made).update(instead | copy.deepcopy(known, memo))
    for one in (replica, fresh):
        one.reset(seed=0)
    opaque = {(i, name) for i, names in enumerate(held) for name in names}
    if difference := _compare(replica, fresh, opaque):
        return difference
    before = [vars(layer).copy() for layer in _relevant_layers(fresh)]
    fresh.reset(seed=1)
    after = [vars(layer) for layer in _relevant_layers(fresh)]
    kept = sorted(name for i, name in opaque if after[i].get(name) is before[i].get(name))
    return f"{type(env.unwrapped).__name__}.{kept[0]} cannot be compared" if kept else ""


_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.CodeType, property)
_ATOMIC = (*_FUNCTIONS, type, types.ModuleType, range, weakref.ref, gymnasium.Env)
"""Types of values that are shared by a copy or copied separately."""


def is_opaque(value: Any, visited: dict[int, Any] | None = None) -> bool:
    """Return whether a value holds something that cannot be compared or copied, such as a C++ simulator."""
    visited = {} if visited is None else visited
    atomic = isinstance(value, (*_ATOMIC, *_PLAIN)) or hasattr(type(value), "__deepcopy__")
    if atomic or type(value) in copyreg.dispatch_table or id(value) in visited:
        return False
    visited[id(value)] = value
    try:
        parts = _parts(value)
    except Exception:
        return True
    parts.pop(".__dict__", None)  # the other parts determine it in a copy
    return any(is_opaque(part, visited) for part in parts.values())


class _Comparison:
    """Compares values by their contents; a pair of values that was visited before counts as equal."""

    def __init__(self) -> None:
        self._visited: dict[tuple[int, int], Any] = {}  # holds the values, so that their ids are not reused

    def assume(self, pairs: list[tuple[Any, Any]]) -> None:
        """Treat pairs of values as equal."""
        self._visited.update({(id(a), id(b)): (a, b) for a, b in pairs})

    def of_attributes(self, left: dict[str, Any], right: dict[str, Any], where: str) -> str:
        """Return the first difference between attributes."""
        for name in (*left, *right):
            if name not in right:
                return f"{where}.{name} was added or replaced"
            if name not in left:
                return f"{where}.{name} is missing"
            if found := self.of(left[name], right[name], f"{where}.{name}"):
                return found
        return ""

    def of(self, a: Any, b: Any, where: str) -> str:
        """Return the first difference between two values."""
        if a is b or (id(a), id(b)) in self._visited:
            return ""
        self.assume([(a, b)])
        if type(a) is not type(b):
            return f"{where} is {_short(a)}, not {_short(b)}"
        if isinstance(a, _PLAIN):
            return "" if _bits(a) == _bits(b) else f"{where} is {_short(a)}, not {_short(b)}"
        if isinstance(a, types.ModuleType | types.BuiltinFunctionType | type):
            return f"{where} is {_short(a)}, not {_short(b)}"
        try:
            parts = _parts(a), _parts(b)
        except Exception:  # the value may raise anything
            return f"{where} cannot be compared"
        for name in parts[0] if set(parts[0]) == set(parts[1]) else ():
            if found := self.of(parts[0][name], parts[1][name], f"{where}{name}"):
                return found
        return "" if set(parts[0]) == set(parts[1]) else f"{where} is {_short(a)}, not {_short(b)}"


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _bits(value: Any) -> Any:
    """Return a number, a string or an array in a form in which NaN equals NaN."""
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return value.shape, [id(x) for x in value.ravel()]
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value) if isinstance(value, float | complex) else value


def _parts(value: Any) -> dict[str, Any]:
    """Return the parts of a value by name; raises whatever the value raises if this fails."""
    if isinstance(value, np.random.Generator):
        return {".bit_generator": value.bit_generator.state}
    if type(value) is dict:
        return {f"[{_short(key)}]": part for key, part in value.items()}
    if type(value) in (list, tuple):
        return {f"[{i}]": part for i, part in enumerate(value)}
    if type(value) in (set, frozenset):
        return {f"[{part!r}]": part for part in value}
    if isinstance(value, gymnasium.Env):
        return {f".{name}": part for name, part in attributes_of(value).items()}
    if isinstance(value, gymnasium.Space):  # the generator of a space does not affect the environment
        return {f".{name}": part for name, part in vars(value).items() if name != "_np_random"}
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        fixed = value.__code__, id(value.__globals__)
        return {
            f" (code {hash(fixed)})": None,
            " (defaults)": [value.__defaults__, value.__kwdefaults__, vars(value)],
            " (closure)": cells,
        }
    if isinstance(value, types.MethodType):
        return {".__func__": value.__func__, ".__self__": value.__self__}
    return _reduced(value)


def _reduced(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, and what `copy.deepcopy` would rebuild it from."""
    reduced = value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return {f" ({reduced})": type(value)}
    make, arguments, *rest = reduced
    state = [list(part) if isinstance(part, Iterator) else part for part in rest]
    attributes = getattr(value, "__dict__", None)
    return {".__dict__": attributes, " (class)": make, " (of)": arguments, " (state)": state}
