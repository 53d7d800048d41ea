"""The leaves of a tree as boxes on the grid of its thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.controllers.controller import Controller
from spaql.errors import SettingError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LabelledBoxes:
    """Boxes `low <= place < high` that do not overlap, each with a label.

    The place of a number in a dimension is the count of thresholds that are not above it. Where there is no
    box, any label is allowed.
    """

    low: Ints
    high: Ints
    label: Ints
    thresholds: tuple[NDArray[np.float64], ...]
    """Of each dimension, in ascending order."""

    @property
    def shape(self) -> Ints:
        """The number of places in each dimension."""
        return np.array([len(row) + 1 for row in self.thresholds], np.int64)

    def where(self, wanted: NDArray[np.bool_]) -> LabelledBoxes:
        """Return some of the boxes."""
        return LabelledBoxes(self.low[wanted], self.high[wanted], self.label[wanted], self.thresholds)

    def half(self, dimension: int, place: int, *, upper: bool) -> LabelledBoxes:
        """Return the part on one side of a cut; boxes that it crosses are split."""
        low = self.low.copy()
        high = self.high.copy()
        if upper:
            low[:, dimension] = np.maximum(low[:, dimension], place)
        else:
            high[:, dimension] = np.minimum(high[:, dimension], place)
        return LabelledBoxes(low, high, self.label, self.thresholds).where(
            low[:, dimension] < high[:, dimension]
        )


def tree_cells(tree: Controller, within: Box | None = None) -> LabelledBoxes:
    """Return the leaves of a tree as boxes, each with its row in the table of laws as label.

    A sum that rules compare is a dimension of its own, like a number of the observation, so that there may be
    boxes that no observation is in. A sum that is NaN belongs to the last place, as it does for rules. With
    `within`, boxes beyond its bounds are left out.
    """
    if within is not None and tree.features:
        raise SettingError("Bounds are of observations, and these rules compare features: leave them out.")
    if within is not None and within.low.size != tree.dims:
        raise SettingError(f"The bounds have {within.low.size} numbers, and inputs {tree.dims}.")
    inner = np.flatnonzero(tree.feature >= 0)
    grid = tree.thresholds
    place = np.zeros(tree.n_nodes, np.int64)
    for i in inner:
        place[i] = np.searchsorted(grid[tree.feature[i]], tree.threshold[i]) + 1
    low, high = bounds(grid, within)
    boxes: list[tuple[Ints, Ints]] = []
    label: list[int] = []
    waiting = [(0, low, high)]
    while waiting:
        node, low, high = waiting.pop()
        j = int(tree.feature[node])
        if j < 0:
            boxes.append((low, high))
            label.append(int(tree.leaf[node]))
            continue
        if place[node] < high[j]:
            upper = low.copy()
            upper[j] = max(low[j], place[node])
            waiting.append((int(tree.right[node]), upper, high))
        if low[j] < place[node]:
            lower = high.copy()
            lower[j] = min(high[j], place[node])
            waiting.append((int(tree.left[node]), low, lower))
    lows, highs = (np.array([box[i] for box in boxes], np.int64) for i in (0, 1))
    return LabelledBoxes(lows, highs, np.array(label, np.int64), grid)


def bounds(grid: tuple[NDArray[np.float64], ...], within: Box | None) -> tuple[Ints, Ints]:
    """Return the first place within the bounds in each dimension, and the one after the last.

    The bounds are those of observations; the dimensions after them, of sums, are not bounded.
    """
    first = np.zeros(len(grid), np.int64)
    last = np.array([len(row) + 1 for row in grid], np.int64)
    if within is not None:
        ends = zip(within.low.astype(np.float64).flat, within.high.astype(np.float64).flat, strict=True)
        for j, (low, high) in enumerate(ends):
            first[j] = np.searchsorted(grid[j], low, side="right")
            last[j] = np.searchsorted(grid[j], high, side="right") + 1
    return first, last


def merged(cells: LabelledBoxes) -> LabelledBoxes:
    """Return the boxes with those of one label that share a whole side joined, until none do."""
    low = cells.low
    high = cells.high
    label = cells.label
    dims = low.shape[1]
    before = -1
    while len(low) != before:
        before = len(low)
        for j in range(dims):
            others = [k for k in range(dims) if k != j]
            keys = np.column_stack([label, low[:, others], high[:, others], low[:, j]])
            order = np.lexsort(keys.T[::-1])
            low = low[order]
            high = high[order]
            label = label[order]
            keys = keys[order]
            joined = (keys[1:, :-1] == keys[:-1, :-1]).all(axis=1) & (high[:-1, j] == low[1:, j])
            last = np.append(~joined, True)
            low = low[np.append(True, ~joined)]
            high = high[last]
            label = label[last]
    return LabelledBoxes(low, high, label, cells.thresholds)


def compressed(cells: LabelledBoxes) -> LabelledBoxes:
    """Return the same boxes on a coarser grid, without thresholds at which no box starts or ends."""
    lows = []
    highs = []
    grid = []
    for j, row in enumerate(cells.thresholds):
        edges = np.unique(np.concatenate([cells.low[:, j], cells.high[:, j]]))
        used = edges[(edges > cells.low[:, j].min()) & (edges < cells.high[:, j].max())]
        lows.append(np.searchsorted(used, cells.low[:, j], side="right"))
        highs.append(np.searchsorted(used, cells.high[:, j], side="left") + 1)
        grid.append(row[used - 1])
    low = np.stack(lows, axis=1).astype(np.int64)
    high = np.stack(highs, axis=1).astype(np.int64)
    return LabelledBoxes(low, high, cells.label, tuple(grid))
