"""Smaller trees that approximate a controller on the observations that it visits."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spaql.controllers.controller import Controller
from spaql.controllers.edit import overlaid
from spaql.controllers.feature_table import with_sources
from spaql.controllers.laws import Laws
from spaql.controllers.minimise import add_nodes, tree_of, work
from spaql.controllers.rules import Nodes
from spaql.errors import SettingError
from spaql.kernels.trees.cost_complexity import cheapest_costs, cheapest_tree, weigh_boxes
from spaql.kernels.trees.optimal_tree import best_cut

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_ROOM = 12_000_000
"""The most entries of a table: 96 MB."""
_EFFORT = 200_000_000
"""The most cuts examined for the cheapest tree of a part."""
_TRIES = 4
"""Number of cuts tried where a grid is too large."""
_STEP = 2.0**0.5
"""Ratio of one price of a leaf to the next."""


def simplified(
    tree: Controller, observations: ArrayLike, *, price: float = 0.0, weights: ArrayLike | None = None
) -> Controller:
    """Return the tree that agrees with another one on given observations at the least cost.

    Every leaf has a price, and every observation with another action, or another law that computes it, costs
    its weight. Where there is no observation and no locked leaf, any action is allowed. The tree is the
    cheapest of all whose thresholds are among those of the given one, of numbers and sums alike, as long as
    the grid that these span has no more than some million boxes.

    Parameters
    ----------
    tree
        The tree to simplify.
    observations
        The observations on which to agree: those of some of its episodes, one per row.
    price
        Of a leaf. With 0, the result agrees on all the observations, with the fewest leaves for that.
    weights
        Of the observations, 1 each by default.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.controller_of(agent.learn(iterations=50, progress_bar=False))
    >>> seen = np.random.default_rng(0).normal(size=(1000, 4)) * 0.1
    >>> small = simplified(tree, seen)
    >>> small.n_leaves < tree.n_leaves, bool((small.act(seen) == tree.act(seen)).all())
    (True, True)
    """
    visits = _visits(tree, observations, weights)
    nodes = Nodes()
    root, _ = _grow(nodes, visits, price or visits.least_price)
    return _with_locks(tree_of(nodes, root, tree))


def shrinking(
    tree: Controller, observations: ArrayLike, *, weights: ArrayLike | None = None
) -> Iterator[Controller]:
    """Yield ever smaller trees for given observations, from one without errors to one of two or more leaves.

    Each is cheapest at some price of a leaf (see `simplified`).
    """
    visits = _visits(tree, observations, weights)
    price = visits.least_price
    fewest = 0
    while fewest != 1:
        nodes = Nodes()
        root, _ = _grow(nodes, visits, price)
        leaves = nodes.leaves[root]
        if not fewest or 1 < leaves < fewest:
            yield _with_locks(tree_of(nodes, root, tree))
        fewest = min(fewest or leaves, leaves)
        price = max(_STEP * price, float(visits.weight.min()) / 4)


def _with_locks(tree: Controller) -> Controller:
    return functools.reduce(overlaid, tree.locks, tree)


@dataclass(frozen=True)
class _Visits:
    """Places of a grid with observations, each with its target label."""

    place: Ints
    label: Ints
    weight: Floats
    thresholds: tuple[Floats, ...]

    @property
    def least_price(self) -> float:
        """A price at which no error is made: all possible leaves together cost less than one error."""
        return float(self.weight.min()) / (4 * len(self.weight))

    @property
    def shape(self) -> Ints:
        return np.array([len(row) + 1 for row in self.thresholds], np.int64)

    def where(self, wanted: NDArray[np.bool_]) -> _Visits:
        return _Visits(self.place[wanted], self.label[wanted], self.weight[wanted], self.thresholds)

    def compressed(self) -> _Visits:
        """Return it without redundant thresholds; of those that separate the same places, keep the middle."""
        places = []
        grid = []
        for j, row in enumerate(self.thresholds):
            used, place = np.unique(self.place[:, j], return_inverse=True)
            places.append(place.ravel())
            grid.append(row[(used[:-1] + used[1:]) // 2])  # of rows used[i] to used[i + 1] - 1
        return _Visits(np.stack(places, axis=1).astype(np.int64), self.label, self.weight, tuple(grid))


def _visits(tree: Controller, observations: ArrayLike, weights: ArrayLike | None) -> _Visits:
    array = np.asarray(observations, np.float64)
    if array.ndim > 1 and math.prod(array.shape[1:]) != tree.dims:
        raise SettingError(
            f"The rows have {math.prod(array.shape[1:])} numbers, and the rules read {tree.dims}: "
            f"{', '.join(tree.inputs)}."
        )
    batch = array.reshape(-1, tree.dims)
    weight = np.ones(len(batch)) if weights is None else np.asarray(weights, np.float64)
    if not len(batch) or weight.shape != (len(batch),) or not (weight > 0).all():
        raise SettingError("A tree is simplified for one observation or more, each of a weight above 0.")
    label = tree.find(batch)
    grid = tree.thresholds
    numbers = tree.numbers(batch)
    place = [np.searchsorted(row, numbers[:, j], side="right") for j, row in enumerate(grid)]
    rows, group = np.unique(np.column_stack([label, *place]), axis=0, return_inverse=True)
    total = np.bincount(group.ravel(), weight).astype(np.float64)
    return _Visits(rows[:, 1:].astype(np.int64), rows[:, 0].astype(np.int64), total, grid)


def _grow(nodes: Nodes, visits: _Visits, price: float) -> tuple[int, float]:
    """Grow the tree of a region; return it and its cost."""
    visits = visits.compressed()
    rows, label = np.unique(visits.label, return_inverse=True)
    label = label.ravel().astype(np.int64)
    by_label = np.bincount(label, visits.weight)
    leaf = nodes.leaf(int(rows[by_label.argmax()]))
    leaf_cost = float(by_label.sum() - by_label.max()) + price
    if leaf_cost <= 2 * price:
        return leaf, leaf_cost
    boxes, cuts = work(visits.shape)
    if boxes * (len(rows) + 1) <= _ROOM and cuts <= _EFFORT:
        weights = weigh_boxes(visits.place, label, visits.weight, visits.shape, len(rows))
        costs = cheapest_costs(weights, visits.shape, price)
        arrays = cheapest_tree(weights, costs, visits.shape, price)
        return add_nodes(nodes, arrays, visits.thresholds, rows), float(costs[-1])
    region = np.stack([np.zeros_like(visits.shape), visits.shape])
    j, cut = best_cut(visits.place, visits.place + 1, label, region, _TRIES)
    below = visits.place[:, j] < cut
    (left, left_cost), (right, right_cost) = (
        _grow(nodes, visits.where(side), price) for side in (below, ~below)
    )
    if leaf_cost <= left_cost + right_cost:
        return leaf, leaf_cost
    threshold = float(visits.thresholds[j][cut - 1])
    return nodes.rule(int(j), threshold, left, right), left_cost + right_cost


def without_unused_features(controller: Controller) -> Controller:
    """Return the controller without the features that no number, lock or other feature uses."""
    if not controller.features:
        return controller
    compared = controller.feature[(controller.feature >= 0) & (controller.feature < controller.dims)]
    read = controller.laws.gain.any(axis=(0, 1)) | controller.combinations.any(axis=0)
    for lock in controller.locks:
        read = read | (np.isfinite(lock.low) | np.isfinite(lock.high))[: controller.dims]
    kept = with_sources({*np.flatnonzero(read), *compared} or {0}, controller.features)
    place = np.zeros(controller.width, np.int64)
    place[kept] = np.arange(len(kept))
    place[controller.dims :] = len(kept) + np.arange(len(controller.combinations))
    numbers = [*kept, *range(controller.dims, controller.width)]
    return replace(
        controller,
        features=tuple(controller.features[j] for j in kept),
        feature=np.where(controller.feature >= 0, place[controller.feature], -1),
        combinations=controller.combinations[:, kept],
        laws=Laws(controller.laws.gain[:, :, kept], controller.laws.offset),
        hysteresis=tuple(controller.hysteresis[j] for j in numbers),
        locks=tuple(
            replace(lock, low=lock.low[numbers], high=lock.high[numbers]) for lock in controller.locks
        ),
    )
