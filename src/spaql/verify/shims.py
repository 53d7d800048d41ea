"""The functions that a plant may call, for symbols as for numbers."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from spaql.problems.draws import draws_of
from spaql.verify.symbols import (
    RECORDERS,
    Comparison,
    NotTracedError,
    Symbol,
    lifted,
    made,
    positive_constant,
)

Function = Callable[..., Any]
_SYMBOLIC = (Symbol, Comparison)


def _elementwise(function: Function) -> Function:
    """Return a function that maps arrays of objects element by element."""

    def mapped(*given: Any) -> Any:
        if any(isinstance(x, np.ndarray) and x.ndim for x in given):
            return np.frompyfunc(function, len(given), 1)(*given)
        return function(*given)

    return mapped


def _unary(name: str, plain: Function) -> Function:
    return _elementwise(lambda x: made(name, lifted(x)) if isinstance(x, _SYMBOLIC) else plain(x))


def _extreme(name: str, plain: Function) -> Function:
    def function(*given: Any) -> Any:
        values = tuple(given[0]) if len(given) == 1 else given
        if not any(isinstance(x, _SYMBOLIC) for x in values):
            return plain(values)
        result = lifted(values[0])
        for x in values[1:]:
            result = made(name, result, lifted(x))
        return result

    return function


_MIN, _MAX = _extreme("min", min), _extreme("max", max)


def _single(x: Any) -> Any:
    if not isinstance(x, _SYMBOLIC):
        return lifted(np.float32(x))  # Numba computes with it in another precision than NumPy
    return Symbol(RECORDERS[-1].row("single", lifted(x).row), "single")


def _float(x: Any = 0.0) -> Any:
    if not isinstance(x, _SYMBOLIC):
        return float(x)
    x = lifted(x)
    return x if x.precision == "single" else Symbol(x.row)  # Numba's float() keeps single precision


def _double(x: Any = 0.0) -> Any:
    return Symbol(lifted(x).row, "double") if isinstance(x, _SYMBOLIC) else np.float64(x)


def _whole(x: Any = 0) -> Any:
    """Round towards zero, as int() does."""
    if isinstance(x, Comparison):
        return int(x)
    if not isinstance(x, Symbol):
        return int(x)
    return made("floor", x) if bool(x >= 0.0) else -made("floor", -x)


def _clip(x: Any, low: Any, high: Any) -> Any:
    return _MIN(_MAX(x, low), high)


def _hypot(x: Any, y: Any) -> Any:
    return made("sqrt", lifted(x * x + y * y))


def _power(x: Any, power: Any) -> Any:
    return x**power


def _sign(x: Any) -> Any:
    if not isinstance(x, _SYMBOLIC):
        return np.sign(x)
    x = lifted(x)
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)


def _copysign(x: Any, y: Any) -> Any:
    if not isinstance(x, _SYMBOLIC) and not isinstance(y, _SYMBOLIC):
        return math.copysign(x, y)
    if isinstance(y, _SYMBOLIC):  # -0.0 is not told from 0.0
        raise NotTracedError("copysign is not traced: write abs(x) if y >= 0 else -abs(x)")
    return _float(abs(x) * math.copysign(1.0, y))


def _atan2(y: Any, x: Any) -> Any:
    if not isinstance(y, _SYMBOLIC) and not isinstance(x, _SYMBOLIC):
        return math.atan2(y, x)
    return made("atan2", lifted(y), lifted(x))


def _fmod(x: Any, y: Any) -> Any:
    if isinstance(y, _SYMBOLIC) or isinstance(x, _SYMBOLIC):
        return made("fmod", lifted(x), positive_constant(y, "fmod"))
    return math.fmod(x, y)


def _interp(x: Any, points: Any, values: Any, *more: Any, **named: Any) -> Any:
    if not isinstance(x, _SYMBOLIC):
        return np.interp(x, np.asarray(points, float), np.asarray(values, float), *more, **named)
    if more or named:
        raise NotTracedError(
            "np.interp is traced with three arguments only: add the outer values to the table"
        )
    if any(isinstance(one, _SYMBOLIC) for one in (*points, *values)):
        raise NotTracedError("the table of np.interp must be constant")
    steps = np.diff(np.asarray(points, float))
    if len(points) != len(values) or not len(points) or not np.all(steps > 0):
        raise NotTracedError("the points of np.interp must ascend, with a value each")
    table = RECORDERS[-1].table(points, values)
    return Symbol(RECORDERS[-1].row("interp", lifted(x).row, table))


def _array(values: Any, *_: Any, **__: Any) -> Any:
    return np.array(values, dtype=object)


def _filled(value: float) -> Function:
    return lambda shape, *_, **__: np.full(shape, value, dtype=object)


def _trunc(x: Any) -> Any:
    return _whole(x) if isinstance(x, _SYMBOLIC) else math.trunc(x)


def _ceil(x: Any) -> Any:
    return -made("floor", -x) if isinstance(x, Symbol) else math.ceil(x)


class _SymbolicDraws:
    """The generator of a step, whose draws are inputs of the tape: see `spaql.problems.draws.Draws`."""

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
        return made("floor", lifted(_clip(low + (high - low) * self._next()[0], low, high - 0.5)))


_MATH: dict[str, Function] = {
    name: _unary(name, getattr(math, name))
    for name in ("sin", "cos", "tan", "sqrt", "exp", "log", "atan", "tanh", "floor")
}
_MATH |= {
    "fabs": _elementwise(lambda x: _float(abs(x))),
    "hypot": _hypot,
    "degrees": _elementwise(lambda x: _float(x * (180.0 / math.pi))),
    "radians": _elementwise(lambda x: _float(x * (math.pi / 180.0))),
    "pow": lambda x, power: _float(x**power),
    "copysign": _copysign,
    "atan2": _atan2,
    "fmod": _fmod,
    "trunc": _trunc,
    "ceil": _ceil,
}
_NUMPY: dict[str, Function] = {
    **{name: _MATH[name] for name in ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh", "floor", "ceil")},
    **{name: _MATH[name] for name in ("fabs", "hypot", "degrees", "radians", "copysign", "fmod")},
    "arctan": _MATH["atan"],
    "arctan2": _atan2,
    "deg2rad": _MATH["radians"],
    "rad2deg": _MATH["degrees"],
    "float32": _single,
    "float64": _double,
    "minimum": _elementwise(lambda x, y: _MIN(x, y)),
    "maximum": _elementwise(lambda x, y: _MAX(x, y)),
    "clip": _elementwise(_clip),
    "abs": _MATH["fabs"],
    "absolute": _MATH["fabs"],
    "sign": _elementwise(_sign),
    "square": _elementwise(lambda x: x * x),
    "power": _power,
    "interp": _interp,
    "array": _array,
    "asarray": _array,
    "zeros": _filled(0.0),
    "empty": _filled(0.0),
    "ones": _filled(1.0),
}
BUILTINS: dict[str, Function] = {
    "min": _MIN,
    "max": _MAX,
    "float": _float,
    "int": _whole,
    "pow": _power,
}


class ShimModule:
    """A module whose functions know symbols; the functions of a user's module are rebound when used."""

    def __init__(
        self, module: types.ModuleType, known: dict[str, Any], rebound: Callable[[Any], Any] | None = None
    ) -> None:
        self._module, self._known, self._rebound = module, known, rebound

    def __getattr__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        value = getattr(self._module, name)
        return value if self._rebound is None else self._rebound(value)


MODULES = {math: ShimModule(math, _MATH), np: ShimModule(np, _NUMPY)}
FUNCTIONS = {id(getattr(math, name)): shim for name, shim in _MATH.items()} | {
    id(getattr(np, name)): shim for name, shim in _NUMPY.items()
}
FUNCTIONS[id(draws_of)] = _SymbolicDraws
"""Shims by the identity of the function, for `from math import sin`."""
