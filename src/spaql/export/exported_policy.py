"""Exported code as a policy, to be evaluated and stress-tested like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Controller, Policy
from spaql.controllers.policy import Rng
from spaql.errors import SettingError
from spaql.export.machine import TOLERANCE, machine_of
from spaql.spaces import environment_actions


class ExportedPolicy(Policy):
    """The policy of exported code: with its number type and its safe action.

    It computes what exported files are compared with, so its actions equal theirs to the last bit.

    Parameters
    ----------
    tree, number, safe_action, tolerance
        As in `spaql.export.write`.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.controller_of(agent.learn(iterations=100, progress_bar=False))
    >>> exported = ExportedPolicy(tree, number="float", safe_action="push left")
    >>> 150 < spaql.evaluate(exported, agent.problem, episodes=20).mean <= 200
    True
    """

    def __init__(
        self,
        tree: Controller,
        *,
        number: str = "double",
        safe_action: float | str | Sequence[float] | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        if tree.remembers:
            raise SettingError(
                "Code of a controller with memory acts as the controller itself: evaluate that."
            )
        self.machine = machine_of(tree, number, safe_action, (), tolerance)
        self.observation_space = tree.observation_space
        self.action_space = tree.action_space

    def act(
        self,
        observations: NDArray[Any],
        steps: NDArray[np.int64] | None = None,
        rng: Rng | None = None,
    ) -> Any:
        """Return a raw action for each observation of a batch."""
        inputs = self._inputs(observations)
        return environment_actions(self.action_space, self.machine.wanted(inputs) - self.machine.first)

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
