"""Inputs in regions with oblique boundaries: leaves of trees with cuts on sums, and ties of switching laws.

Points of a region are found by projections onto its bounds, one after the other. A boundary is then solved
for one number of the observation, down to two neighbouring numbers of the machine, one on either side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Controller
from spaql.controllers.laws import affine
from spaql.program.numbers import Number

Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]
_STARTS = 4
"""Points from which every region and every boundary is looked for, at least."""
_MOST_STARTS = 24
"""The same at most, for few oblique boundaries."""
_ROUNDS = 100
_CHUNK = 1 << 13
_NEAR = range(-3, 5)
"""Which numbers of the machine about a boundary, which is between 0 and 1, are compared."""


@dataclass(frozen=True, eq=False)
class _Bound:
    """Bounds of a weighted sum, for some of the regions."""

    rows: Rows
    weights: Doubles
    """Regions × numbers of an observation."""
    low: Doubles
    high: Doubles


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions `low <= x <= high` of leaves, where x are the numbers that rules compare."""

    tree: Controller
    number: Number
    low: Doubles
    high: Doubles
    row: Rows
    """Of each leaf in the table of laws."""
    center: Doubles
    """Of the usual range of each number of an observation."""
    spread: Doubles
    """Half of that range."""

    def __len__(self) -> int:
        return len(self.row)

    def part(self, which: NDArray[Any]) -> Regions:
        """Return some of the regions."""
        return replace(self, low=self.low[which], high=self.high[which], row=self.row[which])

    def hold(self, points: Doubles) -> NDArray[np.bool_]:
        """Return whether each region holds its point."""
        x = self.tree.numbers(points)
        return np.asarray(((x >= self.low) & (x <= self.high)).all(axis=1))

    def centres(self, rng: np.random.Generator) -> tuple[Regions, Doubles]:
        """Return the regions in which a point is found, and these points."""
        points = np.zeros((len(self), self.tree.dims))
        missing = np.arange(len(self))
        for start in range(_STARTS):
            part = self.part(missing)
            starts = np.full(len(part), start)
            x = _moved(part, part.start(starts, rng), part.scale(starts), _sums(part))
            x = self.number.values(self.number.inputs(x))
            inside = part.hold(x)
            points[missing[inside]] = x[inside]
            missing = missing[~inside]
        held = np.delete(np.arange(len(self)), missing)
        return self.part(held), points[held]

    def start(self, starts: Rows, rng: np.random.Generator) -> Doubles:
        """Return a point in the box of each region: its centre for the start 0, random ones for others."""
        low = self.low[:, : self.tree.dims]
        high = self.high[:, : self.tree.dims]
        first = np.where(np.isfinite(low), low, np.minimum(self.center - self.spread, high - self.spread))
        last = np.where(np.isfinite(high), high, np.maximum(self.center + self.spread, first + self.spread))
        share = np.where(starts[:, np.newaxis] > 0, rng.random(first.shape), 0.5)
        return np.asarray(first * (1.0 - share) + last * share)

    def scale(self, starts: Rows) -> Doubles:
        """Return how far to move each number of an observation, compared with the others.

        By turns that is the size of the region, at most that of the usual range, and what changes sums alike.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            width = self.high[:, : self.tree.dims] - self.low[:, : self.tree.dims]
        width = np.where(np.isnan(width), 0.0, np.minimum(width, self.spread))
        if not len(self.tree.combinations):
            return width
        mean = np.abs(self.tree.combinations).mean(axis=0)
        alike = 1.0 / np.where(mean > 0.0, mean, 1.0)
        return np.where(starts[:, np.newaxis] % 4 < 2, width, alike)


@dataclass(frozen=True, eq=False)
class _Boundaries:
    """In each region, where two scores are equal: `offset + gain x` of the one and of the other."""

    regions: Regions
    gain: Doubles
    """Regions × 2 × numbers of an observation."""
    offset: Doubles
    least: Doubles
    """What other weighted sums are at least: regions × sums."""
    weights: Doubles
    """Of these sums: regions × sums × numbers of an observation."""

    def part(self, which: NDArray[Any]) -> _Boundaries:
        """Return some of them."""
        arrays = (self.gain, self.offset, self.least, self.weights)
        return _Boundaries(self.regions.part(which), *(array[which] for array in arrays))

    def bounds(self) -> list[_Bound]:
        """Return the bounds of all sums, the boundary itself last."""
        rows = np.arange(len(self.regions))
        equal = self.offset[:, 1] - self.offset[:, 0]
        bounds = _sums(self.regions)
        for i, least in enumerate(self.least.T):
            where = np.flatnonzero(np.isfinite(least))
            bounds.append(_Bound(where, self.weights[where, i], least[where], np.full(len(where), np.inf)))
        return [*bounds, _Bound(rows, self.gain[:, 0] - self.gain[:, 1], equal, equal)]


def cut_points(regions: Regions, numbers: range, rng: np.random.Generator) -> Iterator[Doubles]:
    """Yield points next to the thresholds of some of the numbers that rules compare, on both sides."""
    tree = regions.tree
    ends = [(*_thresholds(regions, j, upper), j, upper) for j in numbers for upper in (False, True)]
    part = regions.part(np.concatenate([np.empty(0, np.int64), *(where for where, *_ in ends)]))
    gain = np.zeros((len(part), 2, tree.dims))
    offset = np.zeros((len(part), 2))
    low = part.low.copy()
    high = part.high.copy()
    begin = 0
    for where, cut, j, upper in ends:
        rows = slice(begin, begin + len(where))
        gain[rows, 0] = np.vstack([np.eye(tree.dims), tree.combinations])[j]
        offset[rows, 1] = cut
        (high if upper else low)[rows, j] = np.inf if upper else -np.inf
        begin += len(where)
    free = replace(part, low=low, high=high)
    boundaries = _Boundaries(free, gain, offset, offset[:, :0], gain[:, :0])
    for which, near in _points(boundaries, rng):
        region = part.part(which)
        kept = region.hold(near[_NEAR.index(0)]) | region.hold(near[_NEAR.index(1)])
        yield near[:, kept].reshape(-1, tree.dims)


def _thresholds(regions: Regions, j: int, upper: bool) -> tuple[Rows, Doubles]:
    """Return which regions have a threshold at one end of a number, and these thresholds."""
    cut = regions.high[:, j] if upper else regions.low[:, j]
    if upper:  # the end is the last number below the threshold
        last = cut.astype(regions.number.dtype if j < regions.tree.dims else np.float64)
        with np.errstate(over="ignore"):
            cut = np.nextafter(last, last.dtype.type(np.inf)).astype(np.float64)
    where = np.flatnonzero(np.isfinite(cut))
    return where, cut[where]


def tie_points(regions: Regions, rng: np.random.Generator) -> Iterator[Doubles]:
    """Yield points next to the boundaries at which switching laws change the action, on both sides."""
    laws = regions.tree.laws
    pairs = np.array(list(combinations(range(laws.offset.shape[1]), 2)), np.int64).reshape(-1, 2)
    differ = (laws.gain[:, pairs[:, 0]] != laws.gain[:, pairs[:, 1]]).any(axis=2)
    differ &= np.isfinite(laws.offset)[:, pairs].all(axis=2)
    places, which = np.nonzero(differ[regions.row])
    part = regions.part(places)
    pair = pairs[which]
    rows = np.arange(len(part))[:, np.newaxis]
    gain = laws.gain[part.row]
    offset = laws.offset[part.row]
    # Where the two scores are equal, no other one may be higher.
    weights = gain[rows, pair[:, :1]] - gain
    least = offset - offset[rows, pair[:, :1]]
    least[rows, pair] = -np.inf
    boundaries = _Boundaries(part, gain[rows, pair], offset[rows, pair], least, weights)
    for solved, near in _points(boundaries, rng):
        region = part.part(solved)
        two = (near[_NEAR.index(0)], near[_NEAR.index(1)])
        with np.errstate(invalid="ignore", over="ignore"):
            actions = [region.tree.computed(x, region.tree.new_memory(len(x))).action[:, 0] for x in two]
        kept = region.hold(two[0]) & region.hold(two[1]) & (actions[0] != actions[1])
        yield near[:, kept].reshape(-1, regions.tree.dims)


def _points(boundaries: _Boundaries, rng: np.random.Generator) -> Iterator[tuple[Rows, Doubles]]:
    """Yield boundaries by their indices, each with points on both sides: `_NEAR` × boundaries × numbers."""
    n = len(boundaries.regions)
    oblique = ((boundaries.gain != 0.0).any(axis=1).sum(axis=1) > 1).any()
    starts = min(max(_STARTS, 1000 // max(n, 1)), _MOST_STARTS) if oblique else _STARTS
    for begin in range(0, n * starts, _CHUNK):
        start, which = np.divmod(np.arange(begin, min(begin + _CHUNK, n * starts)), n)
        solved, near = _solved(boundaries.part(which), start, rng)
        yield which[solved], near


def _solved(boundaries: _Boundaries, starts: Rows, rng: np.random.Generator) -> tuple[Rows, Doubles]:
    """Return which boundaries were found, each from a start, and points on both sides of these."""
    regions = boundaries.regions
    weights = boundaries.gain[:, 0] - boundaries.gain[:, 1]
    used = weights != 0.0
    x = regions.start(starts, rng)
    scale = regions.scale(starts)
    chosen = np.where(used, rng.random(weights.shape), np.inf).argmin(axis=1)
    # A number about 0 has the finest steps, with which scores can be equal to the last bit. At every other
    # start one is held there while the others are moved; at the rest, the finest that results is solved for.
    held = (starts % 2 == 1) & (used.sum(axis=1) > 1)
    rows = np.flatnonzero(held)
    at = chosen[held]
    scale[rows, at] = 0.0
    x[rows, at] = np.clip(0.0, regions.low[rows, at], regions.high[rows, at])
    x = _moved(regions, x, scale, boundaries.bounds())
    step = np.where(used & np.isfinite(x), np.abs(weights) * np.spacing(np.abs(x)), np.inf)
    number = np.where(held, chosen, step.argmin(axis=1))
    return _both_sides(regions.number, x, boundaries.gain, boundaries.offset, number)


def _sums(regions: Regions) -> list[_Bound]:
    """Return the bounds of the sums of each region."""
    bounds = []
    for k, weights in enumerate(regions.tree.combinations, regions.tree.dims):
        low = regions.low[:, k]
        high = regions.high[:, k]
        rows = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        bounds.append(_Bound(rows, np.tile(weights, (len(rows), 1)), low[rows], high[rows]))
    return bounds


def _moved(regions: Regions, x: Doubles, scale: Doubles, bounds: Sequence[_Bound]) -> Doubles:
    """Return points moved onto the bounds of weighted sums in turn, and always into the boxes.

    At first they are moved well within the bounds, as far as there is room.
    """
    low = regions.low[:, : regions.tree.dims]
    high = regions.high[:, : regions.tree.dims]
    x = np.clip(x, low, high)
    lengths = [np.abs(bound.weights * scale[bound.rows]).sum(axis=1) for bound in bounds]
    with np.errstate(all="ignore"):
        for depth in 0.3 * 0.95 ** np.arange(_ROUNDS):
            anything = False
            for bound, length in zip(bounds, lengths, strict=True):
                room = depth * np.minimum((bound.high - bound.low) / 2, length)
                total = (bound.weights * x[bound.rows]).sum(axis=1)
                missing = np.clip(total, bound.low + room, bound.high - room) - total
                left = np.flatnonzero(np.abs(missing) > 1e-12 * length)
                if not len(left):
                    continue
                anything = True
                rows = bound.rows[left]
                missing = missing[left, np.newaxis]
                here = x[rows]
                reach = bound.weights[left] * scale[rows]
                # A number at the end of its box can only move back.
                open_ = np.where(reach * missing > 0.0, here < high[rows], here > low[rows])
                reach = np.where(open_, reach, 0.0)
                step = missing * reach * scale[rows] / (reach * reach).sum(axis=1, keepdims=True)
                x[rows] = np.clip(here + np.where(np.isfinite(step), step, 0.0), low[rows], high[rows])
            if not anything:
                break
    return np.where(np.isnan(x), 0.0, x)


def _both_sides(
    number: Number, x: Doubles, gain: Doubles, offset: Doubles, solved: Rows
) -> tuple[Rows, Doubles]:
    """Solve for one number of each point where the order of two scores changes.

    Returns the indices of the points for which it does, and for these the `_NEAR` numbers of the machine.
    """
    x = number.values(number.inputs(x))
    rows = np.arange(len(x))
    dtype = number.dtype

    def scores(points: Doubles) -> Doubles:
        with np.errstate(invalid="ignore", over="ignore"):
            return affine(offset, gain, points)

    def at(keys: Rows) -> Doubles:
        points = x.copy()
        points[rows, solved] = _number(keys, dtype)
        return points

    def below(keys: Rows) -> NDArray[np.bool_]:
        both = scores(at(keys))
        return np.asarray(both[:, 0] < both[:, 1])

    now = scores(x)
    slope = (gain[:, 0] - gain[:, 1])[rows, solved]
    with np.errstate(all="ignore"):
        near = x[rows, solved] + (now[:, 1] - now[:, 0]) / slope
    last = _key(np.array([np.finfo(dtype).max], dtype))[0]
    center = np.clip(_key(number.inputs(np.where(np.isfinite(near), near, 0.0))), -last, last)
    first = center.copy()
    end = center.copy()
    crossed = np.zeros(len(x), bool)
    for reach in 2 ** np.arange(0, 62, 3):
        lower = np.where(center < reach - last, -last, center - reach)
        upper = np.where(center > last - reach, last, center + reach)
        changes = ~crossed & (below(lower) != below(upper))
        first = np.where(changes, lower, first)
        end = np.where(changes, upper, end)
        crossed |= changes
    side = below(first)
    while (end - first > 1).any():
        middle = first + (end - first) // 2
        same = below(middle) == side
        first = np.where(same, middle, first)
        end = np.where(same, end, middle)
    points = np.stack([at(np.clip(first + step, -last, last)) for step in _NEAR])
    return np.flatnonzero(crossed), points[:, crossed]


def _key(numbers: NDArray[Any]) -> Rows:
    """Return integers in the order of floating-point numbers, one apart for neighbours."""
    kind = np.dtype(f"i{numbers.dtype.itemsize}")
    bits = numbers.view(kind).astype(np.int64)
    return np.where(bits < 0, -(bits - np.iinfo(kind).min), bits)


def _number(keys: Rows, dtype: np.dtype[Any]) -> Doubles:
    """Return the floating-point numbers of such integers."""
    kind = np.dtype(f"i{dtype.itemsize}")
    bits = np.where(keys < 0, np.iinfo(kind).min - keys, keys)
    return np.asarray(bits.astype(kind).view(dtype).astype(np.float64))
