"""Measures of a closed loop, from arrays.

A signal is sampled before each action and after the last; times are in units of the time step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Measures:
    """Measures of a trajectory; for each, less is better."""

    settling_time: float
    """Infinite if the signal is outside the band at the end."""
    overshoot: float
    steady_state_error: float
    limit_cycle: float
    """Amplitude of the signal at the end."""
    effort: float
    switches: float
    """Changes of the action per unit of time."""
    chattering: float


def measure(
    signal: ArrayLike, actions: ArrayLike, *, setpoint: float, band: float, tail: int, time_step: float = 1.0
) -> Measures:
    """Return the measures of a trajectory.

    Parameters
    ----------
    signal
        The controlled signal at each time.
    actions
        Actions, one per row.
    setpoint
        The set-point of the signal.
    band
        Distance from the set-point within which the signal counts as settled.
    tail
        Samples at the end that show the steady state.
    time_step
        Time between two actions.

    Examples
    --------
    >>> signal = 0.5 ** np.arange(10)
    >>> result = measure(signal, np.ones(9), setpoint=0.0, band=0.1, tail=3, time_step=0.1)
    >>> result.settling_time, result.overshoot, result.switches
    (0.4, 0.0, 0.0)
    """
    return Measures(
        settling_time(signal, setpoint, band, time_step),
        overshoot(signal, setpoint),
        steady_state_error(signal, setpoint, tail),
        limit_cycle(signal, tail),
        effort(actions, time_step),
        switches(actions, time_step),
        chattering(actions),
    )


def settling_time(signal: ArrayLike, setpoint: float, band: float, time_step: float = 1.0) -> float:
    """Return the time after which the signal stays within the band; infinite if it is outside at the end.

    Examples
    --------
    >>> settling_time([1.0, 0.0, 0.5, 0.05, 0.0], 0.0, 0.1)
    3.0
    """
    outside = np.flatnonzero(np.abs(np.asarray(signal, np.float64) - setpoint) > band)
    if len(outside) == 0:
        return 0.0
    first_inside = int(outside[-1]) + 1
    return math.inf if first_inside == len(np.asarray(signal)) else first_inside * time_step


def overshoot(signal: ArrayLike, setpoint: float) -> float:
    """Return how far the signal goes beyond the set-point, as seen from its initial value, in its own units.

    For a signal that begins at the set-point any deviation counts.

    Examples
    --------
    >>> overshoot([1.0, 0.2, -0.25, 0.1], 0.0)
    0.25
    """
    error = np.asarray(signal, np.float64) - setpoint
    beyond = np.abs(error) if error[0] == 0 else -np.sign(error[0]) * error
    return max(0.0, float(beyond.max()))


def steady_state_error(signal: ArrayLike, setpoint: float, tail: int) -> float:
    """Return the distance of the last samples' mean from the set-point.

    Examples
    --------
    >>> steady_state_error([5.0, 1.0, 2.0], 1.0, 2)
    0.5
    """
    return abs(float(np.asarray(signal, np.float64)[-tail:].mean()) - setpoint)


def limit_cycle(signal: ArrayLike, tail: int) -> float:
    """Return the amplitude of the last samples: half the difference between the highest and the lowest.

    Examples
    --------
    >>> limit_cycle([9.0, 1.0, -1.0, 1.0], 3)
    1.0
    """
    return float(np.ptp(np.asarray(signal, np.float64)[-tail:])) / 2


def effort(actions: ArrayLike, time_step: float = 1.0) -> float:
    """Return the integral of the squared action over time, summed over the components of an action.

    Examples
    --------
    >>> effort([2.0, -2.0, 1.0], 0.5)
    4.5
    """
    return float(np.square(_rows(actions)).sum()) * time_step


def switches(actions: ArrayLike, time_step: float = 1.0) -> float:
    """Return how often the action changes per unit of time.

    Examples
    --------
    >>> switches([1, 1, 0, 1, 1], 0.1)
    4.0
    """
    rows = _rows(actions)
    return int(np.any(rows[1:] != rows[:-1], axis=1).sum()) / (len(rows) * time_step)


def chattering(actions: ArrayLike) -> float:
    """Return the mean change of the action from step to step, summed over the components of an action.

    Examples
    --------
    >>> chattering([1.0, -1.0, -1.0])
    1.0
    """
    rows = _rows(actions)
    return float(np.abs(np.diff(rows, axis=0)).sum(axis=1).mean()) if len(rows) > 1 else 0.0


def _rows(actions: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(actions, np.float64)
    return array.reshape(len(array), -1)
