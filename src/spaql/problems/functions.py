"""What Python and Numba know of a function: its code, its module, and the names in it."""

from __future__ import annotations

import inspect
import types
from typing import Any

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
