"""A user's own code: what is wrong with it, where, and whether the functions of a plant are."""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.errors import SettingError
from spaql.kernels.jit import NumbaError

_STDLIB, _SPAQL, _GYMNASIUM = (
    Path(folder).resolve()
    for folder in (sysconfig.get_path("stdlib"), Path(__file__).parents[1], gymnasium.__path__[0])
)
_NUMBA_ADVICE = (
    "Use plain numbers and `math`, decorate the functions that are called with numba.njit, or make it a "
    "Gymnasium environment."
)


def describe_error(error: Exception) -> str:
    """Return the location of an error in a user's code, and its message.

    Examples
    --------
    >>> describe_error(ValueError("the valve is stuck"))
    'ValueError: the valve is stuck'
    """
    place = place_of(error)
    return f"{place}: {message_of(error)}" if place else message_of(error)


def message_of(error: Exception) -> str:
    """Return the type of an error and its message; of Numba's many lines, the one with the cause."""
    if isinstance(error, NumbaError):
        lines = (line.strip() for line in str(error).splitlines())
        why = next((line for line in lines if line and not line.startswith("Failed in ")), "")
        return f"Numba cannot compile it. {why.rstrip('.')}. {_NUMBA_ADVICE}"
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def place_of(error: BaseException) -> str:
    """Return the location of an error in a user's code; empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}, line {error.lineno}"
    if isinstance(error, NumbaError) and (place := re.search(r'File "(.+)", line (\d+)', str(error))):
        return f"{place[1]}, line {place[2]}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _may_be_own(f.filename)]
    if not frames:
        return place_of(error.__cause__) if error.__cause__ else ""
    written = [f for f in frames if not _is_installed(f.filename)]
    frame = (written or frames)[-1]
    function = "" if frame.name.startswith("<") else f", in {frame.name}"
    return f"{_shown(frame.filename)}, line {frame.lineno}{function}"


def place_of_code(code: CodeType) -> str:
    """Return the location of the first line of a function."""
    return f"{_shown(code.co_filename)}, line {code.co_firstlineno}"


def _is_installed(file: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def _may_be_own(file: str) -> bool:
    path = Path(file).resolve()
    known = path.is_relative_to(_SPAQL) or path.is_relative_to(_GYMNASIUM)
    standard = path.is_relative_to(_STDLIB) and not _is_installed(file)
    return not (file.startswith("<") or known or standard)


def _shown(file: str) -> str:
    """Return the path of a file, relative to the current folder if it is inside."""
    path = Path(file).resolve()
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


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
