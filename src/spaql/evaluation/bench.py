"""Test benches: where a plant may begin, what is to be held, what may change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.problems import Problem
from spaql.rollouts.episode import Episode, Floats
from spaql.rollouts.play import StateSetter
from spaql.values import real_number


@dataclass(frozen=True)
class Success:
    """When an episode counts as a success."""

    rule: Callable[[Episode], bool]
    means: str
    """The rule in words."""


@dataclass(frozen=True, kw_only=True)
class Signal:
    """What is to be held at a set-point."""

    name: str
    read: Callable[[Floats], Floats]
    """From the observations of an episode, one a row."""
    unit: str = ""
    setpoint: float = 0.0
    band: float
    """How far from the set-point it counts as settled."""
    tail: int
    """Steps at the end of an episode that show the steady state."""

    @property
    def means(self) -> str:
        """What is to be held, in words."""
        return f"{self.name} at {self.setpoint:g} ± {self.band:g} {self.unit}".rstrip()


SURVIVES = Success(lambda episode: not episode.terminated, "the episode is not terminated")
REACHES = Success(lambda episode: episode.terminated, "the goal is reached before the horizon")


def returns_at_least(threshold: float) -> Success:
    """Call an episode a success by its return."""
    threshold = real_number("threshold", threshold)
    return Success(lambda episode: episode.total >= threshold, f"the return is at least {threshold:g}")


def held(signal: Signal, within: float, means: str) -> Success:
    """Call an episode a success if the signal's last samples are near the set-point, on average."""

    def rule(episode: Episode) -> bool:
        last = signal.read(episode.observations)[-signal.tail :]
        return not episode.terminated and float(np.abs(last - signal.setpoint).mean()) <= within

    return Success(rule, means)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """How a plant is tested.

    Parameters
    ----------
    region
        The name of each number of the plant's state, with the range in which it may begin.
    success
        When an episode is one.
    signal
        What is to be held at a set-point, if anything.
    time_step
        Seconds between two actions, if known.
    action_values
        What the actions of a list stand for, such as forces; their indices by default.
    action_unit
        Of these, or of the numbers of an action.
    axes
        The two numbers of the state that a map is drawn over.
    parameters
        Attributes of the environment's `unwrapped` that may be other than they were in training.
    derived
        Attributes that the environment computes from those when it is made, and how.
    set_state
        Brings an environment into a state and gives the observation; by default its `unwrapped.state` is set.

    Examples
    --------
    >>> bench = Bench(region={"position [m]": (-1, 1), "speed [m/s]": (-2, 2)}, success=returns_at_least(-50))
    >>> bench.success.means
    'the return is at least -50'
    """

    region: Mapping[str, tuple[float, float]]
    success: Success = SURVIVES
    signal: Signal | None = None
    time_step: float | None = None
    action_values: tuple[float, ...] = ()
    action_unit: str = ""
    axes: tuple[int, int] = (0, 1)
    parameters: tuple[str, ...] = ()
    derived: Mapping[str, Callable[[Any], float]] = field(default_factory=dict)
    set_state: StateSetter | None = None

    @property
    def low(self) -> Floats:
        """Where the ranges of a state's numbers begin."""
        return np.array([low for low, _ in self.region.values()], np.float64)

    @property
    def high(self) -> Floats:
        """Where they end."""
        return np.array([high for _, high in self.region.values()], np.float64)


def _from_upright(seen: Floats) -> NDArray[np.float64]:
    """Follow Pendulum's angle through its turns; 0 is the upright position that it ends nearest to."""
    angle = np.unwrap(np.arctan2(seen[:, 1], seen[:, 0]))
    return np.asarray(angle - math.tau * round(float(angle[-1]) / math.tau))


_POLE = Signal(name="pole angle", unit="rad", read=lambda seen: seen[:, 2], band=0.05, tail=100)
_ANGLE = Signal(name="angle from upright", unit="rad", read=_from_upright, band=0.1, tail=40)
_SLOPE = MappingProxyType({"position": (-1.2, 0.4), "speed": (-0.07, 0.07)})

BENCHES: Mapping[str, Bench] = MappingProxyType(
    {
        # Half of the track and of the angle in which an episode goes on; a good linear rule holds 98 % of it.
        "CartPole-v1": Bench(
            region={
                "cart position [m]": (-1.2, 1.2),
                "cart speed [m/s]": (-1.0, 1.0),
                "pole angle [rad]": (-math.radians(6), math.radians(6)),
                "pole speed [rad/s]": (-1.0, 1.0),
            },
            signal=_POLE,
            time_step=0.02,
            action_values=(-10.0, 10.0),
            action_unit="N",
            axes=(2, 3),
            parameters=("gravity", "masscart", "masspole", "length", "force_mag"),
            derived={
                "total_mass": lambda plant: plant.masspole + plant.masscart,
                "polemass_length": lambda plant: plant.masspole * plant.length,
            },
        ),
        "Pendulum-v1": Bench(
            region={"angle [rad]": (-math.pi, math.pi), "speed [rad/s]": (-8.0, 8.0)},
            success=held(_ANGLE, math.radians(20), "within 20° of upright on average over the last 2 s"),
            signal=_ANGLE,
            time_step=0.05,
            action_unit="Nm",
            parameters=("g", "m", "l"),
        ),
        "MountainCar-v0": Bench(region=_SLOPE, success=REACHES, parameters=("force", "gravity")),
        "MountainCarContinuous-v0": Bench(region=_SLOPE, success=REACHES, parameters=("power",)),
        "Acrobot-v1": Bench(
            region={
                "angle 1 [rad]": (-math.pi / 2, math.pi / 2),
                "angle 2 [rad]": (-math.pi / 2, math.pi / 2),
                "speed 1 [rad/s]": (-1.0, 1.0),
                "speed 2 [rad/s]": (-1.0, 1.0),
            },
            success=REACHES,
            time_step=0.2,
            action_values=(-1.0, 0.0, 1.0),
            action_unit="Nm",
            parameters=("LINK_LENGTH_1", "LINK_MASS_1", "LINK_MASS_2", "LINK_MOI"),
        ),
    }
)


def find_bench(problem: Problem) -> Bench | None:
    """Give the bench of a problem of classic control, and None for any other.

    Examples
    --------
    >>> from spaql import make_problem
    >>> list(find_bench(make_problem("pendulum5")).region)
    ['angle [rad]', 'speed [rad/s]']
    """
    return BENCHES.get((problem.env or "").removeprefix("spaql/"))
