"""Statements about a closed loop, and the one that is asked of a plant by default."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.formatting import range_text
from spaql.kernels.verify.points import play
from spaql.verify.closed_loop import ClosedLoop, tree_arrays

Box = Mapping[str, tuple[float, float]]
"""Ranges of state variables, by name; those that are not named are free."""

UP_TO_TURNS = " (up to whole turns)"
"""Said of the ranges of angles that are known up to whole turns only."""
_ENOUGH = 5
"""How many horizons a statement allows for by default."""
_DRAWN = 200
"""Episodes by which the states of a plant without ranges are found."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a closed loop is to do, from every state of a box.

    Parameters
    ----------
    starts
        Initial states that it is about. Every state variable that matters has a range.
    target
        States to reach within some steps.
    stays
        Whether it has to stay in the target for ever.
    termination
        Whether termination is the goal, a failure, or ignored, as if the plant went on.
    allowed
        States that must never be left.
    within
        Steps by which the target or goal is reached; without either, steps for which the rest holds, instead
        of for ever.
    forward
        Follow the starts forwards, instead of a search over all cells: for a small box of starts.
        If termination is the goal, or there is a number of steps, each of their cells is followed to the end;
        otherwise all states that they can come to are.

    Examples
    --------
    >>> Statement(starts={"level [m]": (0, 1)}, target={"level [m]": (0.4, 0.6)}, stays=True, within=100).text
    'it comes to level [m] 0.4 to 0.6 within 100 steps and stays there for ever'
    """

    starts: Box
    target: Box | None = None
    stays: bool = False
    termination: Literal["goal", "failure", "ignored"] = "failure"
    allowed: Box = field(default_factory=dict)
    within: int | None = None
    forward: bool = False

    def __post_init__(self) -> None:
        reaches = self.reaches
        if reaches and self.within is None:
            raise SettingError("Give the steps by which the target or the goal is reached, as within.")
        if self.within is not None and self.within < 1:
            raise SettingError(f"within is {self.within}, and must be a number of steps.")
        if self.stays and self.target is None:
            raise SettingError(
                "To stay in a target, give one; for states that are never left give `allowed`."
            )
        if self.target is not None and self.termination == "goal":
            raise SettingError("Either a target or termination is the goal of a statement, not both.")
        if self.forward and self.target is not None:
            raise SettingError(
                "From a box of starts forwards, it is verified what is never left, or that it terminates: "
                "let the plant terminate in the target, and give termination='goal'."
            )
        if not reaches and not self.allowed and self.termination == "ignored":
            raise SettingError("The statement says nothing: give a target, or states that are never left.")

    @property
    def reaches(self) -> bool:
        """Whether something is to be reached."""
        return self.target is not None or self.termination == "goal"

    @property
    def lasts(self) -> bool:
        """Whether it has to hold for some steps only."""
        return self.within is not None and not self.reaches

    @property
    def text(self) -> str:
        """The statement in words."""
        return self.sentence()

    def sentence(self, turning: Collection[str] = ()) -> str:
        """Return the statement in words; `turning` are angles, of which it holds up to whole turns."""
        parts = []
        if self.termination == "goal":
            parts.append(f"it terminates (the goal) within {self.within:,} steps")
        elif self.target is not None:
            stays = " and stays there for ever" if self.stays else ""
            parts.append(f"it comes to {box_text(self.target, turning)} within {self.within:,} steps{stays}")
        elif self.termination == "failure":
            parts.append("it does not terminate" if self.lasts else "it never terminates")
        if self.allowed:
            before = self.reaches and not self.stays  # nothing is said of what follows
            never = "does not leave" if self.lasts or before else "never leaves"
            parts.append(f"it {never} {box_text(self.allowed, turning)}" + " before" * before)
        return " and ".join(parts) + (f" in {self.within:,} steps" if self.lasts else "")


def box_text(box: Box, turning: Collection[str] = (), *, wider: bool = True) -> str:
    """Return a box in words, rounded outwards if `wider`, as what is promised, else inwards."""
    return ", ".join(
        f"{name} {range_text(*ends, wider=wider)}{UP_TO_TURNS if name in turning else ''}"
        for name, ends in box.items()
    )


_POLE_ANGLE = 12 * 2 * math.pi / 360
_SPEED = 0.07001
_CAR = MappingProxyType({"position": (-1.20001, 0.60001), "speed": (-_SPEED, _SPEED)})
_KNOWN: Mapping[str, Statement] = MappingProxyType(
    {
        "spaql/Pendulum-v1": Statement(
            starts={"angle [rad]": (-math.pi, math.pi), "speed [rad/s]": (-8.0, 8.0)},
            target={"angle [rad]": (-math.radians(20), math.radians(20)), "speed [rad/s]": (-2.0, 2.0)},
            stays=True,
            within=200,
        ),
        "spaql/MountainCar-v0": Statement(starts=_CAR, termination="goal", within=1_000),
        "spaql/MountainCarContinuous-v0": Statement(starts=_CAR, termination="goal", within=5_000),
        "spaql/CartPole-v1": Statement(
            starts=dict.fromkeys(
                ("cart position [m]", "cart speed [m/s]", "pole angle [rad]", "pole speed [rad/s]"),
                (-0.05, 0.05),
            ),
            allowed={"pole angle [rad]": (-_POLE_ANGLE, _POLE_ANGLE)},
            termination="ignored",
            forward=True,
        ),
    }
)
"""CartPole's leaves out the ends of the track: a controller that does not look at the position drifts."""


def default_statement(loop: ClosedLoop) -> Statement:
    """Return the statement that is asked of a plant if no other is given.

    Of a plant of one's own that has terminations, it is that none happens; of any other that it comes near
    its reference, within a tenth of the range of each observation, and stays there for ever. Without a
    reference, the target is where episodes of the controller end, twice as wide.
    """
    plant = loop.dynamics
    known = _KNOWN.get(f"spaql/{plant.id.removeprefix('spaql/')}")
    if known is not None and len(loop.names) == plant.state_dims:
        return known
    starts = _ranges(loop)
    within = _ENOUGH * plant.horizon
    if known is not None:  # with the components of an action that waits
        return replace(known, starts={**starts, **known.starts})
    if loop.step.arrays.flags.any():
        return Statement(starts=starts, allowed=starts)
    return Statement(starts=starts, target=_target(loop), stays=True, within=within)


def _target(loop: ClosedLoop) -> dict[str, tuple[float, float]]:
    """Return the states around the reference, or where episodes end."""
    plant = loop.dynamics
    target = {}
    if plant.reference is not None:
        for (name, (low, high)), at in zip(plant.observations.items(), plant.reference, strict=True):
            if name in loop.names and math.isfinite(high - low):
                target[name] = (at - 0.1 * (high - low), at + 0.1 * (high - low))
    if target:
        return target
    last = _played(loop)[:, -max(2, plant.horizon // 4) :]
    low = last.min(axis=(0, 1))
    high = last.max(axis=(0, 1))
    pad = 0.5 * (high - low) + 1e-3 * (1.0 + np.abs(low))
    return {
        name: (float(low[j] - pad[j]), float(high[j] + pad[j]))
        for j, name in enumerate(loop.names[: plant.state_dims])
    }


def _ranges(loop: ClosedLoop) -> dict[str, tuple[float, float]]:
    """Return a range of each state variable: of its observation, of its action, or as played."""
    plant = loop.dynamics
    known = dict(plant.observations) | loop.waiting_ranges()
    period = loop.arrays.period
    ranges: dict[str, tuple[float, float]] = {}
    played = None
    for j, name in enumerate(loop.names):
        low, high = (float(end) for end in known.get(name, (-math.inf, math.inf)))
        if period[j] > 0.0:
            low = -period[j] / 2
            high = period[j] / 2
        if not math.isfinite(high - low):
            played = _played(loop) if played is None else played
            low = float(np.min(played[:, :, j]))
            high = float(np.max(played[:, :, j]))
            pad = 0.25 * (high - low) + 1e-3 * (1.0 + abs(low))
            low = low - pad
            high = high + pad
        ranges[name] = (low, high)
    return ranges


def _played(loop: ClosedLoop) -> NDArray[np.float64]:
    """Return the states of some episodes, episodes × steps × numbers; after the end the last is repeated."""
    plant = loop.dynamics
    rng = np.random.default_rng(0)
    starts = np.array([plant.start(rng) for _ in range(_DRAWN)])
    if len(loop.names) > plant.state_dims:  # with an action that waits
        low, high = np.array(list(loop.waiting_ranges().values())).T
        starts = np.hstack([starts, rng.uniform(low, high, (_DRAWN, len(low)))])
    path, ended = play(loop.step.arrays, loop.observe.arrays, tree_arrays(loop.tree), starts, plant.horizon)
    for i, end in enumerate(ended):
        if end >= 0:
            path[i, end:] = path[i, end - 1]
    return path
