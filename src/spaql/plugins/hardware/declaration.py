"""What is declared of a plant on the bench: its numbers, its limits, and its safe action."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.plugins.hardware.protocol import Identity, as_sent
from spaql.problems.guard import MARGIN
from spaql.values import real_number

Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Signals:
    """Observations and actions of a plant, with their ranges."""

    observations: Mapping[str, Range]
    actions: tuple[str, ...]
    """Names of the numbers of an action, as columns of the log."""
    listed: tuple[str, ...]
    """Names of the actions, if they are a list."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    safe: tuple[float, ...]
    """The safe action, as it is sent."""

    @classmethod
    def of(cls, observations: Any, actions: Any, safe_action: Any) -> Signals:
        """Return the signals of what was given; raises `SettingError` where it is not sound."""
        seen = _ranges("observations", observations)
        listed = () if isinstance(actions, Mapping) else tuple(map(str, actions))
        done = {"action": (0.0, len(listed) - 1.0)} if listed else _ranges("actions", actions)
        low, high = np.array(list(done.values()), np.float64).T
        try:
            safe = np.asarray(safe_action, np.float64).ravel()
        except (TypeError, ValueError):
            safe = np.array([])
        if len(safe) != len(done) or not np.all((safe >= low) & (safe <= high)):
            limits = ", ".join(f"{name} from {a:g} to {b:g}" for name, (a, b) in done.items())
            raise SettingError(f"safe_action is {safe_action!r}, and must be an action: {limits}.")
        if listed and not safe[0].is_integer():
            raise SettingError(f"safe_action is {safe_action!r}, and must be the number of an action.")
        return cls(seen, tuple(done), listed, low, high, tuple(map(as_sent, safe.tolist())))

    @property
    def observation_space(self) -> Box:
        """The space of observations."""
        low, high = np.array(list(self.observations.values()), np.float64).T
        return Box(low, high, dtype=np.float64)

    @property
    def action_space(self) -> Box | Discrete:
        """The space of actions."""
        return Discrete(len(self.listed)) if self.listed else Box(self.low, self.high, dtype=np.float64)

    def outside(self, values: Sequence[float]) -> tuple[tuple[str, ...], bool]:
        """Return which observations are beyond their ranges, and whether one is too far out to be believed.

        As in a simulator, that is farther than `MARGIN`, a part of the range, which noise may add.
        """
        beyond: list[str] = []
        is_far = False
        for (name, (low, high)), value in zip(self.observations.items(), values, strict=True):
            if not low <= value <= high:
                beyond.append(name)
                is_far = is_far or max(low - value, value - high) > MARGIN * (high - low)
        return tuple(beyond), is_far

    def limited(self, action: Any) -> tuple[tuple[float, ...], bool]:
        """Return an action as it may be sent, and whether it had to be changed.

        A number outside its range is cut to it; an action that is not finite, or not in the list, becomes the
        safe action.
        """
        asked = np.asarray(action, np.float64).ravel()
        if len(asked) != len(self.low):
            raise SettingError(
                f"The action {action!r} has {len(asked)} numbers, and must have {len(self.low)}."
            )
        inside = np.clip(asked, self.low, self.high)
        if not np.isfinite(asked).all() or (self.listed and float(asked[0]) not in range(len(self.listed))):
            return self.safe, True
        return tuple(map(as_sent, inside.tolist())), bool((inside != asked).any())

    def check(self, board: Identity, sample_time: float, where: str) -> None:
        """Raise unless a board is the one that is declared."""
        for what, theirs, ours in (
            ("observations", board.observations, len(self.observations)),
            ("actions", board.actions, len(self.actions)),
            ("a sample time in µs of", board.period, round(sample_time * 1e6)),
            ("the safe action", board.safe_action, self.safe),
        ):
            same = (
                np.allclose(theirs, ours, rtol=1e-5, atol=1e-6)
                if isinstance(theirs, tuple) and len(theirs) == len(self.safe)
                else theirs == ours
            )
            if not same:
                raise SettingError(f"The board at {where} has {what} {theirs}, and {ours} was declared here.")


def _ranges(what: str, given: Any) -> dict[str, Range]:
    """Return names with ranges."""
    if not isinstance(given, Mapping) or not given:
        raise SettingError(f"{what} is {given!r}, and must be names with ranges: {{'angle': (-1, 1)}}.")
    found: dict[str, Range] = {}
    for name, ends in given.items():
        if not isinstance(ends, Sequence) or len(ends) != 2:
            raise SettingError(f"{what}: {name} has {ends!r}, and must have a range, such as (-1, 1).")
        low, high = (
            float(end) if what == "observations" and end in (-math.inf, math.inf) else real_number(name, end)
            for end in ends
        )
        if not low < high:
            raise SettingError(f"{what}: {name} has the range {ends!r}, which is empty.")
        found[str(name)] = (low, high)
    return found
