"""Controllers whose nodes are in the order in which learners keep them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spaql.controllers import Controller
from spaql.controllers.arrays import copied_nodes


def in_pairs(controller: Controller) -> Controller:
    """Return the same controller with the right child of each node next to its left child."""
    order = copied_nodes(controller)
    inner = controller.feature[order] >= 0
    left = np.where(inner, 2 * np.cumsum(inner) - 1, -1)
    return replace(
        controller,
        feature=controller.feature[order],
        threshold=controller.threshold[order],
        left=left,
        right=np.where(inner, left + 1, -1),
        leaf=controller.leaf[order],
    )
