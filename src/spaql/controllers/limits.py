"""What limits the action of a controller, and what it remembers for that: its settings, checked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.controllers.features import SinceChange
from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.spaces import space_bounds
from spaql.values import real_number

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller

POSITION = "position"
VELOCITY = "velocity"
"""The forms of a controller: laws are the action, or its change in a sample."""


def checked_limits(controller: Controller) -> dict[str, Any]:
    """Return the fields of a controller that have to do with memory, completed; raises if they do not fit."""
    rate_limit = _numbers(controller, "rate_limit", (math.inf,) * controller.action_size)
    dead_band = _numbers(controller, "dead_band", (0.0,) * controller.action_size)
    hysteresis = (0.0,) * controller.width
    if not isinstance(controller.hysteresis, tuple) or any(controller.hysteresis):
        hysteresis = _numbers(controller, "hysteresis", hysteresis)
    # Else zeros may be of another number of sums, in `dataclasses.replace`.
    start = _numbers(controller, "start", controller.default_action, -math.inf)
    if controller.form not in (POSITION, VELOCITY):
        raise SettingError(f"form is {controller.form!r}, and must be {POSITION!r} or {VELOCITY!r}.")
    _check_start(controller, start)
    if not np.isfinite([*dead_band, *start, *hysteresis]).all():
        raise SettingError("dead_band, start and hysteresis are finite numbers.")
    limited = min(rate_limit, default=math.inf) < math.inf or any(dead_band)
    velocity = controller.form == VELOCITY
    if controller.discrete and (limited or velocity):
        raise SettingError("Discrete actions have no rate limit, dead band or velocity form.")
    if not controller.discrete and any(isinstance(feature, SinceChange) for feature in controller.features):
        raise SettingError("SinceChange is of a discrete action: one with a range changes all the time.")
    return {
        "rate_limit": rate_limit,
        "dead_band": dead_band,
        "hysteresis": hysteresis,
        "start": start,
        "sample_time": _sample_time(controller, remembered=limited or any(hysteresis) or velocity),
    }


def _check_start(controller: Controller, start: tuple[float, ...]) -> None:
    """Refuse what is no action."""
    low, high = space_bounds(controller.action_space)
    listed = not controller.discrete or start[0].is_integer()
    if not listed or not all(a <= x <= b for a, x, b in zip(low, start, high, strict=True)):
        raise SettingError(f"start is {start}, and must be an action of {controller.action_space}.")


def checked_action(controller: Controller, action: Any, what: str) -> tuple[float, ...]:
    """Return an action as its components, of discrete ones its number; raises unless the space has it."""
    space = controller.action_space
    if isinstance(space, Discrete):
        return (float(controller.action_number(action)),)
    low, high = space_bounds(space)
    values = np.empty(0) if isinstance(action, str) else np.asarray(action, np.float64).ravel()
    played = values.astype(space.dtype)  # the type of the bounds: 0.7 is above the nearest float32
    if len(values) != len(low) or not np.all((low <= played) & (played <= high) & np.isfinite(values)):
        ends = zip(controller.actions, low.tolist(), high.tolist(), strict=True)
        raise SettingError(
            f"{what} is {action!r}, and must be one finite number for each of: "
            f"{', '.join(f'{name} from {a:g} to {b:g}' for name, a, b in ends)}."
        )
    return tuple(values.tolist())


def _sample_time(controller: Controller, *, remembered: bool) -> float | None:
    """Return the seconds between samples; raises where there is a memory without them."""
    if controller.sample_time is not None:
        if not isinstance(controller.observation_space, Box):
            raise SettingError("A controller with memory has a Box of observations.")
        return real_number("sample_time", controller.sample_time, above=0)
    if remembered or any(feature.memory() for feature in controller.features):
        raise SettingError(
            "A controller with memory has a sample_time: give its seconds; in text, 'A sample every 0.5 s.'."
        )
    return None


def _numbers(
    controller: Controller, name: str, default: tuple[float, ...], least: float = 0.0
) -> tuple[float, ...]:
    """Return the numbers of a field, or the default for an empty one."""
    setting = getattr(controller, name)
    values = (setting,) if np.ndim(setting) == 0 else tuple(setting)
    if not values:
        return default
    numbers = tuple(float(x) for x in values)
    if len(numbers) != len(default) or not all(x >= least for x in numbers):
        ends = "" if least == -math.inf else f" of at least {least:g}"
        raise SettingError(f"{name} is {setting!r}, and must be {counted(len(default), 'number')}{ends}.")
    return numbers
