"""The exact set of observations for which two rule trees act differently, as boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from spaql.errors import SettingError
from spaql.export.rewrite import constants
from spaql.export.target_controller import MachineController
from spaql.policy import Laws, RuleTree, SwitchingLaws
from spaql.policy.leaves import first_equal


@dataclass(frozen=True)
class Difference:
    """A box of observations, both ends included, with the rows of either tree in the table of leaves."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    rows: tuple[int, int]


def differences(one: RuleTree, other: RuleTree) -> list[Difference]:
    """Return the observations, including infinite ones, for which two trees over one table differ.

    The boxes do not overlap. They are defined for trees that compare no sums.

    Examples
    --------
    >>> import numpy as np
    >>> import dataclasses
    >>> from gymnasium.spaces import Box, Discrete
    >>> from spaql.policy import Choices
    >>> tree = RuleTree(
    ...     [0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [-1, 0, 1],
    ...     Choices(np.array([0, 1])), Box(-1.0, 1.0, (1,)), Discrete(2),
    ... )
    >>> moved = dataclasses.replace(tree, threshold=[np.nextafter(0.5, 1), 0, 0])
    >>> differences(tree, moved)
    [Difference(low=(0.5,), high=(0.5,), rows=(1, 0))]
    """
    if len(one.combinations) or len(other.combinations):
        raise SettingError("Where trees that compare sums of observations differ is no set of boxes.")
    same = first_equal(one.leaves)
    found = []
    waiting = [(0, 0, (-math.inf,) * one.dims, (math.inf,) * one.dims)]
    while waiting:
        i, k, low, high = waiting.pop()
        asks = one.feature[i] >= 0
        tree, node = (one, i) if asks else (other, k)
        j, t = int(tree.feature[node]), float(tree.threshold[node])
        if j < 0:
            rows = int(one.leaf[i]), int(other.leaf[k])
            if same[rows[0]] != same[rows[1]]:
                found.append(Difference(low, high, rows))
            continue
        left, right = int(tree.left[node]), int(tree.right[node])
        if low[j] < t:
            top = (*high[:j], min(high[j], math.nextafter(t, -math.inf)), *high[j + 1 :])
            waiting.append((left, k, low, top) if asks else (i, left, low, top))
        if high[j] >= t:
            bottom = (*low[:j], max(low[j], t), *low[j + 1 :])
            waiting.append((right, k, bottom, high) if asks else (i, right, bottom, high))
    return found


def lost_by_conversion(controller: MachineController) -> list[dict[str, Any]] | None:
    """Return boxes of double-precision observations whose conversion to the number type changes the leaf.

    Each has the actions of the policy and of the export, or the rows of their laws in the table of leaves.
    Doubles near an oblique cut or near a tie of a switching law may get another action as well. These are no
    boxes, and then None is returned.
    """
    tree, leaves = controller.exact, controller.exact.leaves
    if controller.number.name == "double":  # nothing is converted
        return []
    if len(tree.combinations) or isinstance(leaves, SwitchingLaws):
        return None
    said = [[row] for row in range(len(leaves))]
    if not isinstance(leaves, Laws):
        said = constants(leaves).reshape(len(leaves), -1).tolist()
    return [
        {
            "low": list(box.low),
            "high": list(box.high),
            "policy": said[box.rows[0]],
            "export": said[box.rows[1]],
        }
        for box in differences(tree, controller.number.seen(tree))
    ]
