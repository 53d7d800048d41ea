"""What a machine is to run: a rule tree, in numbers of the machine, and what it does without any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.export.numbers import Number, number_of
from spaql.export.rewrite import TOLERANCE, constants, decided, guarded, limits
from spaql.export.rules import printed_sizes
from spaql.formatting import counted
from spaql.policy import Choices, RuleTree


@dataclass(frozen=True)
class Limits:
    """Between which the policy decides, ends included; beyond them is the safe action."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    tolerance: float
    """The share of an observation's range that they are wider than its space, on either side."""

    @property
    def questions(self) -> int:
        """How many of them are finite."""
        return int(np.isfinite([*self.low, *self.high]).sum())


@dataclass(frozen=True, eq=False)
class MachineController:
    """A controller as it is exported: every writer takes this, and nothing else."""

    rules: RuleTree
    """The policy."""
    exact: RuleTree
    """The same in double precision, after the questions whether the observation is within its limits."""
    number: Number
    safe: tuple[float, ...]
    """The action where there is no number to decide by."""
    limits: Limits | None = None
    """Beyond which it is the action as well; none if the policy decides everywhere."""
    provenance: tuple[str, ...] = ()
    """Where it comes from, in lines for people."""

    @cached_property
    def tree(self) -> RuleTree:
        """The same rules with thresholds that are numbers of the machine."""
        return self.number.on_grid(self.exact)

    @property
    def n_actions(self) -> int:
        """The numbers of an action."""
        return len(self.safe)

    def wanted(self, inputs: NDArray[Any]) -> NDArray[np.float64]:
        """Give the actions that are wanted for rows of inputs, in the numbers of the machine."""
        return self.answer(inputs)[0]

    def answer(self, inputs: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Give the actions that are wanted for rows of inputs, and tell which rows get the safe action."""
        batch = self.number.values(inputs)
        lost = np.isnan(batch).any(axis=1, keepdims=True)
        batch = np.where(lost, 0.0, batch)
        rows = self.exact.find(batch)
        with np.errstate(invalid="ignore", over="ignore"):
            raw = self.exact.leaves.give(rows, batch)
        actions = raw.reshape(len(batch), -1).astype(np.float64)
        # Infinite observations may cancel in a law: what is no number is the safe action.
        missing = np.isnan(actions) | lost
        # The row after those of the policy is that of the safe action.
        safely = missing.any(axis=1) | (rows >= len(self.rules.leaves))
        return self.number.rounded(np.where(missing, self.safe, actions)), safely

    def leaf_value(self, row: int) -> tuple[float, ...]:
        """Give the constant action of a row in the table of leaves, in the numbers of the machine."""
        values = np.array(constants(self.exact.leaves)[row], np.float64).reshape(1, -1)
        return tuple(self.number.rounded(values)[0].tolist())

    def leaf_name(self, row: int) -> str:
        """Give the name of an action of a list; others have none."""
        leaves, space = self.exact.leaves, self.exact.action_space
        if isinstance(leaves, Choices) and isinstance(space, Discrete):
            return self.exact.actions[int(leaves.number[row]) - int(space.start)]
        return ""


def controller_of(
    tree: RuleTree,
    number: str = "double",
    safe_action: float | str | Sequence[float] | None = None,
    provenance: Sequence[str] = (),
    tolerance: float = TOLERANCE,
) -> MachineController:
    """Make the controller of a rule tree.

    Parameters
    ----------
    tree
        The rules.
    number
        In which the machine computes: "double", "float" or "fixed".
    safe_action
        The action for NaN, and for observations beyond the bounds of their space by more than the tolerance.
        By default the rules hold beyond the bounds, as they do in Python, and NaN is answered with the first
        action of a list, or the one nearest to 0.
    provenance
        Lines that say where the tree comes from.
    tolerance
        The share of an observation's range by which it may be out of bounds before it gets the safe action.
    """
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise SettingError(
            f"The tolerance is a share of each range, 0 or more, such as 0.1: not {tolerance}."
        )
    if not all(np.isfinite(table).all() for table in vars(tree.leaves).values()):
        raise SettingError("Actions and laws are exported only if all of their numbers are finite.")
    printed_sizes(tree)  # refuses what is too large
    safe = tree.default_action if safe_action is None else _checked_action(tree, safe_action)
    guard, exact = None, tree
    if safe_action is not None:
        low, high = limits(tree.observation_space, tolerance)
        guard = Limits(tuple(low.tolist()), tuple(high.tolist()), tolerance)
        exact = guarded(tree, safe, low, high)
    exact = decided(exact)
    return MachineController(tree, exact, number_of(number, exact, safe), safe, guard, tuple(provenance))


def _checked_action(tree: RuleTree, given: float | str | Sequence[float]) -> tuple[float, ...]:
    space = tree.action_space
    if isinstance(space, Discrete):
        return (float(tree.action_number(given)),)
    low, high = space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()
    safe = np.empty(0) if isinstance(given, str) else np.asarray(given, np.float64).ravel()
    played = safe.astype(space.dtype)  # the type of the bounds: 0.7 is above the nearest float32
    if len(safe) != len(low) or not np.all((low <= played) & (played <= high) & np.isfinite(safe)):
        raise SettingError(
            f"The safe action is {counted(len(low), 'finite number')}, within {low.tolist()} and "
            f"{high.tolist()}."
        )
    return tuple(safe.tolist())
