"""Which actions a log has tried, anywhere and near a state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.replay.memory import Floats
from spaql.kernels.plantree.pwa_model import Ints, find_all

Bools = NDArray[np.bool_]

_NEAR = 100
"""Most rows of a region of states: in it, an action is near to the others."""
_MARGIN = 0.5
"""Share of the range of the actions of a region by which it may be exceeded."""
_EQUAL = 1e-6


class TriedActions:
    """The ranges of the logged actions, in all and in regions of states with about as many rows each.

    Cells of a learned plant are no such regions: a plant with one law for all states has one cell.
    """

    def __init__(self, z: Floats, inputs: Floats, listed: bool) -> None:
        """Take standardised states, and actions as inputs of a plant without squares."""
        self._listed = listed
        self._all = (inputs.min(axis=0), inputs.max(axis=0))
        self._regions = _regions(z)
        region = self._find(z)
        count = len(self._regions[0])
        self._low, self._high = np.full((2, count, inputs.shape[1]), np.inf)
        np.minimum.at(self._low, region, inputs)
        self._high = -self._high
        np.maximum.at(self._high, region, inputs)

    def _find(self, z: Floats) -> Ints:
        return find_all(*self._regions, 0, np.ascontiguousarray(z))

    def untried(self, inputs: Floats) -> Bools:
        """Return which actions are outside those that were tried anywhere."""
        low, high = self._all
        some = inputs[:, : len(low)]
        return np.asarray(((some < low - _EQUAL) | (some > high + _EQUAL)).any(axis=1))

    def unseen(self, z: Floats, inputs: Floats) -> Bools:
        """Return which actions are outside those that were tried near the state, with a margin."""
        region = self._find(z)
        low = self._low[region]
        high = self._high[region]
        some = inputs[:, : low.shape[1]]
        # One-hot, 1 was never seen, or it was all that was seen.
        wide = 0.0 if self._listed else _MARGIN * (high - low) + _EQUAL
        return np.asarray(((some < low - wide) | (some > high + wide)).any(axis=1))


def _regions(z: Floats) -> tuple[Ints, Floats, Ints]:
    """Return a tree that halves states at the median of their widest range: features, thresholds, children.

    The second child of a node comes after its first.
    """
    feature = [-1]
    threshold = [0.0]
    left = [-1]
    waiting = [(0, np.arange(len(z)))]
    while waiting:
        node, rows = waiting.pop()
        j = int(np.ptp(z[rows], axis=0).argmax())
        middle = np.sort(z[rows, j])[len(rows) // 2]
        below = z[rows, j] < middle
        if len(rows) <= _NEAR or not below.any():
            continue
        feature[node] = j
        threshold[node] = float(middle)
        left[node] = len(feature)
        waiting += [(len(feature), rows[below]), (len(feature) + 1, rows[~below])]
        feature += [-1, -1]
        threshold += [0.0, 0.0]
        left += [-1, -1]
    return np.array(feature), np.array(threshold), np.array(left)
