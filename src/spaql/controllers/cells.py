"""The leaves of a tree as boxes: on the grid of its thresholds, and as a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count

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


@dataclass(frozen=True, eq=False)
class LeafTable:
    """The leaves of a tree as boxes `low <= x < high`: parallel arrays, in the order of the printed rules."""

    tree: Controller
    low: NDArray[np.float64]
    """A row for each leaf, a column for each number that rules compare: the inputs, and their sums
    (see `Controller.numbers`); minus infinity where there is no lower end."""
    high: NDArray[np.float64]
    leaf: NDArray[np.int64]
    """Rows in the tree's table of laws."""

    def __len__(self) -> int:
        return len(self.leaf)

    def names(self, digits: int | None = None) -> list[str]:
        """Return the names of the columns; of sums that read the same, all but the first are numbered."""
        names: list[str] = []
        for name in self.tree.number_names(digits):
            again = (f"{name} ({i})" for i in count(2))
            names.append(
                name
                if name not in names
                else next(candidate for candidate in again if candidate not in names)
            )
        return names


def table(tree: Controller) -> LeafTable:
    """Return the leaves of a tree with the interval of each number that its rules compare.

    The rows are boxes that cover the space without overlap. Leaves whose conditions contradict each other are
    left out; where rules compare sums, it is not examined whether an observation has all numbers of a box.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> rows = table(spaql.controller_of(agent.learn(iterations=20, progress_bar=False)))
    >>> observation = np.array([0.0, 0.1, 0.02, -0.3])
    >>> inside = (rows.low <= observation) & (observation < rows.high)
    >>> int(inside.all(axis=1).sum())
    1
    """
    cells = tree_cells(tree)
    low = np.empty(cells.low.shape)
    high = np.empty(cells.low.shape)
    for j, thresholds in enumerate(cells.thresholds):
        edges = np.concatenate([[-math.inf], thresholds, [math.inf]])
        low[:, j] = edges[cells.low[:, j]]
        high[:, j] = edges[cells.high[:, j]]
    return LeafTable(tree, low, high, cells.label)
