"""Values on random partitions of the states seen, and look-ahead on them, for PlanTree."""

from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit, njit_apart
from spaql.kernels.plantree.pwa_model import Floats, Ints, Plant, divide, find, predict

_HOLDS = 4
"""Each action is held for 1, 2, 4 and 8 steps."""
_OVER = 1e-6
"""Below this chance of going on, an episode is over."""
_WORTHLESS = 1e6
_BLOCK = 64
"""Points whose options are looked up together."""
_TRIES = 8
"""Dimensions that are tried for a cut before a cell is left whole."""


class Cells(NamedTuple):
    """Partitions of the state space, in one set of arrays."""

    roots: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    points: Ints
    """Points in each cell; the value of one without any is unknown."""


class Options(NamedTuple):
    """What an action and a hold lead to, for every planning point."""

    reward: Floats
    """Points × options."""
    discount: Floats
    cell: Ints
    """Points × options × partitions."""


@njit_apart
def grow_cells(
    z: Floats,
    low: Floats,
    high: Floats,
    partitions: int,
    least: int,
    coarse: float,
    rng: np.random.Generator,
) -> tuple[Cells, Ints]:
    """Draw random partitions of a box; gives them, and the cell of each point in each.

    While a side is longer than the box's over `coarse`, it is cut anywhere in its middle half, so that a
    child may hold no point; below that, among the points.
    """
    points, dims = z.shape
    share = (dims + 1) * points + 64  # of nodes, for each: cuts beside all points come with dimensions
    room = partitions * share
    feature, threshold, left = np.empty(room, np.int64), np.zeros(room), np.zeros(room, np.int64)
    count, roots = np.zeros(room, np.int64), np.zeros(partitions, np.int64)
    begin, end = np.zeros(share, np.int64), np.zeros(share, np.int64)
    lows, highs = np.zeros((share, dims)), np.zeros((share, dims))
    member = np.zeros((partitions, points), np.int64)
    rows, nodes = np.empty(points, np.int64), 0
    for partition in range(partitions):
        for i in range(points):
            rows[i] = i
        for j in range(dims):
            lows[0, j], highs[0, j] = low[j], high[j]
        roots[partition] = root = node = nodes
        begin[0], end[0] = 0, points
        nodes += 1
        while node < nodes:
            own, child = node - root, nodes - root
            first, last = begin[own], end[own]
            feature[node], count[node] = -1, last - first
            dim, at = -1, 0.0
            if last - first >= least and child + 2 <= share:
                dim, at = _random_cut(z, rows, first, last, low, high, lows[own], highs[own], coarse, rng)
            if dim >= 0:
                middle = divide(z, rows, first, last, dim, at)
                feature[node], threshold[node], left[node] = dim, at, nodes
                for side in range(2):
                    for j in range(dims):
                        lows[child + side, j], highs[child + side, j] = lows[own, j], highs[own, j]
                    begin[child + side] = first if side == 0 else middle
                    end[child + side] = middle if side == 0 else last
                highs[child, dim] = lows[child + 1, dim] = at
                nodes += 2
            else:
                for i in range(first, last):
                    member[partition, rows[i]] = node
            node += 1
    return Cells(roots, feature[:nodes], threshold[:nodes], left[:nodes], count[:nodes]), member


@njit_apart
def nearest(z: Floats, points: Floats) -> Ints:
    """Give the row of the nearest state to each point."""
    rows = np.zeros(points.shape[0], np.int64)
    for i in range(points.shape[0]):
        least = np.inf
        for row in range(z.shape[0]):
            apart = 0.0
            for j in range(z.shape[1]):
                apart += (z[row, j] - points[i, j]) ** 2
            if apart < least:
                least, rows[i] = apart, row
    return rows


@njit
def _random_cut(
    z: Floats,
    rows: Ints,
    first: int,
    last: int,
    box_low: Floats,
    box_high: Floats,
    low: Floats,
    high: Floats,
    coarse: float,
    rng: np.random.Generator,
) -> tuple[int, float]:
    for _ in range(_TRIES):
        dim = int(rng.random() * z.shape[1])
        side = high[dim] - low[dim]
        if side > (box_high[dim] - box_low[dim]) / coarse:
            return dim, float(low[dim] + side * (0.25 + 0.5 * rng.random()))
        least, most = np.inf, -np.inf
        for i in range(first, last):
            value = z[rows[i], dim]
            least, most = min(least, value), max(most, value)
        at = least + (most - least) * rng.random()
        if most - least > 1e-9 and at > least:
            return dim, at
    return -1, 0.0


@njit_apart
def try_options(plant: Plant, cells: Cells, z: Floats, actions: Floats, gamma: float) -> Options:
    """Hold every action for 1, 2, 4 and 8 steps from every point."""
    points, partitions, options = z.shape[0], cells.roots.shape[0], actions.shape[0] * _HOLDS
    reward, discount = np.zeros((points, options)), np.zeros((points, options))
    cell = np.zeros((points, options, partitions), np.int32)
    roots, feature, threshold, left, _ = cells
    after, room, root = np.empty((_BLOCK, options, z.shape[1])), np.empty(z.shape[1] + 1), plant.roots[0]
    state = np.empty(z.shape[1])
    for first in range(0, points, _BLOCK):
        last = min(first + _BLOCK, points)
        for i in range(first, last):
            for a in range(actions.shape[0]):
                for j in range(z.shape[1]):
                    state[j] = z[i, j]
                total, going, steps = 0.0, 1.0, 0
                for hold in range(_HOLDS):
                    option = a * _HOLDS + hold
                    while steps < 1 << hold:
                        chance = predict(plant, root, state, actions[a], state, room)
                        total += going * room[-1]
                        going *= gamma * (1.0 - chance)
                        steps += 1
                    reward[i, option], discount[i, option] = total, going
                    for j in range(z.shape[1]):
                        after[i - first, option, j] = state[j]
        for m in range(partitions):  # one tree at a time stays in the cache
            for i in range(first, last):
                for option in range(options):
                    node = roots[m]
                    while feature[node] >= 0:  # `find`, written out: a call costs as much
                        value = after[i - first, option, feature[node]]
                        node = left[node] + (0 if value < threshold[node] else 1)
                    cell[i, option, m] = node
    return Options(reward, discount, cell)


@njit_apart
def sweep(
    options: Options,
    cells: Cells,
    member: Ints,
    worth: Floats,
    unknown: float,
    optimistic: bool,
    sweeps: int,
    tolerance: float,
) -> Floats:
    """Improve the worth of the points by sweeps of value iteration; gives the value of every cell.

    W(x) = max over options of the reward + the discount times the mean value of the cells reached; the value
    of a cell is the mean worth of its points. Optimists value an unknown cell at `unknown`, others leave it
    out. Ends early when a sweep changes the worth by less than a share `tolerance` of the largest.
    """
    points, partitions = worth.shape[0], member.shape[0]
    rewards, discounts, reached = options
    count = cells.points
    value = np.zeros(cells.points.shape[0])
    for done in range(sweeps + 1):
        for cell in range(value.shape[0]):
            value[cell] = 0.0
        for m in range(partitions):
            for i in range(points):
                value[member[m, i]] += worth[i]
        for cell in range(value.shape[0]):
            value[cell] = value[cell] / count[cell] if count[cell] else unknown
        if done == sweeps:
            break
        change, largest = 0.0, 1e-9
        for i in range(points):
            best = -np.inf
            for option in range(rewards.shape[1]):
                ahead = rewards[i, option]
                if discounts[i, option] > _OVER:
                    total, known = 0.0, 0
                    for m in range(partitions):
                        cell = reached[i, option, m]
                        if optimistic or count[cell]:
                            total += value[cell]
                            known += 1
                    ahead += discounts[i, option] * (total / known if known else worth[i])
                best = max(best, ahead)
            change += abs(best - worth[i])
            worth[i] = best
            largest = max(largest, abs(best))
        if change / points < tolerance * largest:
            sweeps = done + 1
    return value


@njit_apart
def mean_values(cells: Cells, value: Floats, optimistic: bool, z: Floats, unknown: float) -> Floats:
    """Give the mean value of the cells that hold each state; `unknown` where, without hope, none is known."""
    roots, feature, threshold, left, count = cells
    means = np.full(z.shape[0], unknown)
    for i in range(z.shape[0]):
        total, known = 0.0, 0
        for m in range(roots.shape[0]):
            node = find(feature, threshold, left, roots[m], z[i])
            if optimistic or count[node]:
                total += value[node]
                known += 1
        if known:
            means[i] = total / known
    return means


@njit_apart
def look_ahead(
    plant: Plant,
    cells: Cells,
    value: Floats,
    actions: Floats,
    optimistic: bool,
    gamma: float,
    z: Floats,
) -> Floats:
    """Value every action at every state by holding it in the plant, then by the cells it leads to."""
    roots, feature, threshold, left, count = cells
    dims, partitions = z.shape[1], roots.shape[0]
    after, room, root = np.empty(dims), np.empty(dims + 1), plant.roots[0]
    q = np.empty((z.shape[0], actions.shape[0]))
    for i in range(z.shape[0]):
        for a in range(actions.shape[0]):
            best, total, going, steps = -np.inf, 0.0, 1.0, 0
            for j in range(dims):
                after[j] = z[i, j]
            for hold in range(_HOLDS):
                while steps < 1 << hold:
                    chance = predict(plant, root, after, actions[a], after, room)
                    total += going * float(room[dims])
                    going *= gamma * (1.0 - chance)
                    steps += 1
                ahead = total
                if going > _OVER:
                    worth, known = 0.0, 0
                    for m in range(partitions):
                        node = roots[m]
                        while feature[node] >= 0:  # `find`, written out: a call costs as much
                            node = left[node] + (0 if after[feature[node]] < threshold[node] else 1)
                        if optimistic or count[node]:
                            worth += value[node]
                            known += 1
                    ahead += going * worth / known if known else -_WORTHLESS
                best = max(best, ahead)
                if going <= _OVER:
                    break
            q[i, a] = best
    return q
