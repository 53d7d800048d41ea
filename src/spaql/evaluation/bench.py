"""Test benches: the initial states, the criterion of success and the variable parameters of a plant."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from spaql.problems import Problem
from spaql.simulate.episode import Episode, Floats
from spaql.simulate.play import StateSetter
from spaql.values import real_number


@dataclass(frozen=True)
class Success:
    """The criterion by which an episode counts as a success."""

    rule: Callable[[Episode], bool]
    means: str
    """Description of the criterion."""


SURVIVES = Success(lambda episode: not episode.terminated, "the episode is not terminated")
REACHES = Success(lambda episode: episode.terminated, "the goal is reached before the horizon")


def returns_at_least(threshold: float) -> Success:
    """Return the criterion that the return is at least a threshold."""
    threshold = real_number("threshold", threshold)
    return Success(lambda episode: episode.total >= threshold, f"the return is at least {threshold:g}")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """How a plant is tested.

    Parameters
    ----------
    region
        The name of each state variable, with the range of its initial values.
    success
        The criterion of success.
    time_step
        Seconds between two actions, if known.
    axes
        The two state variables on the axes of a map.
    parameters
        Attributes of the environment's `unwrapped` that may differ from training.
    derived
        Attributes that the constructor of the environment computes from the parameters, with the functions.
    set_state
        Sets the state of an environment and returns the observation; by default sets `unwrapped.state`.

    Examples
    --------
    >>> bench = Bench(region={"position [m]": (-1, 1), "speed [m/s]": (-2, 2)}, success=returns_at_least(-50))
    >>> bench.success.means
    'the return is at least -50'
    """

    region: Mapping[str, tuple[float, float]]
    success: Success = SURVIVES
    time_step: float | None = None
    axes: tuple[int, int] = (0, 1)
    parameters: tuple[str, ...] = ()
    derived: Mapping[str, Callable[[Any], float]] = field(default_factory=dict)
    set_state: StateSetter | None = None

    @property
    def low(self) -> Floats:
        """Lower bounds of the state variables."""
        return np.array([low for low, _ in self.region.values()], np.float64)

    @property
    def high(self) -> Floats:
        """Upper bounds of the state variables."""
        return np.array([high for _, high in self.region.values()], np.float64)


def _is_upright(episode: Episode) -> bool:
    """Return whether Pendulum is near the upright position at the end, on average over two seconds."""
    angle = np.unwrap(np.arctan2(episode.observations[:, 1], episode.observations[:, 0]))
    turns = math.tau * round(float(angle[-1]) / math.tau)
    return not episode.terminated and float(np.abs(angle[-40:] - turns).mean()) <= math.radians(20)


_SLOPE = MappingProxyType({"position": (-1.2, 0.4), "speed": (-0.07, 0.07)})

BENCHES: Mapping[str, Bench] = MappingProxyType(
    {
        # Half of the track and of the angle limit; a good linear controller stabilises 98 % of the region.
        "CartPole-v1": Bench(
            region={
                "cart position [m]": (-1.2, 1.2),
                "cart speed [m/s]": (-1.0, 1.0),
                "pole angle [rad]": (-math.radians(6), math.radians(6)),
                "pole speed [rad/s]": (-1.0, 1.0),
            },
            time_step=0.02,
            axes=(2, 3),
            parameters=("gravity", "masscart", "masspole", "length", "force_mag"),
            derived={
                "total_mass": lambda plant: plant.masspole + plant.masscart,
                "polemass_length": lambda plant: plant.masspole * plant.length,
            },
        ),
        "Pendulum-v1": Bench(
            region={"angle [rad]": (-math.pi, math.pi), "speed [rad/s]": (-8.0, 8.0)},
            success=Success(_is_upright, "within 20° of upright on average over the last 2 s"),
            time_step=0.05,
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
            parameters=("LINK_LENGTH_1", "LINK_MASS_1", "LINK_MASS_2", "LINK_MOI"),
        ),
    }
)


def find_bench(problem: Problem) -> Bench | None:
    """Return the bench of a classic control problem, or None for any other.

    Examples
    --------
    >>> from spaql import make_problem
    >>> list(find_bench(make_problem("pendulum5")).region)
    ['angle [rad]', 'speed [rad/s]']
    """
    return BENCHES.get((problem.env or "").removeprefix("spaql/"))
