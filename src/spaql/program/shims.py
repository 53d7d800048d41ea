"""The functions that a plant may call, for symbols as for numbers."""

from __future__ import annotations

import builtins
import math
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from spaql.kernels.draws import draws_of
from spaql.program.arrays import Array, array_of, broadcast, double
from spaql.program.recorder import RECORDERS, NotTracedError
from spaql.program.symbols import Symbol, apply, lifted, positive_constant, whole

Function = Callable[..., Any]


def _elementwise(function: Function) -> Function:
    """Return a function that maps arrays element by element."""

    def mapped(*arguments: Any) -> Any:
        of_arrays = any(isinstance(x, Array) for x in arguments)
        return broadcast(function, *arguments) if of_arrays else function(*arguments)

    return mapped


def _unary(name: str, plain: Function) -> Function:
    return _elementwise(lambda x: apply(name, x) if isinstance(x, Symbol) else plain(x))


def _extreme(name: str, plain: Function) -> Function:
    def function(*arguments: Any) -> Any:
        values = tuple(arguments[0]) if len(arguments) == 1 else arguments
        if not any(isinstance(x, Symbol) for x in values):
            return plain(values)
        result = lifted(values[0])
        for x in values[1:]:
            result = apply(name, result, lifted(x))
        return result

    return function


_MIN = _extreme("min", min)
_MAX = _extreme("max", max)


def _single(x: Any) -> Any:
    if not isinstance(x, Symbol):
        return lifted(np.float32(x))  # Numba computes with it in another precision than NumPy
    return Symbol(RECORDERS[-1].row("single", x.row), "single")


def _float(x: Any = 0.0) -> Any:
    if not isinstance(x, Symbol):
        return float(x)
    return x if x.precision == "single" else Symbol(x.row)  # Numba's float() keeps single precision


def _double(x: Any = 0.0) -> Any:
    return double(x) if isinstance(x, Symbol) else np.float64(x)


def _whole(x: Any = 0) -> Any:
    """Round towards zero, as int() does."""
    if not isinstance(x, Symbol):
        return int(x)
    if x.precision == "whole":
        return x
    return _rounded_down(x) if x >= 0.0 else -_rounded_down(-x)


def _rounded_down(x: Symbol) -> Symbol:
    """Return floor(x) as a whole number."""
    return whole(apply("floor", x).row)


def clip(x: Any, low: Any, high: Any) -> Any:
    """Return a number in a range, or the nearest end of it."""
    return _MIN(_MAX(x, low), high)


def _hypot(x: Any, y: Any) -> Any:
    return apply("sqrt", lifted(x * x + y * y))


def _sign(x: Any) -> Any:
    if not isinstance(x, Symbol):
        return np.sign(x)
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)


def _copysign(x: Any, y: Any) -> Any:
    if isinstance(y, Symbol):  # -0.0 is not told from 0.0
        raise NotTracedError("copysign is not traced: write abs(x) if y >= 0 else -abs(x)")
    return _float(abs(x) * math.copysign(1.0, y)) if isinstance(x, Symbol) else math.copysign(x, y)


def _atan2(y: Any, x: Any) -> Any:
    if not isinstance(y, Symbol) and not isinstance(x, Symbol):
        return math.atan2(y, x)
    return apply("atan2", lifted(y), lifted(x))


def _fmod(x: Any, y: Any) -> Any:
    if isinstance(y, Symbol) or isinstance(x, Symbol):
        return apply("fmod", lifted(x), positive_constant(y, "fmod"))
    return math.fmod(x, y)


def _interp(x: Any, points: Any, values: Any) -> Any:
    table = [tuple(column) for column in (points, values)]
    if any(isinstance(entry, Symbol) for column in table for entry in column):
        raise NotTracedError("the table of np.interp must be constant")
    places, heights = (np.asarray(column, float) for column in table)
    if len(places) != len(heights) or not len(places) or not np.all(np.diff(places) > 0):
        raise NotTracedError("the points of np.interp must ascend, with a value each")
    if not np.all(np.isfinite([places, heights])):
        raise NotTracedError("the table of np.interp must be finite")
    if not isinstance(x, Symbol):
        return np.interp(x, places, heights)
    return Symbol(RECORDERS[-1].row("interp", x.row, RECORDERS[-1].table(*table)))


def _is_of_floats(dtype: Any) -> bool:
    """Return whether the type of an array is the one that is traced."""
    if dtype not in (None, _double, _float):
        raise NotTracedError(
            "an array of another type than np.float64: write int(x) or np.float32(x) of its elements"
        )
    return dtype is not None


def _array(values: Any, dtype: Any = None) -> Any:
    return array_of(values, float if _is_of_floats(dtype) else None)


def _as_array(values: Any, dtype: Any = None) -> Any:
    return values if isinstance(values, Array) and not _is_of_floats(dtype) else _array(values, dtype)


def _full(shape: Any, value: Any, dtype: Any = None) -> Any:
    return _array(np.full(shape, value, object).tolist(), dtype)


def _filled(value: float) -> Function:
    return lambda shape, dtype=None: _full(shape, value, dtype)


def _of_symbols(symbolic: Function, plain: Function) -> Function:
    return lambda x: symbolic(x) if isinstance(x, Symbol) else plain(x)


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


class _SymbolicDraws:
    """The generator of a step, whose draws are inputs of the tape: see `spaql.kernels.draws.Draws`."""

    def __init__(self, *_: Any) -> None:
        self._count = 0

    def _next(self) -> tuple[Symbol, Symbol]:
        uniform, normal = RECORDERS[-1].draw(self._count)
        self._count += 1
        return Symbol(uniform), Symbol(normal)

    def random(self) -> Symbol:
        return self._next()[0]

    def uniform(self, low: Any = 0.0, high: Any = 1.0) -> Any:
        return low + (high - low) * self._next()[0]

    def normal(self, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        return loc + scale * self._next()[1]

    def integers(self, low: Any, high: Any) -> Any:
        # Clipped for its bounds, which decide how many values an index of a table has.
        return _rounded_down(lifted(clip(low + (high - low) * self._next()[0], low, high - 0.5)))


_OF_ONE = ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh")
_MATH: dict[str, Function] = {name: _unary(name, getattr(math, name)) for name in (*_OF_ONE, "atan")}
_MATH |= {
    "fabs": _elementwise(lambda x: _float(abs(x))),
    "hypot": _hypot,
    "degrees": _elementwise(lambda x: _float(x * (180.0 / math.pi))),
    "radians": _elementwise(lambda x: _float(x * (math.pi / 180.0))),
    "pow": lambda x, power: _float(x**power),
    "copysign": _copysign,
    "atan2": _atan2,
    "fmod": _fmod,
    "trunc": _of_symbols(_whole, math.trunc),
    "floor": _of_symbols(_rounded_down, math.floor),
    "ceil": _of_symbols(lambda x: -_rounded_down(-x), math.ceil),
}
_NUMPY: dict[str, Function] = {
    **{name: _MATH[name] for name in (*_OF_ONE, "fabs", "hypot", "degrees", "radians", "copysign", "fmod")},
    "floor": _elementwise(_of_symbols(lambda x: double(apply("floor", x)), np.floor)),
    "ceil": _elementwise(_of_symbols(lambda x: double(-apply("floor", -x)), np.ceil)),
    "arctan": _MATH["atan"],
    "arctan2": _atan2,
    "deg2rad": _MATH["radians"],
    "rad2deg": _MATH["degrees"],
    "float32": _single,
    "float64": _double,
    "int64": _whole,
    "minimum": _elementwise(_MIN),
    "maximum": _elementwise(_MAX),
    "clip": _elementwise(clip),
    "abs": _MATH["fabs"],
    "absolute": _MATH["fabs"],
    "sign": _elementwise(_sign),
    "square": _elementwise(lambda x: x * x),
    "power": operator.pow,
    "divide": _elementwise(operator.truediv),
    "mod": _elementwise(operator.mod),
    "interp": _interp,
    "array": _array,
    "asarray": _as_array,
    "zeros": _filled(0.0),
    "empty": _filled(math.nan),
    "ones": _filled(1.0),
    "full": _full,
    "dot": operator.matmul,
}
BUILTINS: dict[str, Any] = {
    "min": _MIN,
    "max": _MAX,
    "float": _float,
    "int": _whole,
    "pow": operator.pow,
    **{f.__name__: f for f in (abs, bool, enumerate, len, range, round, sum, tuple, zip, all, any)},
    **{name: found for name, found in vars(builtins).items() if _is_error(found)},
}
"""All that a function may use without a module; an error that it raises is a refusal."""


def known_attribute(module: types.ModuleType, name: str) -> Any:
    """Return what a function may use of `math` or `numpy`."""
    known = {math: _MATH, np: _NUMPY}[module]
    if name in known:
        return known[name]
    value = getattr(module, name)
    if isinstance(value, float):
        return value
    raise unknown_function(f"{module.__name__}.{name}")


def unknown_function(name: str) -> NotTracedError:
    """Return the refusal of a function."""
    return NotTracedError(
        f"{name} is not known for sets: use +, -, *, /, comparisons, min, max, abs, and of math sin, cos, "
        "tan, atan, atan2, sqrt, exp, log, tanh, fmod"
    )


FUNCTIONS: dict[int, Any] = {id(getattr(math, name)): shim for name, shim in _MATH.items()}
FUNCTIONS |= {id(getattr(np, name)): shim for name, shim in _NUMPY.items()}
FUNCTIONS |= {id(found): BUILTINS[name] for name, found in vars(builtins).items() if name in BUILTINS}
FUNCTIONS[id(draws_of)] = _SymbolicDraws
"""Shims by the identity of the function, for `from math import sin`."""
