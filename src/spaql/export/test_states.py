"""Inputs to compare two controllers at: leaf centres, boundaries with their neighbours, random points.

All are numbers of the machine, as are the thresholds of the tree, but for those of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Controller
from spaql.export.machine import Machine
from spaql.export.oblique_states import Regions, cut_points, tie_points
from spaql.program.numbers import Double, Fixed, Number
from spaql.spaces import space_bounds, unbounded

Corner = tuple[float, ...]
Ends = tuple[Corner, Corner]
"""The lowest and the highest inputs of a box, ends included."""
Doubles = NDArray[np.float64]
CHUNK = 1 << 17
LEAF_CENTRES = "leaf centres"
BOUNDARIES = "boundaries and their neighbours"
_BISECTED = 20_000
"""Pairs of random points between which boundaries over features are looked for."""


def comparison_points(machine: Machine, n: int, seed: int = 0) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield batches of inputs in the machine's numbers, each with its kind.

    Parameters
    ----------
    machine
        The controller whose export is compared, without memory.
    n
        Number of random points.
    seed
        Of the random points.
    """
    number = machine.number
    tree = _on_grid(machine)
    ends = _valid_ends(machine)
    rng = np.random.default_rng(seed)
    if tree.features:
        yield BOUNDARIES, _bisected(machine, np.random.default_rng(seed))
    elif len(tree.combinations) or _switches(tree):
        yield from _oblique_points(tree, number, ends, np.random.default_rng(seed))
    if not tree.features and not len(tree.combinations):
        yield from _batches(LEAF_CENTRES, number, leaf_centres(tree, number, ends))
        yield from _batches(BOUNDARIES, number, boundary_points(tree, number, ends))
    if not isinstance(number, Fixed):
        yield "NaN and infinities", number.inputs(_special_values(len(tree.observations)))
    if machine.limits is not None:
        yield from _batches("limits and their neighbours", number, _limit_points(machine, tree, rng))
    for begin in range(0, n, CHUNK):
        yield "random points", number.inputs(random_points(tree, min(CHUNK, n - begin), rng))


def _on_grid(machine: Machine) -> Controller:
    """Return the rules with thresholds of observations that are numbers of the machine."""
    tree = machine.controller
    number = machine.number
    if tree.features:
        return tree
    low, high = _all(number, tree.dims)
    pairs = zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True)
    up = []
    for j, t in pairs:
        if isinstance(number, Fixed) and math.isinf(t):
            t = low[j] if t < 0 else high[j] + math.ldexp(1.0, -number.observation_bits[j])
        up.append(number.up(j, t) if 0 <= j < tree.dims else t)
    return replace(tree, threshold=np.array(up))


def _switches(tree: Controller) -> bool:
    """Return whether a law has a choice of discrete actions."""
    return tree.discrete and not tree.laws.constant.all()


def _bisected(machine: Machine, rng: np.random.Generator) -> NDArray[Any]:
    """Return inputs on both sides of boundaries of leaves and actions over features, found by bisection."""
    first, second = (
        machine.number.inputs(random_points(machine.controller, _BISECTED, rng)) for _ in range(2)
    )
    columns = np.arange(first.shape[1])
    second = np.where(columns == rng.integers(first.shape[1], size=(_BISECTED, 1)), second, first)
    crossed = bisect(lambda batch: _branch(machine, batch), first, second)
    return np.concatenate([first[crossed], second[crossed]])


def bisect(
    branch: Callable[[NDArray[Any]], NDArray[Any]], near: NDArray[Any], other: NDArray[Any]
) -> NDArray[np.bool_]:
    """Move rows of inputs to both sides of a boundary between them, at which a row of `branch` changes.

    Returns between which there is one.
    """
    here = branch(near)
    crossed = (branch(other) != here).any(axis=1)
    for _ in range(80):
        with np.errstate(over="ignore", invalid="ignore"):
            middle = near / 2 + other / 2
        same = (branch(middle) == here).all(axis=1)
        near[same] = middle[same]
        other[~same] = middle[~same]
    return np.asarray(crossed)


def _branch(machine: Machine, inputs: NDArray[Any]) -> NDArray[np.float64]:
    """Return the leaf, and the discrete action, of each row of inputs."""
    actions = machine.wanted(inputs) if machine.discrete else np.empty((len(inputs), 0))
    return np.column_stack([machine.leaves(inputs), actions])


def _all(number: Number, dims: int) -> Ends:
    """Return the lowest and the highest numbers of the machine."""
    low, high = (number.values(number.inputs(np.full((1, dims), x)))[0] for x in (-math.inf, math.inf))
    return tuple(low.tolist()), tuple(high.tolist())


def _valid_ends(machine: Machine) -> Ends:
    """Return the lowest and the highest numbers of the machine that are valid readings."""
    number = machine.number
    low, high = (list(corner) for corner in _all(number, len(machine.observations)))
    for j, (least, most) in enumerate(machine.ends):
        if least > -math.inf:
            low[j] = number.up(j, least)
        if most < math.inf:
            high[j] = number.neighbour(j, number.up(j, math.nextafter(most, math.inf)), upper=False)
    return tuple(low), tuple(high)


def _limit_points(machine: Machine, tree: Controller, rng: np.random.Generator) -> Iterator[Corner]:
    """Yield points at and next to each limit beyond which the safe action is taken."""
    assert machine.limits is not None
    number = machine.number
    others = random_points(tree, 100, rng)
    for j, limits in enumerate(zip(machine.limits.low, machine.limits.high, strict=True)):
        for limit in filter(math.isfinite, limits):
            near = number.up(j, limit)
            below, above = (number.neighbour(j, near, upper=upper) for upper in (False, True))
            for point in others.tolist():
                yield from (_with(tuple(point), j, x) for x in (below, near, above))


def _oblique_points(
    tree: Controller, number: Number, ends: Ends, rng: np.random.Generator
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield inputs for trees with sums or switching laws, whose boundaries may be oblique."""
    regions, centres = _regions(tree, number, ends).centres(rng)
    points: dict[str, Iterator[Doubles]] = {}
    if len(tree.combinations):
        points[LEAF_CENTRES] = iter([centres])
        points[BOUNDARIES] = cut_points(regions, range(tree.dims), rng)
        points["oblique cuts and their neighbours"] = cut_points(regions, range(tree.dims, tree.width), rng)
    if _switches(tree):
        points["ties of switching laws and their neighbours"] = tie_points(regions, rng)
    for kind, batches in points.items():
        if len(distinct := np.concatenate([np.empty((0, tree.dims)), *batches])):
            yield kind, number.inputs(np.unique(distinct, axis=0))
    if tree.dims > 1 and len(centres):
        yield "NaN and infinities", number.inputs(_cancelling(centres, rng))


def _regions(tree: Controller, number: Number, ends: Ends) -> Regions:
    """Return the regions of the leaves, as often as they are printed."""
    leaves = [(low, high, tree.leaf[i]) for i, low, high in _boxes(tree, number, ends) if tree.feature[i] < 0]
    low, high, row = (np.array(part) for part in zip(*leaves, strict=True))
    center, spread = _range(tree)
    return Regions(tree, number, low, high, row.astype(np.int64), center, spread)


def _cancelling(centres: Doubles, rng: np.random.Generator) -> Doubles:
    """Return points with two numbers whose products overflow or are infinite, so that sums may be NaN."""
    points = centres[rng.integers(len(centres), size=max(1000, len(centres)))]
    for _ in range(2):
        places = rng.integers(points.shape[1], size=len(points))
        points[np.arange(len(points)), places] = rng.choice([np.inf, -np.inf, 1.7e308, -1.7e308], len(points))
    return points


def _batches(kind: str, number: Number, points: Iterator[Corner]) -> Iterator[tuple[str, NDArray[Any]]]:
    rows: list[Corner] = []
    for point in points:
        rows.append(point)
        if len(rows) == CHUNK:
            yield kind, number.inputs(np.array(rows))
            rows = []
    if rows:
        yield kind, number.inputs(np.array(rows))


def leaf_centres(tree: Controller, number: Number, ends: Ends | None = None) -> Iterator[Corner]:
    """Yield the centre of every leaf, as often as it is printed."""
    for node, low, high in _boxes(tree, number, ends):
        if tree.feature[node] < 0:
            yield _middle(number, low, high)


def boundary_points(tree: Controller, number: Number, ends: Ends | None = None) -> Iterator[Corner]:
    """Yield, for any two leaves that meet at a threshold, a point on it and its two neighbours.

    If a threshold between two leaves is moved, one of these points changes sides.
    """
    for node, low, high in _boxes(tree, number, ends):
        j = int(tree.feature[node])
        t = float(tree.threshold[node])
        if j < 0 or not low[j] < t <= high[j]:
            continue
        below = number.neighbour(j, t, upper=False)
        above = number.neighbour(j, t, upper=True)
        for point in _meetings(tree, number, node, _with(low, j, t), _with(high, j, t), below):
            for x in (below, t, above):
                yield _with(point, j, x)


def _meetings(
    tree: Controller, number: Number, node: int, low: Corner, high: Corner, below: float
) -> Iterator[Corner]:
    """Yield a point on each piece of a threshold with one leaf on either side."""
    j = int(tree.feature[node])
    waiting = [(int(tree.left[node]), int(tree.right[node]), low, high)]
    while waiting:
        before, after, low, high = waiting.pop()
        side = before if tree.feature[before] >= 0 else after
        k = int(tree.feature[side])
        t = float(tree.threshold[side])
        if k < 0:
            yield _middle(number, low, high)
            continue
        x = below if side == before else low[j]
        for child, lower in ((int(tree.left[side]), True), (int(tree.right[side]), False)):
            pair = (child, after) if side == before else (before, child)
            if k == j:
                if (x < t) == lower:
                    waiting.append((*pair, low, high))
            elif lower and low[k] < t:
                top = min(high[k], number.neighbour(k, t, upper=False))
                waiting.append((*pair, low, _with(high, k, top)))
            elif not lower and high[k] >= t:
                waiting.append((*pair, _with(low, k, max(low[k], t)), high))


def _boxes(tree: Controller, number: Number, ends: Ends | None) -> Iterator[tuple[int, Corner, Corner]]:
    """Yield every node as it is printed, with the box of inputs that reach it, both ends included.

    For a tree with sums it is a box of all numbers that rules compare.
    """
    sums = [Double()] * len(tree.combinations)
    numbers = [*[number] * tree.dims, *sums]
    corners = zip(ends or _all(number, tree.dims), (-math.inf, math.inf), strict=True)
    first, last = ((*corner, *[x] * len(sums)) for corner, x in corners)
    waiting: list[tuple[int, Corner, Corner]] = [(0, first, last)]
    while waiting:
        node, low, high = waiting.pop()
        yield node, low, high
        j = int(tree.feature[node])
        t = float(tree.threshold[node])
        if j < 0:
            continue
        if high[j] >= t:
            waiting.append((int(tree.right[node]), _with(low, j, max(low[j], t)), high))
        if low[j] < t:
            top = min(high[j], numbers[j].neighbour(j, t, upper=False))
            waiting.append((int(tree.left[node]), low, _with(high, j, top)))


def _with(corner: Corner, j: int, x: float) -> Corner:
    return (*corner[:j], x, *corner[j + 1 :])


def _middle(number: Number, low: Corner, high: Corner) -> Corner:
    return tuple(_between(number, j, a, b) for j, (a, b) in enumerate(zip(low, high, strict=True)))


def _between(number: Number, j: int, a: float, b: float) -> float:
    """Return a number of the machine between two; beyond the last threshold, one near it."""
    if a == b:
        return a
    if a == -math.inf:
        return 0.0 if b == math.inf else min(b, number.up(j, min(-1.0, 2 * b)))
    if b == math.inf:
        return number.up(j, max(1.0, 2 * a))
    return max(a, min(b, number.up(j, a / 2 + b / 2)))


def _special_values(dims: int) -> Doubles:
    """Return rows with NaN in each place, beside finite and infinite numbers, and extreme doubles."""
    rows = []
    for rest in (0.0, math.inf, -math.inf, math.nan, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308):
        rows.append([rest] * dims)
        for j in range(dims):
            for x in (math.nan, math.inf, -math.inf):
                rows.append([x if k == j else rest for k in range(dims)])
    return np.array(rows)


def _range(tree: Controller) -> tuple[Doubles, Doubles]:
    """Return the centre, and half of the width, of the bounds and thresholds of each number."""
    low, high = space_bounds(tree.observation_space)
    endless = unbounded(tree.observation_space)
    ranges = []
    for j in range(len(low)):
        cuts = _finite_cuts(tree, j)
        first, last = (cuts[0], cuts[-1]) if len(cuts) else (-1.0, 1.0)
        if not endless[j]:
            first = min(first, low[j])
            last = max(last, high[j])
        ranges.append((first / 2 + last / 2, max(last / 2 - first / 2, abs(first) * 1e-9, 1e-300)))
    center, spread = zip(*ranges, strict=True)
    return np.array(center), np.array(spread)


def _finite_cuts(tree: Controller, j: int) -> Doubles:
    """Return the thresholds of a number of the observation."""
    if tree.features:
        return np.empty(0)
    return np.unique(tree.threshold[(tree.feature == j) & np.isfinite(tree.threshold)])


def random_points(tree: Controller, n: int, rng: np.random.Generator) -> Doubles:
    """Draw points: uniformly within the bounds, far beyond them, and on the grid of the thresholds."""
    centers, spreads = _range(tree)
    kind = rng.integers(0, 4, (n, 1))
    columns = []
    for j in range(len(centers)):
        cuts = _finite_cuts(tree, j)
        center = centers[j]
        spread = spreads[j]
        with np.errstate(over="ignore", invalid="ignore"):
            evenly = center + spread * rng.uniform(-1.05, 1.05, (2, n))
            beyond = center + spread * rng.standard_cauchy(n)
        near = cuts[rng.integers(len(cuts), size=n)] if len(cuts) else evenly[0]
        columns.append(np.select([kind[:, 0] == 0, kind[:, 0] == 1], [beyond, near], evenly[0]))
    points = np.stack(columns, axis=1)
    return np.where(np.isnan(points), 0.0, points)
