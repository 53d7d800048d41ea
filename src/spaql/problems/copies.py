"""Independent copies of an environment that was given as an object."""

from __future__ import annotations

import copy
import functools
import types
import weakref
from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium.utils import EzPickle

from spaql.errors import BadEnvironmentError, SettingError
from spaql.problems.recognition import attributes_of, difference, drawing_tools, is_opaque, layers
from spaql.problems.user_errors import message_of

Environment = gymnasium.Env[Any, Any]


def copied(env: Environment) -> Environment:
    """Return a copy of an environment, with everything that was changed or replaced on it.

    Examples
    --------
    >>> env = gymnasium.make("Pendulum-v1")
    >>> env.unwrapped.max_torque = 0.5
    >>> copied(env).unwrapped.max_torque
    0.5
    """
    try:
        return _attributes_copied(env)
    except SettingError:  # it refuses copies, and says what to do instead
        raise
    except Exception as error:
        if any(isinstance(layer, EzPickle) for layer in layers(env)):
            # Made again from the arguments of its constructor: only if nothing is lost.
            if not (lost := difference(env, lambda: copy.deepcopy(env))):
                made = copy.deepcopy(env)
                made.unwrapped.spec = env.unwrapped.spec  # which `gymnasium.make` adds after the constructor
                return made
            raise _refusal(env, lost) from error
        raise _refusal(env, message_of(error)) from error


def is_pickled_in_part(env: Environment) -> bool:
    """Return whether something of an environment would be lost on the way to another process."""
    made_anew = any(isinstance(layer, EzPickle) for layer in layers(env))
    return made_anew and bool(difference(env, lambda: copy.deepcopy(env)))


def _refusal(env: Environment, why: str) -> BadEnvironmentError:
    spec = env.unwrapped.spec
    id_will_do = "" if spec is None else f"give {spec.id!r} instead if that is what is meant; otherwise "
    return BadEnvironmentError(
        f"Training and evaluation need copies of the {type(env.unwrapped).__name__} that was given, and it "
        f"cannot be copied ({why}): {id_will_do}write a function that makes it, register that by "
        "gymnasium.register('Mine-v0', entry_point=function), and give 'Mine-v0'."
    )


def _attributes_copied(env: Environment) -> Environment:
    """Return a copy by instance attributes, even if the class is pickled by its constructor's arguments.

    `copy.deepcopy` shares functions between a copy and the original. A function that was set on the
    environment and refers to it would then act on the original: it is rebuilt, to refer to the copy.
    """
    chain = list(layers(env))
    memo: dict[int, Any] = {id(tool): None for layer in chain for tool in drawing_tools(layer)}
    plain = [layer for layer in chain if _is_its_attributes(layer)]
    for layer in plain:
        for name, value in attributes_of(layer).items():
            if is_opaque(value):
                raise TypeError(f"{type(layer).__name__}.{name} is {type(value).__name__}")
        memo[id(layer)] = object.__new__(type(layer))
    functions = _Functions(chain)
    functions.build_into(memo)
    for layer in plain:
        vars(memo[id(layer)]).update(copy.deepcopy(vars(layer), memo))
    made: Environment = copy.deepcopy(env, memo)
    functions.fill(memo)
    return made


def _is_its_attributes(layer: Environment) -> bool:
    """Return whether a layer defines no copying of its own, except by its constructor's arguments."""
    kind = type(layer)
    plain = kind.__getstate__ in (object.__getstate__, EzPickle.__getstate__)
    return plain and not hasattr(kind, "__deepcopy__") and kind.__reduce_ex__ is object.__reduce_ex__


class _Functions:
    """The functions on an environment that refer to one of its layers, by a closure or a global name."""

    def __init__(self, chain: list[Environment]) -> None:
        self._layers = {id(layer) for layer in chain}
        self._found: dict[int, types.FunctionType] = {}
        self._methods: list[types.MethodType] = []
        self._cells: dict[int, tuple[types.CellType, types.CellType]] = {}
        visited: dict[int, Any] = {}
        for layer in chain:
            for value in vars(layer).values():
                for function in _functions_in(value, self._layers, visited):
                    if isinstance(function, types.MethodType):
                        self._methods.append(function)
                    elif self._refers(function, {}):
                        self._found[id(function)] = function

    def build_into(self, memo: dict[int, Any]) -> None:
        """Rebuild each function, with cells that are still empty, into the memo of `copy.deepcopy`."""
        for function in self._found.values():
            cells = tuple(self._cell(cell) for cell in function.__closure__ or ())
            names = dict(function.__globals__) if self._own_globals(function) else function.__globals__
            built = types.FunctionType(
                function.__code__, names, function.__name__, function.__defaults__, cells or None
            )
            built.__kwdefaults__ = function.__kwdefaults__
            vars(built).update(vars(function))
            memo[id(function)] = built
        for method in self._methods:  # of which `copy.deepcopy` would keep the function
            if id(method.__func__) in self._found:
                memo[id(method)] = types.MethodType(memo[id(method.__func__)], memo[id(method.__self__)])

    def fill(self, memo: dict[int, Any]) -> None:
        """Fill the cells and globals of the rebuilt functions with the copy."""
        for old, new in self._cells.values():
            new.cell_contents = copy.deepcopy(old.cell_contents, memo)
        for function in self._found.values():
            for name in self._own_globals(function):
                memo[id(function)].__globals__[name] = copy.deepcopy(function.__globals__[name], memo)

    def _cell(self, cell: types.CellType) -> types.CellType:
        """Return the cell of a rebuilt function: an empty one if it is to refer to the copy."""
        if not self._refers(_contents(cell), {}):
            return cell
        return self._cells.setdefault(id(cell), (cell, types.CellType()))[1]

    def _own_globals(self, function: types.FunctionType) -> list[str]:
        return [name for name, value in _globals_of(function) if self._refers(value, {})]

    def _refers(self, value: Any, visited: dict[int, Any]) -> bool:
        """Return whether a value is, or holds, a layer."""
        if id(value) in self._layers:
            return True
        if id(value) in visited:
            return False
        visited[id(value)] = value
        return any(self._refers(part, visited) for part in _parts(value))


def _functions_in(
    value: Any, stop: set[int], visited: dict[int, Any], *, copied: bool = True
) -> Iterator[types.FunctionType | types.MethodType]:
    """Yield the functions and methods that a value holds; layers are searched separately.

    Objects are searched if they are copied with the environment; those that functions refer to are not.
    """
    if id(value) in stop or id(value) in visited or type(value) in weakref.ProxyTypes:
        return
    visited[id(value)] = value
    is_function = isinstance(value, types.FunctionType | types.MethodType)
    if is_function:
        yield value
    parts = list(_parts(value))
    if copied and not is_function and not isinstance(value, type | types.ModuleType):
        own = getattr(value, "__dict__", None)
        parts += own.values() if isinstance(own, dict) and not hasattr(type(value), "__deepcopy__") else ()
    for part in parts:
        yield from _functions_in(part, stop, visited, copied=copied and not is_function)


def _parts(value: Any) -> Iterator[Any]:
    """Yield the contents of containers, functions, methods and partial functions."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif isinstance(value, types.FunctionType):
        yield from (_contents(cell) for cell in value.__closure__ or ())
        yield from (part for _, part in _globals_of(value))
    elif isinstance(value, types.MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def _globals_of(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the global variables that a function uses, without functions of other modules."""
    waiting, names = [function.__code__], set[str]()
    while waiting:
        code = waiting.pop()
        names.update(code.co_names)
        waiting += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        elsewhere = isinstance(value, types.FunctionType) and value.__globals__ is not function.__globals__
        if not elsewhere:
            yield name, value
