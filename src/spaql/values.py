"""Conversion of arguments to Python values: NumPy's numbers are numbers, and strings are not."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError, nearest


def whole_number(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return an integer, Python's or NumPy's, as an int; raises for everything else.

    Examples
    --------
    >>> whole_number("seed", 3, least=0)
    3
    >>> whole_number("seed", 3.0, least=0)
    Traceback (most recent call last):
    spaql.errors.SettingError: seed is 3.0, and must be a whole number, at least 0: give 3.
    """
    try:
        number = math.nan if _is_bool(value) else operator.index(value)
    except TypeError:
        number = math.nan
    if isinstance(number, float) or not _within(number, least, most):
        wanted = "a whole number" + _ends(least, most)
        raise SettingError(f"{name} is {value!r}, and must be {wanted}{_meant(value, least, most)}.")
    return number


def real_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> float:
    """Return a finite number, Python's or NumPy's, as a float; raises for everything else.

    Examples
    --------
    >>> real_number("sample_time", 2, above=0)
    2.0
    """
    number = float(value) if isinstance(value, Real) and not _is_bool(value) else math.nan
    if not math.isfinite(number):
        raise SettingError(f"{name} is {value!r}, and must be a number.")
    if least is not None and number < least:
        raise SettingError(f"{name} is {value}, and must be at least {least:g}.")
    if above is not None and number <= above:
        raise SettingError(f"{name} is {value}, and must be above {above:g}.")
    if most is not None and number > most:
        raise SettingError(f"{name} is {value}, and must be at most {most:g}.")
    return number


def refuse_unknown(names: Iterable[str], known: Collection[str], setting: str, kind: str) -> None:
    """Refuse names in a setting that are not known.

    Examples
    --------
    >>> refuse_unknown(["spede"], ["angle", "speed"], "noise", "observation")
    Traceback (most recent call last):
    spaql.errors.SettingError: noise names 'spede', which is no observation: did you mean speed?
    """
    for name in names:
        if name not in known:
            raise SettingError(f"{setting} names {name!r}, which is no {kind}: {nearest(name, known)}")


def plain(value: Any) -> Any:
    """Return data with NumPy's numbers and arrays, at any depth, as Python's numbers and lists.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"scaling": np.float64(0.5), "levels": (np.int64(3), np.arange(2))})
    {'scaling': 0.5, 'levels': (3, [0, 1])}
    """
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    # Both scalars and arrays of NumPy have these; NumPy is not imported, so that help stays quick.
    return value.tolist() if hasattr(value, "dtype") and hasattr(value, "tolist") else value


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) == "bool"


def _within(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _ends(least: int | None, most: int | None) -> str:
    ends = [f"{word} {end}" for word, end in (("at least", least), ("at most", most)) if end is not None]
    return f", {' and '.join(ends)}" if ends else ""


def _meant(value: Any, least: int | None, most: int | None) -> str:
    """Return a hint how to write a whole number that was passed as a float or a string."""
    if _is_bool(value) or not isinstance(value, Real | str):
        return ""
    try:
        number = float(value)
    except ValueError:
        return ""
    return f": give {number:.0f}" if number.is_integer() and _within(number, least, most) else ""


def with_null(data: Any) -> Any:
    """Return data with None for NaN, which JSON does not have; NaN is the interval of a single value.

    Examples
    --------
    >>> with_null({"mean": 1.0, "halves": (0.5, math.nan)})
    {'mean': 1.0, 'halves': [0.5, None]}
    """
    if isinstance(data, dict):
        return {key: with_null(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [with_null(value) for value in data]
    return None if isinstance(data, float) and math.isnan(data) else data


def rounded(numbers: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Return numbers with a few significant digits.

    Examples
    --------
    >>> rounded(np.array([[12.345, 0.98765]]), 3)
    array([[12.3  ,  0.988]])
    """
    return np.array([float(f"{x:.{digits}g}") for x in numbers.ravel().tolist()]).reshape(numbers.shape)
