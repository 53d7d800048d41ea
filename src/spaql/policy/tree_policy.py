"""The policy of a rule tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.policy import Policy
from spaql.policy.explanation import DIGITS, Deed, Explanation, explain_cell, observed
from spaql.policy.leaves import Laws, first_equal
from spaql.policy.policy import Rng
from spaql.policy.text import leaf_text, values_text
from spaql.policy.tree import RuleTree


class RuleTreePolicy(Policy):
    """Do what a rule tree says.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", seed=0)
    >>> policy = RuleTreePolicy(spaql.rule_tree(agent))
    >>> 5 < spaql.evaluate(policy, agent.problem, episodes=10).mean < 20
    True
    """

    def __init__(self, tree: RuleTree) -> None:
        self.tree = tree
        self.observation_space = tree.observation_space
        self.action_space = tree.action_space

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Give a batch of raw actions."""
        return self.tree.predict(
            np.reshape(observations, (len(steps), *(self.observation_space.shape or ())))
        )

    def explain(self, observation: Any) -> Explanation:
        """Say why this is done for an observation: the rule that was followed, and what would change it."""
        tree = self.tree
        point, named = observed(observation, tree.observations)
        number = tree.leaf_number(point)
        low, high, _ = tree.box(number)
        same = first_equal(tree.leaves)
        return explain_cell(
            point,
            named,
            low,
            high,
            f"leaf {number} of {tree.n_leaves}",
            tree.thresholds,
            tree.observation_space,
            lambda batch: same[tree.find(batch)][:, np.newaxis],
            lambda batch: tree.predict(batch).reshape(len(batch), -1),
            self._deed,
        )

    def _deed(self, point: NDArray[np.float64]) -> Deed:
        tree, batch = self.tree, point[np.newaxis]
        row = tree.find(batch)
        with np.errstate(invalid="ignore", over="ignore"):
            done = np.atleast_1d(tree.leaves.give(row, batch)[0])
        # As it is played: where infinite observations cancel in a law, the default action.
        done = np.where(np.isnan(done), tree.default_action, done).astype(done.dtype)
        said, value = leaf_text(tree, int(row[0]), DIGITS), tuple(done.tolist())
        if isinstance(tree.leaves, Laws):
            return Deed(values_text(tree.actions, value, DIGITS), value, law=said)
        return Deed(said, value)
