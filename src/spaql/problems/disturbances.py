"""What disturbs a plant, as it is declared, and checked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from spaql.errors import SettingError
from spaql.values import real_number, refuse_unknown, whole_number

Functions = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]
"""`start`, `step` and `observe`."""
NOISE_AT_MOST = 0.1
"""Noise is cut at this share of the range of a number, which is what is accepted out of bounds."""
EXTRAS = ("parameters", "rng")
"""What `step` may take beside the state and the action, in this order."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """A load on an action, added behind the actuator from a step on.

    Parameters
    ----------
    size
        Every episode draws the load between -size and size, in the unit of the action.
    begins
        Every episode draws the step at which the load begins: at least the first number, and below the
        second.

    Examples
    --------
    >>> Load(size=0.25, begins=(40, 80)).size
    0.25
    """

    size: float
    begins: tuple[int, int]

    def __post_init__(self) -> None:
        real_number("The size of a load", self.size, least=0.0)
        first, end = self.begins
        if not 0 <= whole_number("begins", first) < whole_number("begins", end):
            raise SettingError(
                f"begins is {self.begins}: give the first step, and the one before which it begins."
            )


@dataclass(frozen=True, kw_only=True)
class Perturbation:
    """How a plant may differ from its equations; drawn anew for every episode.

    Parameters
    ----------
    gain
        The gain of every actuator lies between 1 - gain and 1 + gain.
    delay
        The dead time differs by up to so many samples, where there is one.
    noise
        Standard deviation of the noise on observations, by their names, in place of what the plant declares.
    parameters
        Ranges of parameters of the plant, by their names.

    Examples
    --------
    >>> Perturbation(noise={"temperature [°C]": 0.3}).gain
    0.2
    """

    gain: float = 0.2
    delay: int = 1
    noise: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Disturbances:
    """The disturbances of a plant, checked, as numbers in the order of observations and actions."""

    noise: tuple[float, ...]
    most_noise: tuple[float, ...]
    late_observations: bool
    action_noise: tuple[float, ...]
    """Standard deviations; of discrete actions, the probabilities that a random one replaces them."""
    low: tuple[float, ...]
    """Lower ends of the ranges of the action; empty for a list of actions."""
    high: tuple[float, ...]
    rate: tuple[float, ...]
    gain: float
    delay: tuple[int, int]
    loads: tuple[tuple[int, float, int, int], ...]
    """The action, the size, and the range of the step at which each load begins."""
    parameters: tuple[tuple[float, float], ...]
    extras: tuple[str, ...]
    """What `step` takes beside the state and the action."""

    @property
    def draws_parameters(self) -> bool:
        """Whether episodes have different parameters."""
        return any(low < high for low, high in self.parameters)

    @property
    def is_needed(self) -> bool:
        """Whether the state of the plant is to be extended."""
        drawn = self.draws_parameters or "rng" in self.extras
        changed = *self.noise, *self.action_noise, self.gain, self.delay[1], self.late_observations
        return bool(any(changed) or self.loads or self.limits_rate or drawn)

    @property
    def limits_rate(self) -> bool:
        """Whether an actuator has a rate limit."""
        return not all(map(math.isinf, self.rate))


def checked(
    observations: Mapping[str, tuple[float, float]],
    actions: Sequence[str] | Mapping[str, tuple[float, float]],
    *,
    noise: Mapping[str, float],
    late_observations: bool,
    action_noise: Mapping[str, float],
    delay: int | tuple[int, int],
    gain: float,
    rate_limit: Mapping[str, float] = MappingProxyType({}),
    disturbance: Mapping[str, Load] = MappingProxyType({}),
    parameters: Mapping[str, float | tuple[float, float]] = MappingProxyType({}),
    extras: tuple[str, ...] = (),
) -> Disturbances:
    """Return the declared disturbances as numbers; raises for unknown names and impossible values."""
    ranges = np.array(list(observations.values()), np.float64).reshape(-1, 2)
    refuse_unknown(noise, observations, "noise", "observation")
    std = [real_number(f"The noise of {n}", noise.get(n, 0.0), least=0.0) for n in observations]
    delays = (delay, delay) if isinstance(delay, int) else tuple(delay)
    least, most = (whole_number("delay", samples, least=0) for samples in delays)
    if least > most:
        raise SettingError(f"delay is {delay}, and must be samples, or the fewest and the most of them.")
    ranged = actions if isinstance(actions, Mapping) else {}
    if not ranged and (rate_limit or gain or disturbance):
        raise SettingError(
            "rate_limit, gain and disturbance are for actions with a range, and these are a list."
        )
    ends = np.array(list(ranged.values()), np.float64).reshape(-1, 2)
    refuse_unknown(action_noise, actions, "action_noise", "action")
    refuse_unknown(rate_limit, actions, "rate_limit", "action")
    refuse_unknown(disturbance, actions, "disturbance", "action")
    places = {name: j for j, name in enumerate(ranged)}
    return Disturbances(
        tuple(std),
        tuple(NOISE_AT_MOST * float(high - low) for low, high in ranges),
        late_observations,
        tuple(
            real_number(
                f"The noise of {n}", action_noise.get(n, 0.0), least=0.0, most=math.inf if ranged else 1.0
            )
            for n in actions
        ),
        tuple(ends[:, 0].tolist()),
        tuple(ends[:, 1].tolist()),
        tuple(
            real_number(f"The rate limit of {n}", rate_limit[n], above=0.0) if n in rate_limit else math.inf
            for n in actions
        ),
        real_number("gain", gain, least=0.0, most=1.0),
        (least, most),
        tuple((places[n], float(load.size), *load.begins) for n, load in disturbance.items()),
        tuple(_range(n, value) for n, value in parameters.items()),
        extras,
    )


def _range(name: str, value: float | tuple[float, float]) -> tuple[float, float]:
    ends = tuple(value) if isinstance(value, tuple | list) else (value, value)
    low, high = (real_number(f"The parameter {name}", end) for end in ends)
    if low > high:
        raise SettingError(
            f"The parameter {name} is {value!r}, and must be a number, or a range, the lower first."
        )
    return low, high


def extras_of(step: Callable[..., Any]) -> tuple[str, ...]:
    """Return what `step` takes beside the state and the action: parameters, rng, or both in this order."""
    others = list(inspect.signature(getattr(step, "py_func", step)).parameters.values())[2:]
    optional = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    names = tuple(
        parameter.name
        for parameter in others
        if parameter.default is parameter.empty and parameter.kind not in optional
    )
    if names not in ((), ("parameters",), ("rng",), EXTRAS):
        raise SettingError(
            f"step takes {', '.join(names)} after the state and the action: it may take parameters, rng, or "
            "both, in this order and by these names."
        )
    return names
