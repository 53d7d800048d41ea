"""What a machine is to run: a rule tree, in numbers of the machine, and what it does without any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.export.numbers import Number, number_of
from spaql.export.rewrite import constants, decided, guarded
from spaql.export.rules import printed_sizes
from spaql.policy import Choices, RuleTree
from spaql.words import counted


@dataclass(frozen=True, eq=False)
class MachineController:
    """A controller as it is exported: every writer takes this, and nothing else."""

    exact: RuleTree
    """The rules in double precision, with those that guard the bounds of the observations."""
    number: Number
    safe: tuple[float, ...]
    """The action where there is no number to decide by."""
    guarded: bool = False
    """Whether it is also the action beyond the bounds of the observations."""
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
        batch = self.number.values(inputs)
        lost = np.isnan(batch).any(axis=1, keepdims=True)
        batch = np.where(lost, 0.0, batch)
        with np.errstate(invalid="ignore", over="ignore"):
            raw = self.exact.leaves.give(self.exact.find(batch), batch)
        actions = raw.reshape(len(batch), -1).astype(np.float64)
        # Infinite observations may cancel in a law: what is no number is the safe action.
        actions = np.where(np.isnan(actions) | lost, self.safe, actions)
        return self.number.rounded(actions)

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
) -> MachineController:
    """Make the controller of a rule tree.

    Parameters
    ----------
    tree
        The rules.
    number
        In which the machine computes: "double", "float" or "fixed".
    safe_action
        The action for NaN, and for observations beyond the bounds of their space. By default the rules hold
        beyond the bounds, as they do in Python, and NaN is answered with the first action of a list, or the
        one nearest to 0.
    provenance
        Lines that say where the tree comes from.
    """
    if not all(np.isfinite(table).all() for table in vars(tree.leaves).values()):
        raise SettingError("Actions and laws are exported only if all of their numbers are finite.")
    printed_sizes(tree)  # refuses what is too large
    safe = tree.default_action if safe_action is None else _checked_action(tree, safe_action)
    exact = decided(tree if safe_action is None else guarded(tree, safe))
    numbers = number_of(number, exact, safe)
    return MachineController(exact, numbers, safe, safe_action is not None, tuple(provenance))


def _checked_action(tree: RuleTree, given: float | str | Sequence[float]) -> tuple[float, ...]:
    space = tree.action_space
    if isinstance(space, Discrete):
        return (float(tree.action_number(given)),)
    low, high = space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()
    safe = np.empty(0) if isinstance(given, str) else np.asarray(given, np.float64).ravel()
    if len(safe) != len(low) or not np.all((low <= safe) & (safe <= high)):
        raise SettingError(
            f"The safe action is {counted(len(low), 'number')}, within {low.tolist()} and {high.tolist()}."
        )
    return tuple(safe.tolist())
