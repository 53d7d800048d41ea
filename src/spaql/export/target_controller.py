"""The controller to export: a rule tree in the number type of the machine, with its safe action."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.export.conditions import printed_sizes
from spaql.export.numbers import Number, number_of
from spaql.export.rewrite import (
    TOLERANCE,
    constants,
    decided,
    guarded,
    limits,
    only_action,
    without_unused_sums,
)
from spaql.formatting import counted
from spaql.policy import Choices, Leaves, RuleTree, SwitchingLaws


@dataclass(frozen=True)
class Limits:
    """Limits of the observations, ends included, beyond which the safe action is taken."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    tolerance: float
    """By how much they exceed the observation space on either side, as a share of each range."""

    @property
    def questions(self) -> int:
        """How many limits are finite."""
        return int(np.isfinite([*self.low, *self.high]).sum())


@dataclass(frozen=True, eq=False)
class MachineController:
    """A controller as it is exported: the input of every target."""

    rules: RuleTree
    """The policy."""
    exact: RuleTree
    """The policy preceded by the tests of the limits, in double precision."""
    number: Number
    safe: tuple[float, ...]
    """The action for NaN."""
    limits: Limits | None = None
    """Limits beyond which the safe action is taken; None without."""
    provenance: tuple[str, ...] = ()
    """Lines about the origin of the tree."""

    @cached_property
    def tree(self) -> RuleTree:
        """The rules with thresholds that are numbers of the machine; those of sums are doubles."""
        return self.number.on_grid(self.exact)

    @property
    def n_actions(self) -> int:
        """The numbers of an action."""
        return len(self.safe)

    def wanted(self, inputs: NDArray[Any]) -> NDArray[np.float64]:
        """Return the actions for rows of inputs, in the numbers of the machine."""
        return self.answer(inputs)[0]

    def answer(self, inputs: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the actions for rows of inputs, and which rows get the safe action."""
        batch = self.number.values(inputs)
        lost = np.isnan(batch).any(axis=1, keepdims=True)
        batch = np.where(lost, 0.0, batch)
        rows = self.exact.find(batch)
        with np.errstate(invalid="ignore", over="ignore"):
            raw = self.exact.leaves.give(rows, batch)
        actions = raw.reshape(len(batch), -1).astype(np.float64)
        # Infinite observations may cancel to NaN in a law, for which the safe action is taken.
        missing = np.isnan(actions) | lost
        # The safe action is the row after those of the policy.
        safely = missing.any(axis=1) | (rows >= len(self.rules.leaves))
        return self.number.rounded(np.where(missing, self.safe, actions)), safely

    def leaf_value(self, row: int) -> tuple[float, ...]:
        """Return the constant action of a row in the table of leaves, in the numbers of the machine."""
        leaves = self.exact.leaves
        if not isinstance(leaves, SwitchingLaws):
            return self.machine_action(constants(leaves)[row])
        if (action := only_action(leaves, row)) is None:
            raise SettingError(
                f"Leaf row {row} is a switching law, without a constant action: write `tree.leaves` instead."
            )
        return self.machine_action(action)

    def machine_action(self, action: Any) -> tuple[float, ...]:
        """Return an action in the numbers of the machine."""
        return tuple(self.number.rounded(np.array(action, np.float64).reshape(1, -1))[0].tolist())

    def scores(self, row: int) -> list[tuple[int, float, NDArray[np.float64]]]:
        """Return the actions that a switching law may take, each with the offset and the gains of its score.

        It is empty for a law that takes the same action for all observations, and for other leaves.
        """
        leaves = self.exact.leaves
        if not isinstance(leaves, SwitchingLaws) or only_action(leaves, row) is not None:
            return []
        taken = np.flatnonzero(leaves.offset[row] > -np.inf).tolist()
        return [(leaves.start + i, float(leaves.offset[row, i]), leaves.gain[row, i]) for i in taken]

    @cached_property
    def switches(self) -> bool:
        """Whether a leaf has a switching law that takes more than one action."""
        return any(self.scores(row) for row in set(self.exact.leaf[self.exact.feature < 0].tolist()))

    def leaf_name(self, row: int) -> str:
        """Return the name of a constant Discrete action; empty for others."""
        leaves = self.exact.leaves
        if isinstance(leaves, Choices):
            return self.action_name(int(leaves.number[row]))
        action = only_action(leaves, row) if isinstance(leaves, SwitchingLaws) else None
        return "" if action is None else self.action_name(action)

    def action_name(self, number: int) -> str:
        """Return the name of a Discrete action, given by its number."""
        space = self.exact.action_space
        assert isinstance(space, Discrete)
        return self.exact.actions[number - int(space.start)]


def controller_of(
    tree: RuleTree,
    number: str = "double",
    safe_action: float | str | Sequence[float] | None = None,
    provenance: Sequence[str] = (),
    tolerance: float = TOLERANCE,
) -> MachineController:
    """Return the controller to export for a rule tree.

    Parameters
    ----------
    tree
        The rules.
    number
        Number type of the machine: "double", "float" or "fixed".
    safe_action
        The action for NaN, and for observations out of bounds by more than the tolerance. By default the
        rules apply beyond the bounds, as in Python, and the action for NaN is the first Discrete action, or
        the one nearest to 0.
    provenance
        Lines about the origin of the tree.
    tolerance
        By how much an observation may be out of bounds before the safe action is taken, as a share of its
        range.
    """
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise SettingError(
            f"tolerance is {tolerance}, and must be a share of each range, 0 or more, such as 0.1."
        )
    if not _finite(tree.leaves):
        raise SettingError("The tree has an action or law that is not finite, which cannot be exported.")
    printed_sizes(tree)  # raises if there are too many leaves
    safe = tree.default_action if safe_action is None else _checked_action(tree, safe_action)
    guard, exact = None, tree
    if safe_action is not None:
        low, high = limits(tree.observation_space, tolerance)
        guard = Limits(tuple(low.tolist()), tuple(high.tolist()), tolerance)
        exact = guarded(tree, safe, low, high)
    exact = without_unused_sums(decided(exact))
    return MachineController(tree, exact, number_of(number, exact, safe), safe, guard, tuple(provenance))


def _finite(leaves: Leaves) -> bool:
    """Return whether all numbers of leaves are finite, but for the offsets of actions never taken."""
    if isinstance(leaves, SwitchingLaws):
        return bool(np.isfinite(leaves.gain).all() and (leaves.offset < np.inf).all())
    return all(np.isfinite(table).all() for table in vars(leaves).values())


def _checked_action(tree: RuleTree, given: float | str | Sequence[float]) -> tuple[float, ...]:
    space = tree.action_space
    if isinstance(space, Discrete):
        return (float(tree.action_number(given)),)
    return checked_box_action(space, given)


def checked_box_action(space: Box, given: float | str | Sequence[float]) -> tuple[float, ...]:
    """Return a safe action as its numbers; raises unless it is an action of the space."""
    low, high = space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()
    safe = np.empty(0) if isinstance(given, str) else np.asarray(given, np.float64).ravel()
    played = safe.astype(space.dtype)  # the type of the bounds: 0.7 is above the nearest float32
    if len(safe) != len(low) or not np.all((low <= played) & (played <= high) & np.isfinite(safe)):
        raise SettingError(
            f"The safe action is {given!r}, and must be {counted(len(low), 'finite number')} within "
            f"{low.tolist()} and {high.tolist()}."
        )
    return tuple(safe.tolist())
