"""Exported code as a policy, to be evaluated and stress-tested like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.export.machine import TOLERANCE, machine_of
from spaql.policy import Policy, RuleTree
from spaql.policy.policy import Rng


class ExportedPolicy(Policy):
    """The policy of exported code: with its number type and its safe action.

    It computes what exported files are compared with, so its actions equal theirs to the last bit.

    Parameters
    ----------
    tree, number, safe_action, tolerance
        As in `spaql.export.c`.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.rule_tree(agent.learn(iterations=100, progress_bar=False))
    >>> exported = ExportedPolicy(tree, number="float", safe_action="push left")
    >>> 150 < spaql.evaluate(exported, agent.problem, episodes=20).mean <= 200
    True
    """

    def __init__(
        self,
        tree: RuleTree,
        *,
        number: str = "double",
        safe_action: float | str | Sequence[float] | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        if not isinstance(tree, RuleTree):
            raise SettingError(
                f"A rule tree is exported, and this is a {type(tree).__name__}. Code of a controller with "
                "memory acts as the controller itself: evaluate that."
            )
        self.machine = machine_of(tree, number, safe_action, (), tolerance)
        self.observation_space = tree.observation_space
        self.action_space = tree.action_space

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a raw action for each observation of a batch."""
        inputs = self._inputs(observations)
        actions = self.machine.wanted(inputs)
        space = self.machine.controller.action_space
        if isinstance(space, Discrete):
            return actions[:, 0].astype(np.int64)
        return actions.reshape(-1, *space.shape).astype(space.dtype)

    def is_safe_action(self, observations: NDArray[Any]) -> NDArray[np.bool_]:
        """Return, for rows of observations, which get the safe action instead of that of the policy."""
        inputs = self._inputs(observations)
        _, wishes, valid = self.machine.sample(inputs, self.machine.arrays.new_memories(len(inputs)))
        if self.machine.discrete:
            return ~valid
        return np.asarray(~valid | np.isnan(wishes).any(axis=1))

    def _inputs(self, observations: NDArray[Any]) -> NDArray[Any]:
        batch = np.asarray(observations, np.float64).reshape(len(observations), -1)
        return self.machine.number.inputs(batch)
