"""The functions of a plant, called once before they are compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.errors import SettingError


def try_functions(
    functions: Sequence[Callable[..., Any]],
    actions: Box | Discrete,
    observations: int,
    reference: tuple[float, ...] | None,
) -> int:
    """Call `start`, `step` and `observe`, refuse invalid results, and return the length of a state.

    Examples
    --------
    >>> def start(rng):
    ...     return (0.0, 1.0)
    >>> try_functions((start, lambda state, action: (state, 0.0, False), start), Discrete(2), 2, None)
    2
    """
    start, step, observe = functions
    state = start(np.random.default_rng(0))
    _check_floats(state, "start", "a state")
    action = 0 if isinstance(actions, Discrete) else ((actions.low + actions.high) / 2).astype(np.float64)
    result = step(state, action)
    if not isinstance(result, tuple) or len(result) != 3:
        raise SettingError(f"step must return (next state, reward, terminated), and returned {result!r}.")
    _check_floats(result[0], "step", "a state")
    if len(result[0]) != len(state):
        raise SettingError(f"step turned a state of {len(state)} numbers into one of {len(result[0])}.")
    observation = observe(state)
    _check_floats(observation, "observe", "an observation")
    if len(observation) != observations:
        raise SettingError(f"observe returns {len(observation)} numbers, and {observations} are named.")
    if reference is not None and len(reference) != len(observation):
        raise SettingError(f"The reference must have {len(observation)} numbers, as an observation has.")
    return len(state)


def _check_floats(value: Any, function: str, what: str) -> None:
    if not isinstance(value, tuple) or not value or not all(isinstance(x, float) for x in value):
        raise SettingError(f"{function} must return {what} as a tuple of floats, and returned {value!r}.")
