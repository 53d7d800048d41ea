"""Inputs to compare two controllers at: leaf centres, boundaries with their neighbours, random points.

All are numbers of the machine, as are the thresholds of rules that compare single observations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Controller
from spaql.controllers.rules import bisect
from spaql.export.machine import Machine
from spaql.kernels.controller import LAST, LEAF
from spaql.kernels.numerics import Floats
from spaql.program.numbers import NumberType
from spaql.spaces import space_bounds, unbounded

Corner = tuple[float, ...]
Ends = tuple[Corner, Corner]
"""The lowest and the highest inputs of a box, ends included."""
CHUNK = 1 << 17
LEAF_CENTRES = "leaf centres"
BOUNDARIES = "boundaries and their neighbours"
FOUND = "boundaries found by bisection"
_BISECTED = 4_000
"""Pairs of points between which boundaries are looked for in a round."""
_ROUNDS = 3
"""Each starts from what those before it have found."""


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
    sums = len(tree.combinations) > 0
    if not tree.features and not sums:
        yield from _batches(LEAF_CENTRES, number, leaf_centres(tree, number, ends))
        yield from _batches(BOUNDARIES, number, boundary_points(tree, number, ends))
    switches = tree.discrete and not tree.laws.constant.all()
    if (tree.features or sums or switches) and len(found := _found(machine, np.random.default_rng(seed))):
        yield FOUND, found
    yield "NaN and infinities", number.inputs(_special_values(tree, rng))
    if machine.limits is not None:
        yield from _batches("limits and their neighbours", number, _limit_points(machine, tree, rng))
    for begin in range(0, n, CHUNK):
        yield "random points", number.inputs(random_points(tree, min(CHUNK, n - begin), rng))


def _on_grid(machine: Machine) -> Controller:
    """Return the rules with thresholds of observations that are numbers of the machine."""
    tree = machine.controller
    if tree.features:
        return tree
    pairs = zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True)
    return replace(
        tree, threshold=np.array([machine.number.up(t) if 0 <= j < tree.dims else t for j, t in pairs])
    )


def _found(machine: Machine, rng: np.random.Generator) -> NDArray[Any]:
    """Return inputs on both sides of boundaries, as near to these as numbers of the machine can be.

    Pairs of points between which a boundary lies differ in one component, or in all. A round starts from a
    point of each leaf that was found before, so that it comes to leaves that random points rarely hit.
    Numbers about 0 have the finest steps, with which sums come to a threshold to the last bit, in single
    precision too: at last, another component is 0 in each pair, and from the boundary it alone is moved.
    """
    number = machine.number
    memory = machine.arrays.new_memories(_BISECTED)
    starts = number.inputs(random_points(machine.controller, _BISECTED, rng))
    found = starts[:0]
    for _ in range(_ROUNDS):
        first = starts[rng.integers(len(starts), size=_BISECTED)]
        second = number.inputs(random_points(machine.controller, _BISECTED, rng))
        moved = np.arange(first.shape[1]) == rng.integers(first.shape[1], size=(_BISECTED, 1))
        second = np.where(moved | (rng.random((_BISECTED, 1)) < 0.2), second, first)
        crossed = bisect(lambda batch: branch(machine, batch, memory), first, second)
        found = np.concatenate([found, first[crossed], second[crossed]])
        if not len(found):
            break
        decided = branch(machine, found, machine.arrays.new_memories(len(found)))
        starts = found[np.unique(decided, axis=0, return_index=True)[1]]
    if not len(found):
        return found
    order = rng.permuted(np.tile(np.arange(found.shape[1]), (_BISECTED, 1)), axis=1)
    first = np.where(order == 1, found.dtype.type(0), found[rng.integers(len(found), size=_BISECTED)])
    for moved in (order == 0, order == 1):
        second = np.where(moved, number.inputs(random_points(machine.controller, _BISECTED, rng)), first)
        crossed = bisect(lambda batch: branch(machine, batch, memory), first, second)
        found = np.concatenate([found, first[crossed], second[crossed]])
    return np.unique(found, axis=0)


def branch(machine: Machine, inputs: NDArray[Any], memory: Floats) -> Floats:
    """Return what decides about each sample: the leaf, and the discrete action, or the limits that act."""
    after = memory.copy()
    width = machine.width
    if not (machine.remembers or machine.discrete):
        return machine.leaves(inputs)[:, np.newaxis].astype(np.float64)
    actions, wish, _ = machine.sample(inputs, after)
    leaf = after[:, LEAF] if machine.remembers else machine.leaves(inputs)
    if machine.discrete:
        return np.column_stack([leaf, actions])
    last = after[:, LAST : LAST + width]
    target = after[:, LAST + width : LAST + 2 * width]
    return np.column_stack([leaf, np.sign(np.nan_to_num(wish - target)), last == target])


def _valid_ends(machine: Machine) -> Ends:
    """Return the lowest and the highest numbers of the machine that are valid readings."""
    number = machine.number
    low, high = zip(*machine.ends, strict=True)
    beyond = (number.up(math.nextafter(end, math.inf)) for end in high)
    last = (
        number.neighbour(x, upper=False) if end < math.inf else end
        for end, x in zip(high, beyond, strict=True)
    )
    return tuple(map(number.up, low)), tuple(last)


def _limit_points(machine: Machine, tree: Controller, rng: np.random.Generator) -> Iterator[Corner]:
    """Yield points at and next to each limit beyond which the safe action is taken."""
    assert machine.limits is not None
    number = machine.number
    others = random_points(tree, 100, rng)
    for j, limits in enumerate(zip(machine.limits.low, machine.limits.high, strict=True)):
        for limit in filter(math.isfinite, limits):
            near = number.up(limit)
            below, above = (number.neighbour(near, upper=upper) for upper in (False, True))
            for point in others.tolist():
                yield from (_with(tuple(point), j, x) for x in (below, near, above))


def _batches(kind: str, number: NumberType, points: Iterator[Corner]) -> Iterator[tuple[str, NDArray[Any]]]:
    rows: list[Corner] = []
    for point in points:
        rows.append(point)
        if len(rows) == CHUNK:
            yield kind, number.inputs(np.array(rows))
            rows = []
    if rows:
        yield kind, number.inputs(np.array(rows))


def leaf_centres(tree: Controller, number: NumberType, ends: Ends | None = None) -> Iterator[Corner]:
    """Yield the centre of every leaf, as often as it is printed."""
    for node, low, high in _boxes(tree, number, ends):
        if tree.feature[node] < 0:
            yield _middle(number, low, high)


def boundary_points(tree: Controller, number: NumberType, ends: Ends | None = None) -> Iterator[Corner]:
    """Yield, for any two leaves that meet at a threshold, a point on it and its two neighbours.

    If a threshold between two leaves is moved, one of these points changes sides.
    """
    for node, low, high in _boxes(tree, number, ends):
        j = int(tree.feature[node])
        t = float(tree.threshold[node])
        if j < 0 or not low[j] < t <= high[j]:
            continue
        below = number.neighbour(t, upper=False)
        above = number.neighbour(t, upper=True)
        for point in _meetings(tree, number, node, _with(low, j, t), _with(high, j, t), below):
            for x in (below, t, above):
                yield _with(point, j, x)


def _meetings(
    tree: Controller, number: NumberType, node: int, low: Corner, high: Corner, below: float
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
                top = min(high[k], number.neighbour(t, upper=False))
                waiting.append((*pair, low, _with(high, k, top)))
            elif not lower and high[k] >= t:
                waiting.append((*pair, _with(low, k, max(low[k], t)), high))


def _boxes(tree: Controller, number: NumberType, ends: Ends | None) -> Iterator[tuple[int, Corner, Corner]]:
    """Yield every node as it is printed, with the box of inputs that reach it, both ends included."""
    waiting = [(0, *(ends or ((-math.inf,) * tree.dims, (math.inf,) * tree.dims)))]
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
            top = min(high[j], number.neighbour(t, upper=False))
            waiting.append((int(tree.left[node]), low, _with(high, j, top)))


def _with(corner: Corner, j: int, x: float) -> Corner:
    return (*corner[:j], x, *corner[j + 1 :])


def _middle(number: NumberType, low: Corner, high: Corner) -> Corner:
    return tuple(_between(number, a, b) for a, b in zip(low, high, strict=True))


def _between(number: NumberType, a: float, b: float) -> float:
    """Return a number of the machine between two; beyond the last threshold, one near it."""
    if a == b:
        return a
    if a == -math.inf:
        return 0.0 if b == math.inf else min(b, number.up(min(-1.0, 2 * b)))
    if b == math.inf:
        return number.up(max(1.0, 2 * a))
    return max(a, min(b, number.up(a / 2 + b / 2)))


def _special_values(tree: Controller, rng: np.random.Generator) -> Floats:
    """Return rows with NaN, infinities and extreme doubles, in each place and together: sums may be NaN."""
    dims = len(tree.observations)
    rows = []
    for rest in (0.0, math.inf, -math.inf, math.nan, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308):
        rows.append([rest] * dims)
        for j in range(dims):
            for x in (math.nan, math.inf, -math.inf):
                rows.append([x if k == j else rest for k in range(dims)])
    extreme = rng.choice([np.inf, -np.inf, 1.7e308, -1.7e308], (1000, dims))
    usual = random_points(tree, len(extreme), rng)
    return np.vstack([rows, np.where(rng.random(extreme.shape) < 0.5, extreme, usual)])


def _range(tree: Controller) -> tuple[Floats, Floats]:
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


def _finite_cuts(tree: Controller, j: int) -> Floats:
    """Return the thresholds of a number of the observation."""
    if tree.features:
        return np.empty(0)
    return np.unique(tree.threshold[(tree.feature == j) & np.isfinite(tree.threshold)])


def random_points(tree: Controller, n: int, rng: np.random.Generator) -> Floats:
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
