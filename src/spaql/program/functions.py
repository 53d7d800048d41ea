"""The functions and operators of expressions: what each takes, and how NumPy and Numba compute it.

All are defined for all numbers: division by 0, and arguments out of a domain, lead to infinities and NaN, as
IEEE 754 has it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spaql.kernels.jit import callable_by_kernels


@callable_by_kernels
def clip(x: Any, low: Any, high: Any) -> Any:
    """Return numbers in a range, or the nearest end of it; Numba clips arrays only."""
    return np.minimum(np.maximum(x, low), high)


@dataclass(frozen=True)
class Form:
    """How a function is computed."""

    function: Callable[..., Any]
    """Of numbers or arrays."""
    fewest: int = 1
    """Arguments."""
    most: int | None = 1
    """None for any number of them, which are taken two at a time, from the left."""


FUNCTIONS = {
    "abs": Form(np.abs),
    "sign": Form(np.sign),
    "sqrt": Form(np.sqrt),
    "exp": Form(np.exp),
    "log": Form(np.log),
    "sin": Form(np.sin),
    "cos": Form(np.cos),
    "tan": Form(np.tan),
    "asin": Form(np.arcsin),
    "acos": Form(np.arccos),
    "atan": Form(np.arctan),
    "atan2": Form(np.arctan2, 2, 2),
    "tanh": Form(np.tanh),
    "floor": Form(np.floor),
    "hypot": Form(np.hypot, 2, 2),
    "min": Form(np.minimum, 2, None),
    "max": Form(np.maximum, 2, None),
    "clip": Form(clip, 3, 3),
}
"""Those that an expression may call."""
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": np.divide,
    "%": np.mod,
    "**": np.power,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
CONSTANTS = {"pi": math.pi}
