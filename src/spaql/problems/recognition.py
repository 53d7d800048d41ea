"""Whether an environment that was given as an object is what its id makes.

Environments are compared layer by layer: the same classes, with equal instance attributes. A method that was
replaced on the object is an attribute that the other does not have. What a reset overwrites does not count,
and is found by a reset of both with the same seed; what cannot be compared counts as different.
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
"""Wrappers that hand observations, rewards and actions on; the horizon of a problem is the time limit."""
_ASIDE = {"env", "spec", "render_mode", "_cached_spec"}
"""Attributes that are no part of what an environment does: the next layer is compared by itself."""
_DRAWING = {"screen", "clock", "surf", "isopen"}
"""Attributes that Gymnasium's own environments need to render, and for nothing else."""
_PLAIN = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


def layers(env: Environment) -> Iterator[Environment]:
    """Go through an environment from the outermost wrapper to the environment itself."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def time_limit(env: Environment) -> int | None:
    """Return the steps after which an environment's wrappers truncate an episode, if any do: the fewest.

    Examples
    --------
    >>> time_limit(gymnasium.wrappers.TimeLimit(gymnasium.make("MountainCar-v0"), 77))
    77
    """
    limits = (layer._max_episode_steps for layer in layers(env) if isinstance(layer, TimeLimit))
    return min(limits, default=None)


def options_of(spec: EnvSpec) -> dict[str, Any]:
    """Return the keyword arguments by which an environment is made again, to be run and not to be drawn."""
    return {key: value for key, value in spec.kwargs.items() if key != "render_mode"}


def difference_from_id(env: Environment) -> str:
    """Say in what an environment differs from a fresh one of its id; empty if it is shown not to.

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
    """Say in what an environment differs from those that a function makes; empty if it is shown not to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever made the environment has seen them
        try:
            fresh = make()
            given, made = (_kinds(one) for one in (env, fresh))
            if given != made:
                return f"it is {_chain(given)}, not {_chain(made)}"
            found = _compare(env, fresh)
            return found and _difference_after_reset(env, fresh, make(), found)
        except Exception as error:  # of the environment: then nothing is shown
            return f"it cannot be compared ({type(error).__name__}: {error})"


def _kinds(env: Environment) -> list[type]:
    return [type(layer) for layer in _telling(env)]


def _chain(kinds: list[type]) -> str:
    return f"{'('.join(kind.__name__ for kind in kinds)}{')' * (len(kinds) - 1)}"


def _telling(env: Environment) -> list[Environment]:
    """Give the layers that may change observations, rewards or actions."""
    return [layer for layer in layers(env) if not _is_neutral(layer)]


def _is_neutral(layer: Environment) -> bool:
    """Whether a layer is one of the wrappers above, and nothing of it was replaced."""
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
    """Return the attributes of a layer that say what it does."""
    aside = _ASIDE | _DRAWING if _is_gymnasiums(layer) else _ASIDE
    return {name: value for name, value in vars(layer).items() if name not in aside}


def _compare(env: Environment, other: Environment, opaque: set[tuple[int, str]] | None = None) -> str:
    """Name the first difference between the layers of two environments.

    Attributes of Gymnasium's own classes that cannot be compared are added to `opaque` if it is given.
    """
    comparison = _Comparison()
    pairs = list(zip(_telling(env), _telling(other), strict=True))
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


def _difference_after_reset(env: Environment, fresh: Environment, graft: Environment, found: str) -> str:
    """Name the first difference that is left once both environments were reset with the same seed.

    The one that was given is not touched: an environment that was made anew, the graft, gets its attributes.
    Gymnasium's Box2D environments hold objects that cannot be copied or compared; those count for nothing if
    each reset makes them anew.
    """
    pairs = list(zip(_telling(env), _telling(graft), strict=True))
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
    for one in (graft, fresh):
        one.reset(seed=0)
    opaque = {(i, name) for i, names in enumerate(held) for name in names}
    if difference := _compare(graft, fresh, opaque):
        return difference
    before = [vars(layer).copy() for layer in _telling(fresh)]
    fresh.reset(seed=1)
    after = [vars(layer) for layer in _telling(fresh)]
    kept = sorted(name for i, name in opaque if after[i].get(name) is before[i].get(name))
    return f"{type(env.unwrapped).__name__}.{kept[0]} cannot be compared" if kept else ""


_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.CodeType, property)
_WHOLE = (*_FUNCTIONS, type, types.ModuleType, range, weakref.ref, gymnasium.Env)
"""Kinds of values that a copy shares, or that are copied by themselves."""


def is_opaque(value: Any, met: dict[int, Any] | None = None) -> bool:
    """Whether a value holds something that can be neither compared nor copied, such as a simulator in C++."""
    met = {} if met is None else met
    whole = isinstance(value, (*_WHOLE, *_PLAIN)) or hasattr(type(value), "__deepcopy__")
    if whole or type(value) in copyreg.dispatch_table or id(value) in met:
        return False
    met[id(value)] = value
    try:
        parts = _parts(value)
    except Exception:
        return True
    parts.pop(".__dict__", None)  # of which a copy has what the others say
    return any(is_opaque(part, met) for part in parts.values())


class _Comparison:
    """Compares values by what they hold; a pair of values that was met before is taken to be equal."""

    def __init__(self) -> None:
        self._met: dict[tuple[int, int], Any] = {}  # with the values, so that no other has their place

    def assume(self, pairs: list[tuple[Any, Any]]) -> None:
        """Take pairs of values to be equal."""
        self._met.update({(id(a), id(b)): (a, b) for a, b in pairs})

    def of_attributes(self, left: dict[str, Any], right: dict[str, Any], where: str) -> str:
        """Name the first difference between attributes."""
        for name in (*left, *right):
            if name not in right:
                return f"{where}.{name} was added or replaced"
            if name not in left:
                return f"{where}.{name} is missing"
            if found := self.of(left[name], right[name], f"{where}.{name}"):
                return found
        return ""

    def of(self, a: Any, b: Any, where: str) -> str:
        """Name the first difference between two values."""
        if a is b or (id(a), id(b)) in self._met:
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
        except Exception:  # of whatever kind: the value does not say what it holds
            return f"{where} cannot be compared"
        for name in parts[0] if set(parts[0]) == set(parts[1]) else ():
            if found := self.of(parts[0][name], parts[1][name], f"{where}{name}"):
                return found
        return "" if set(parts[0]) == set(parts[1]) else f"{where} is {_short(a)}, not {_short(b)}"


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _bits(value: Any) -> Any:
    """Give a number, a text or an array as bytes, of which NaN is like NaN."""
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return value.shape, [id(x) for x in value.ravel()]
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value) if isinstance(value, float | complex) else value


def _parts(value: Any) -> dict[str, Any]:
    """Take a value apart, each part by a name; raises what the value raises if it cannot be."""
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
    if isinstance(value, gymnasium.Space):  # what is drawn from a space is not what an environment does
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
    """Take an object apart into its attributes, and into what `copy.deepcopy` makes another one from."""
    reduced = value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return {f" ({reduced})": type(value)}
    make, arguments, *rest = reduced
    state = [list(part) if isinstance(part, Iterator) else part for part in rest]
    attributes = getattr(value, "__dict__", None)
    return {".__dict__": attributes, " (class)": make, " (of)": arguments, " (state)": state}
