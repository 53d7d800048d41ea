"""The exact controller of a greedy policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.controllers.controller import Controller
from spaql.controllers.laws import laws_of
from spaql.controllers.minimise import EFFORT, minimised
from spaql.controllers.mirrored import folded
from spaql.controllers.partition_policy import PartitionPolicy
from spaql.controllers.policy import Source, policy_of
from spaql.controllers.rules import Nodes
from spaql.errors import SettingError
from spaql.kernels.partition.lookup import Flat
from spaql.values import whole_number

_SAME = "This policy is the same at every time step: leave the step out."


def controller_of(
    agent: Source,
    step: int | None = None,
    *,
    within: Box | None = None,
    minimise: bool = True,
    effort: int = EFFORT,
    observations: Sequence[str] = (),
    actions: Sequence[str] = (),
) -> Controller:
    """Return the controller that is equivalent to a greedy policy.

    For every observation, inside the bounds of its space or not, the tree has the action that
    `policy.predict(observation, deterministic=True)` returns. Nothing is sampled or fitted.

    Parameters
    ----------
    agent
        An agent, a design, a policy made from a partition, a controller, or the path of a run folder or file.
    step
        The time step, of a policy that depends on it (AQL).
    within
        Bounds of the observations that matter, such as `policy.observation_space`: beyond them the tree
        may have any action, which makes it smaller.
    minimise
        Rebuild the tree with as few leaves as can be found. Otherwise its cuts are in the order of the
        partition's cuts. A tree that is its own mirror image stays as it is, because a smaller one might
        not be one any more.
    effort
        Number of cuts to examine in the search for the smallest tree, about 100 million per second.
    observations, actions
        Names to show; those of the plant by default.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = controller_of(agent.learn(iterations=10, progress_bar=False))
    >>> bool(tree.predict([0, 0, 0.1, 0])[0] == agent.predict([0, 0, 0.1, 0], deterministic=True)[0])
    True
    """
    policy = policy_of(agent)
    if isinstance(policy, PartitionPolicy):
        tree = _plain(policy, tree_number(policy, step), within, tuple(observations), tuple(actions))
    elif isinstance(policy, Controller):
        if step is not None:
            raise SettingError(_SAME)
        tree = policy
        minimise = minimise and folded(policy) is None
    else:
        raise SettingError(
            f"A controller is made from the policy of a partition, and this is a {type(policy).__name__}."
        )
    return minimised(tree, within, effort) if minimise else tree


def tree_number(policy: PartitionPolicy, step: int | None) -> int:
    """Return the number of the tree of balls that is played at a time step."""
    last = len(policy.flat.roots) - 1
    if not policy.time_variant:
        if step is not None:
            raise SettingError(_SAME)
        return 0
    if step is None or not 0 <= (number := whole_number("step", step)) <= last:
        raise SettingError(f"This policy depends on the time step: give one, from 0 to {last}.")
    return number


def _plain(
    policy: PartitionPolicy,
    number: int,
    within: Box | None,
    observations: tuple[str, ...],
    actions: tuple[str, ...],
) -> Controller:
    """Return the cuts of the flattened policy as rules, one dimension after the other."""
    states = policy.states
    done = policy.actions
    nodes = Nodes()
    n = states.dims
    laws, rows = laws_of(done.space, policy.leaf_actions.reshape(len(policy.flat.cut), -1), n)
    low = np.full(n, -math.inf)
    high = np.full(n, math.inf)
    if within is not None:
        low = within.low.astype(np.float64).ravel()
        high = within.high.astype(np.float64).ravel()
        if low.shape != (n,):
            raise SettingError(f"The bounds have {len(low)} numbers, and observations {n}.")
    root = _PartitionWriter(policy.flat, rows, nodes).write(int(policy.flat.roots[number]), low, high)
    arrays: dict[str, Any] = nodes.arrays(root)
    return Controller(
        **arrays,
        laws=laws,
        observation_space=states.space,
        action_space=done.space,
        observations=observations or states.names,
        actions=actions or done.names,
        within=within,
    )


class _PartitionWriter:
    """Writes a flattened policy as rules; nodes that no observation within the bounds reaches are omitted."""

    def __init__(self, flat: Flat, rows: NDArray[np.int64], nodes: Nodes) -> None:
        self._flat = flat
        self._rows = rows
        self._nodes = nodes
        self._dims = flat.cut.shape[1]

    def write(self, node: int, low: NDArray[np.float64], high: NDArray[np.float64]) -> int:
        """Write the subtree of a node of the flattened policy; both bounds belong to the region."""
        if self._flat.first_child[node] < 0:
            return self._nodes.leaf(int(self._rows[node]))
        return self._write_rule(node, 0, 0, low, high)

    def _write_rule(
        self, node: int, j: int, orthant: int, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> int:
        """Write the rules of a node from dimension j on; the orthant encodes the sides taken before."""
        if j == self._dims:
            return self.write(int(self._flat.first_child[node]) + orthant, low, high)
        cut = float(self._flat.cut[node, j])
        sides = []
        if low[j] < cut:
            below = high.copy()
            below[j] = min(high[j], np.nextafter(cut, -math.inf))
            sides.append(self._write_rule(node, j + 1, 2 * orthant, low, below))
        if high[j] >= cut:
            above = low.copy()
            above[j] = max(low[j], cut)
            sides.append(self._write_rule(node, j + 1, 2 * orthant + 1, above, high))
        return sides[0] if len(sides) == 1 else self._nodes.rule(j, cut, *sides)
