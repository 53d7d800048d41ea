"""The controller with memory to export: its names in code, its number type and its safe action."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.export.rewrite import TOLERANCE, limits
from spaql.export.st_common import LIBRARY
from spaql.export.target_controller import Limits, checked_box_action
from spaql.kernels.controller import LAST, Floats
from spaql.languages import PYTHON, STRUCTURED_TEXT, C, identifiers
from spaql.policy import FeatureController
from spaql.policy.feature_controller import LARGEST
from spaql.policy.tracking import Tracking

DTYPES: dict[str, np.dtype[Any]] = {"double": np.dtype(np.float64), "float": np.dtype(np.float32)}
_RESERVED = f"""
    {C} {STRUCTURED_TEXT} {PYTHON} {" ".join(f"own_{word}" for word in LIBRARY.split())}
    action cut observation reset rounded self state u started leaf keep waits angle_a angle_b angle_t angle_z
    angle_p angle_q angle_steep angle_turned n_observations n_actions act controller manual manual_action
    track applied_action by_hand
"""


@dataclass(frozen=True)
class Names:
    """Identifiers, which are the same in all languages."""

    observations: tuple[str, ...]
    features: tuple[str, ...]
    actions: tuple[str, ...]
    last: tuple[str, ...]
    target: tuple[str, ...]
    memory: tuple[str, ...]
    wishes: tuple[str, ...]
    cuts: tuple[str, ...]
    gains: dict[tuple[int, int], str]
    """By feature and number of the action."""
    manual: tuple[str, ...]
    """The actions given by hand."""
    applied: tuple[str, ...]
    """The actions that were applied since the last sample."""


@dataclass(frozen=True, eq=False)
class MemoryMachine:
    """A controller with memory as it is exported: the input of every target."""

    controller: FeatureController
    number: str
    """The type of observations and actions, "double" or "float"; all else is computed in double precision."""
    safe: tuple[float, ...] | None = None
    """The action without a valid reading; None for the last one."""
    limits: Limits | None = None
    """Limits beyond which a reading is not valid; None without a safe action."""
    provenance: tuple[str, ...] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of observations and actions."""
        return DTYPES[self.number]

    @property
    def ends(self) -> list[tuple[float, float]]:
        """The lowest and the highest valid reading of each number of an observation."""
        n = len(self.controller.observations)
        low, high = ((-math.inf,) * n, (math.inf,) * n)
        if self.limits is not None:
            low, high = self.limits.low, self.limits.high
        return [(max(a, -LARGEST), min(b, LARGEST)) for a, b in zip(low, high, strict=True)]

    @cached_property
    def names(self) -> Names:
        """The identifiers of everything."""
        controller = self.controller
        features = [feature.name for feature in controller.features]
        parts = [controller.observations, features, controller.actions]
        actions = [name.split(" [")[0] for name in controller.actions]
        parts += [[f"{word} {name}" for name in actions] for word in ("last", "target", "wish", "cut")]
        parts += [list(self._slots()), [f"gain {a} {b}" for a in features for b in actions]]
        parts += [[f"{word} {name}" for name in controller.actions] for word in ("manual", "applied")]
        words = iter(identifiers([name for part in parts for name in part], _RESERVED))
        seen, x, done, last, target, wish, cut, memory, gain, manual, applied = (
            tuple(next(words) for _ in part) for part in parts
        )
        pairs = [(i, k) for i in range(len(features)) for k in range(len(actions))]
        gains = dict(zip(pairs, gain, strict=True))
        return Names(seen, x, done, last, target, memory, wish, cut, gains, manual, applied)

    def _slots(self) -> Iterator[str]:
        """Yield a name for each number that features remember."""
        for feature in self.controller.features:
            size = feature.memory()
            yield from (f"m {feature.name} {j + 1}" if size > 1 else f"m {feature.name}" for j in range(size))

    @property
    def notes(self) -> list[str]:
        """What each number of the state is, after the first two."""
        controller = self.controller
        notes = [f"the last action: {name}" for name in controller.actions]
        notes += [f"the same before the dead band: {name}" for name in controller.actions]
        return notes + [f"memory of {f.name}" for f in controller.features for _ in range(f.memory())]

    @cached_property
    def tracking(self) -> Tracking:
        """Manual mode and tracking of the controller."""
        return Tracking(self.controller)

    def valid(self, inputs: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which readings are valid, one a row."""
        low, high = np.array(self.ends).T
        batch = inputs.astype(np.float64)
        return np.asarray(((batch >= low) & (batch <= high)).all(axis=-1))

    def operate(
        self, inputs: NDArray[np.floating], commands: NDArray[np.floating], memory: Floats
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Take a sample in each row, and update the memory: what exported code is compared with.

        Commands are those of `spaql.export.memory.check.Episodes`, or have no columns in automatic mode.
        Returns the actions, and which readings are valid.
        """
        if not commands.shape[1]:
            actions, _, valid = self.sample(inputs, memory)
            return actions, valid
        by_hand, applied = np.hsplit(commands.astype(np.float64), 2)
        manual, track, valid = by_hand[:, 0] > 0, applied[:, 0] > 0, self.valid(inputs)
        actions = np.empty((len(inputs), len(self.controller.actions)))

        def in_rows(rows: NDArray[np.bool_], take: Callable[[Floats], Any]) -> Any:
            part = memory[rows]
            result = take(part)
            memory[rows] = part
            return result

        in_rows(track, partial(self.tracking.track, applied[track, 1:]))
        actions[~manual] = in_rows(~manual, lambda part: self.sample(inputs[~manual], part)[0])
        seen, blind = manual & valid, manual & ~valid
        batch = inputs[seen].astype(np.float64)
        actions[seen] = in_rows(seen, partial(self.tracking.manual, batch, by_hand[seen, 1:]))
        actions[blind] = in_rows(blind, partial(self.tracking.hold, by_hand[blind, 1:]))
        return actions.astype(self.dtype).astype(np.float64), valid

    def sample(
        self, inputs: NDArray[np.floating], memory: Floats
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Take a sample in automatic mode in each row, and update the memory.

        Returns the actions, what the laws asked for (NaN without a valid reading), and which readings are
        valid.
        """
        batch, valid = inputs.astype(np.float64), self.valid(inputs)
        n, controller = len(batch), self.controller
        width = len(controller.actions)
        actions = memory[:, LAST : LAST + width].copy()
        wishes = np.full((n, width), np.nan)
        if self.safe is not None:
            actions[~valid] = self.safe
            memory[~valid, LAST : LAST + 2 * width] = np.tile(self.safe, 2)
        rows = memory[valid]
        sample = controller.computed(batch[valid], rows)
        memory[valid], wishes[valid], actions[valid] = rows, sample.wish, sample.action
        return actions.astype(self.dtype).astype(np.float64), wishes, valid


def machine_of(
    controller: FeatureController,
    number: str = "double",
    safe_action: float | str | Sequence[float] | None = None,
    provenance: Sequence[str] = (),
    tolerance: float = TOLERANCE,
) -> MemoryMachine:
    """Return the controller to export (see `spaql.export.target_controller.controller_of`)."""
    if number not in DTYPES:
        raise SettingError(
            f"number is {number!r}, and must be 'double' or 'float' for a controller with memory."
        )
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise SettingError(
            f"tolerance is {tolerance}, and must be a share of each range, 0 or more, such as 0.1."
        )
    if safe_action is None:
        return MemoryMachine(controller, number, provenance=tuple(provenance))
    safe = checked_box_action(controller.action_space, safe_action)
    low, high = limits(controller.observation_space, tolerance)
    guard = Limits(tuple(low.tolist()), tuple(high.tolist()), tolerance)
    return MemoryMachine(controller, number, safe, guard, tuple(provenance))
