"""What functions depend on, by content: their code, and every value and function that it reaches.

The walk follows globals, closures, defaults, and attributes of modules. It knows names, not data flow: an
attribute of a module counts as read if any name in the function is its name, so that a module may be reached
under another name. Functions, classes and values that are reached are the parts, each with a hash of its own
content, in which other parts are called by name: the same parts mean the same code and the same values.

It follows what compiled code can use: numbers, texts, arrays, tuples, enums, functions and modules. Python's
own modules and a few libraries are followed by name alone.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import os
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.typing.templates import builtin_registry

NUMBA_OPTIONS = ("boundscheck", "error_model", "fastmath", "parallel")
"""Options of `numba.njit` that change results."""


def plain_function(function: Any) -> Any:
    """Return the Python function of a compiled one."""
    return getattr(function, "py_func", function)


def inner_function(value: Any) -> Any:
    """Return the Python function that something of Numba's was made from."""
    for holder in (value, getattr(value, "_dispatcher", None), getattr(value, "gufunc_builder", None)):
        if inner := getattr(holder, "py_func", None):
            return inner
    kind = type(value).__module__ or ""
    names = ("_defn", "_pyfunc") if kind.startswith("numba.") else ()  # intrinsics, C callbacks
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)


def numba_options(compiled: Any) -> list[tuple[str, str]]:
    """Return the options of something of Numba's that change results."""
    options = getattr(compiled, "targetoptions", {})
    return [(option, repr(options[option])) for option in NUMBA_OPTIONS if options.get(option)]


def module_of(value: Any) -> str | None:
    """Return the name of the module in which a function or a class was written."""
    if isinstance(value, types.FunctionType):  # `functools.wraps` changes its `__module__`
        return str(value.__globals__.get("__name__"))
    module = getattr(value, "__module__", None)
    return module if isinstance(module, str) else None


def names_in(code: types.CodeType) -> set[str]:
    """Return all names in code and the functions within it; texts too, which `getattr` may take."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            names |= names_in(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            names.add(constant)
    return names


def cell_content(cell: types.CellType) -> Any:
    """Return the value of a variable of a closure."""
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def defaulted_parameters(function: types.FunctionType) -> tuple[str, ...]:
    """Return the names of the parameters that have a default."""
    code = function.__code__
    n = len(function.__defaults__ or ())
    return code.co_varnames[code.co_argcount - n : code.co_argcount]


_LIBRARIES = {"numpy", "numba", "llvmlite", "scipy", "gymnasium"}
_OF_KERNELS = [("error_model", repr("numpy"))]
"""Those of `spaql.kernels.jit.callable_by_kernels`."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
CodeToken = Callable[[types.FunctionType], Any]
ByName = Callable[[str | None], bool]


@dataclass(frozen=True)
class Content:
    """The parts that functions depend on."""

    parts: Mapping[str, str]
    """The SHA-256 of each part, by its name."""
    unknown: Mapping[str, str]
    """What could not be followed, by name: what it is."""
    numba_cached: tuple[Any, ...]
    """Functions that were reached and that Numba caches on disk itself."""
    without_module: bool = False
    """Whether a function is of no module that can be imported, as one that `exec` made."""

    @property
    def is_cacheable(self) -> bool:
        """Whether compiled code may be kept on disk.

        A change of what could not be followed would not be noticed, and compiled code names the modules of
        its functions, which are imported where it is loaded.
        """
        return not self.unknown and not self.without_module

    @property
    def digest(self) -> str:
        """A hash of all parts."""
        return sha256(sorted(self.parts.items()))


def sha256(token: Any) -> str:
    """Return the hash of nested tuples and lists of texts, numbers and bytes."""
    return hashlib.sha256(repr(token).encode()).hexdigest()


def bytecode(function: types.FunctionType) -> Any:
    """Return what was compiled from a function's text, which differs between versions of Python."""
    return _code_token(function.__code__)


def content_of(
    functions: Mapping[str, Any], code: CodeToken = bytecode, by_name: ByName | None = None
) -> Content:
    """Return what functions depend on; they are parts under the names that are given.

    Parameters
    ----------
    functions
        Functions by name, the most important last: names of its module are written without it.
    code
        Returns the content of a function's own code.
    by_name
        Returns whether the contents of a module are followed by name alone; see `is_shipped`.

    Examples
    --------
    >>> scale = 2.0
    >>> double = types.FunctionType((lambda x: scale * x).__code__, {"scale": scale, "__name__": "here"})
    >>> sorted(content_of({"double": double}).parts)
    ['double', 'scale']
    """
    walk = _Walk(functions, code, by_name or is_shipped)
    walk.finish()
    return Content(walk.parts, walk.unknown, tuple(walk.numba_cached), walk.without_module)


def value_token(value: Any) -> Any:
    """Return the content of plain data, for `sha256`."""
    return _Walk({}, bytecode, is_shipped).token("value", value)


class _Walk:
    def __init__(self, functions: Mapping[str, Any], code: CodeToken, by_name: ByName) -> None:
        self.parts: dict[str, str] = {}
        self.unknown: dict[str, str] = {}
        self.numba_cached: list[Any] = []
        self.without_module = False
        self._code = code
        self._by_name = by_name
        self._names: dict[int, str] = {}
        self._taken: dict[str, Any] = {}
        """What each name of a part stands for: a token, or the function or class itself, which is so held
        and keeps its id."""
        self._waiting: deque[tuple[str, Any]] = deque()
        written = [module_of(plain_function(function)) for function in functions.values()]
        self._home = written[-1] if written else None
        """The module whose names are written without it, so that a script and a module are the same."""
        for name, function in functions.items():
            self._add(name, plain_function(function))
            self._note_cache(function)
            if function is not plain_function(function):
                self.parts[f"{name} (compiled)"] = sha256(numba_options(function))

    def finish(self) -> None:
        """Follow all that waits."""
        while self._waiting:
            name, value = self._waiting.popleft()
            follow = self._class if isinstance(value, type) else self._function
            self.parts[name] = sha256(follow(name, value))

    def _add(self, name: str, value: Any) -> str:
        """Return the name of the part of a function or a class, which is followed once."""
        if id(value) not in self._names:
            self._names[id(value)] = self._take(name, value)
            self._waiting.append((self._names[id(value)], value))
        return self._names[id(value)]

    def _take(self, name: str, meant: Any) -> str:
        """Return the name, with a number if it stands for something else already."""
        taken = name
        n = 1
        while (other := self._taken.setdefault(taken, meant)) is not meant and not _same(other, meant):
            n += 1
            taken = f"{name}#{n}"
        return taken

    def _named(self, module: str | None, name: str) -> str:
        return name if module == self._home else f"{module}.{name}"

    def _note_cache(self, value: Any) -> None:
        if type(getattr(value, "_cache", None)) is FunctionCache:
            self.numba_cached.append(value)

    def _function(self, name: str, function: types.FunctionType) -> Any:
        scope = function.__globals__
        module = module_of(function)
        self.without_module |= function.__module__ not in sys.modules
        names = sorted(names_in(function.__code__))
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        references = [(cell, f"{name}.{cell}", cell_content(content)) for cell, content in cells]
        references += [
            (global_name, self._named(module, global_name), scope[global_name])
            for global_name in names
            if global_name in scope
        ]
        modules = [value for _, _, value in references if isinstance(value, types.ModuleType)]
        for reached_module in modules:  # grows
            reached = list(self._attributes(reached_module, names))
            references += [
                (f"{reached_module.__name__}.{a}", self._named(reached_module.__name__, a), value)
                for a, value in reached
            ]
            modules += [v for _, v in reached if isinstance(v, types.ModuleType) and v not in modules]
        parameters = zip(defaulted_parameters(function), function.__defaults__ or (), strict=True)
        kept = [*parameters, *sorted((function.__kwdefaults__ or {}).items())]
        references += [(f"{parameter}=", f"{name}.{parameter}", value) for parameter, value in kept]
        read = [(how, self._refer(what, value)) for how, what, value in references]
        return ("function", self._code(function), read, self._overloads(name, function))

    def _attributes(self, module: types.ModuleType, names: list[str]) -> Iterator[tuple[str, Any]]:
        """Yield those of the names that are attributes of a module, which may define them when asked."""
        for name in () if self._by_name(module.__name__) else names:
            if name in vars(module):
                yield name, vars(module)[name]
            elif "__getattr__" in vars(module) and hasattr(module, name):
                yield name, getattr(module, name)

    def _overloads(self, name: str, function: types.FunctionType) -> Any:
        """Return what Numba compiles instead of a function, if something was registered for it."""
        overloads = []
        kinds = [kind for value, kind in builtin_registry.globals if value is function]
        for template in (entry for kind in kinds for entry in getattr(kind, "templates", ())):
            replacement = getattr(template, "_overload_func", None)
            options = getattr(template, "_jit_options", {})
            kept = [(option, repr(options[option])) for option in NUMBA_OPTIONS if options.get(option)]
            own = isinstance(replacement, types.FunctionType) and not self._by_name(module_of(replacement))
            if own or kept not in ([], _OF_KERNELS):  # which spaql may have registered since
                overloads.append((kept, self._refer(f"{name} (overload)", replacement) if own else ""))
        return overloads

    def _class(self, name: str, kind: type) -> Any:
        if issubclass(kind, enum.Enum):
            return ("enum", [(member.name, self.token(name, member.value)) for member in kind])
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            defaults = getattr(kind, "_field_defaults", {})
            return ("named tuple", kind._fields, self.token(name, defaults))
        return self._lost(name, "a class")

    def _refer(self, name: str, value: Any) -> Any:
        """Return how a function calls a value: by the name of its part."""
        token = self.token(name, value)
        if token and token[0] in ("part", "shipped", "module"):
            return token
        name = self._take(name, token)
        self.parts[name] = sha256(token)
        return ("part", name)

    def token(self, name: str, value: Any) -> Any:
        """Return the content of a value; functions and classes are parts of their own."""
        if type(value) in _PLAIN:
            return (type(value).__name__, repr(value))
        if isinstance(value, types.ModuleType):
            return ("module", "" if value.__name__ == self._home else value.__name__)
        if isinstance(value, np.ndarray | np.generic | np.dtype):
            return self._array(name, value)
        self._note_cache(value)
        if shipped := self._shipped_name(value):
            return ("shipped", shipped)
        if callable(inner := inner_function(value)):
            kept = numba_options(value)
            return ("compiled", kept, self.token(name, inner)) if kept else self.token(name, inner)
        if isinstance(value, types.FunctionType | type):
            return ("part", self._add(self._named(module_of(value), value.__qualname__), value))
        return self._composed(name, value)

    def _shipped_name(self, value: Any) -> str | None:
        """Return the full name of a function or class of a module that is followed by name."""
        module = module_of(value)
        name = getattr(value, "__qualname__", getattr(value, "__name__", None))
        module = "numpy" if isinstance(value, np.ufunc) else module
        if not isinstance(name, str) or not isinstance(module, str) or not self._by_name(module):
            return None
        there: Any = sys.modules.get(module)
        for part in name.split("."):
            there = getattr(there, part, None)
        return f"{module}.{name}" if there is value else None

    def _array(self, name: str, value: Any) -> Any:
        if isinstance(value, np.dtype):
            return ("dtype", repr(value))
        if value.dtype.hasobject:
            return self._lost(name, "an array of objects")
        content = hashlib.sha256(value.tobytes()).hexdigest()
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return ("array", type(value).__name__, repr(value.dtype), value.shape, order, content)

    def _composed(self, name: str, value: Any) -> Any:
        """Return the content of a container, or of a member of an enum."""
        kind = type(value)
        if isinstance(value, enum.Enum):
            return ("member", self.token(name, kind), value.name)
        if isinstance(value, tuple | list):
            return (kind.__name__, getattr(value, "_fields", ()), [self.token(name, item) for item in value])
        if isinstance(value, set | frozenset):
            return (kind.__name__, sorted((self.token(name, item) for item in value), key=repr))
        if isinstance(value, dict | types.MappingProxyType):
            rows = [(self.token(name, key), self.token(name, item)) for key, item in value.items()]
            return (kind.__name__, rows)
        if isinstance(value, range | slice):
            return (kind.__name__, repr(value))
        if isinstance(value, numba.types.Type) and "#" not in str(value) and "0x" not in str(value):
            return ("numba", str(value))
        return self._lost(name, f"{kind.__module__}.{kind.__qualname__}")

    def _lost(self, name: str, what: str) -> Any:
        self.unknown[name] = what
        return ("unknown", what)


def _same(token: Any, other: Any) -> bool:
    return isinstance(token, tuple) and isinstance(other, tuple) and token == other


_STDLIB = os.path.dirname(os.path.realpath(os.__file__))


@functools.cache
def is_shipped(module: str | None) -> bool:
    """Return whether a module is Python's own, or one of a few libraries, and not one of the same name.

    Examples
    --------
    >>> is_shipped("math"), is_shipped("numpy.linalg"), is_shipped("spaql.problems.classic")
    (True, True, False)
    """
    root = (module or "").partition(".")[0]
    if module is None or module.startswith("gymnasium.envs."):
        return False
    if root in _LIBRARIES or module.startswith("spaql.kernels"):  # the stamp of the kernels is in every key
        return True
    if root not in sys.stdlib_module_names or root not in sys.modules:
        return False
    file = getattr(sys.modules[root], "__file__", None)
    return file is None or os.path.realpath(file).startswith(_STDLIB)


def _code_token(code: types.CodeType) -> Any:
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    constants = [_code_token(c) if inspect.iscode(c) else value_token(c) for c in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (shape, code.co_code, code.co_exceptiontable, constants, names)
