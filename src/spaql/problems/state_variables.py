"""Which state variable of a plant an observation shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

_SAME = 1e-12
"""Rounding of an observation that shows a state variable, relative to it."""


def state_place(observe: Callable[..., Any], state: tuple[float, ...], number: int) -> int | None:
    """Return the state variable that an observation shows, up to a constant; None if it shows none alone.

    Examples
    --------
    >>> [state_place(lambda s: (s[1] - 273.15, s[0] * s[1]), (2.0, 300.0), number) for number in (0, 1)]
    [1, None]
    """
    shown = observe(state)[number]
    follows = []
    for j in range(len(state)):
        try:
            change = observe((*state[:j], state[j] + 1.0, *state[j + 1 :]))[number] - shown
        except (ArithmeticError, ValueError):  # it is not defined there
            return None
        if math.isclose(change, 1.0, abs_tol=_SAME * (1.0 + abs(shown))):
            follows.append(j)
        elif change != 0.0:
            return None
    return follows[0] if len(follows) == 1 else None
