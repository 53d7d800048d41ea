"""Value iteration on random partitions of the states seen, and look-ahead, for PlanTree."""

from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit, njit_no_inline
from spaql.kernels.numerics import Floats, Ints, Rng
from spaql.kernels.plantree.pwa_model import PlantEnsemble, divide, find, predict

_HOLDS = 4
"""Options hold an action for 1, 2, 4 or 8 steps."""
_NEGLIGIBLE = 1e-6
"""An episode ends when the discounted probability that it continues is below this."""
_UNKNOWN_PENALTY = 1e6
_BLOCK = 64
"""Points whose options are looked up in one block."""
_TRIES = 8
"""Dimensions that are tried for a cut before a cell is left uncut."""


class ValueCells(NamedTuple):
    """Random partitions of the state space, in one set of arrays."""

    roots: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    points: Ints
    """Points in each cell; the value of an empty cell is unknown."""


class Options(NamedTuple):
    """Outcome of every option (an action and how long it is held) at every planning point."""

    reward: Floats
    """Points × options."""
    discount: Floats
    cell: Ints
    """Points × options × partitions."""


@njit_no_inline
def grow_cells(
    z: Floats,
    low: Floats,
    high: Floats,
    partitions: int,
    least: int,
    coarse: float,
    rng: Rng,
) -> tuple[ValueCells, Ints]:
    """Draw random partitions of a box; returns them, and the cell of each point in each.

    A side longer than that of the box over `coarse` is cut anywhere in its middle half, so that a child may
    be empty; a shorter one is cut within the range of its points.
    """
    points, dims = z.shape
    share = (dims + 1) * points + 64  # nodes per partition; empty children increase with the dimension
    room = partitions * share
    feature = np.empty(room, np.int64)
    threshold = np.zeros(room)
    left = np.zeros(room, np.int64)
    count = np.zeros(room, np.int64)
    roots = np.zeros(partitions, np.int64)
    begin = np.zeros(share, np.int64)
    end = np.zeros(share, np.int64)
    lows = np.zeros((share, dims))
    highs = np.zeros((share, dims))
    member = np.zeros((partitions, points), np.int64)
    rows = np.empty(points, np.int64)
    nodes = 0
    for partition in range(partitions):
        for i in range(points):
            rows[i] = i
        for j in range(dims):
            lows[0, j] = low[j]
            highs[0, j] = high[j]
        roots[partition] = root = node = nodes
        begin[0] = 0
        end[0] = points
        nodes += 1
        while node < nodes:
            own = node - root
            child = nodes - root
            first = begin[own]
            last = end[own]
            feature[node] = -1
            count[node] = last - first
            dim = -1
            at = 0.0
            if last - first >= least and child + 2 <= share:
                dim, at = _random_cut(z, rows, first, last, low, high, lows[own], highs[own], coarse, rng)
            if dim >= 0:
                middle = divide(z, rows, first, last, dim, at)
                feature[node] = dim
                threshold[node] = at
                left[node] = nodes
                for side in range(2):
                    for j in range(dims):
                        lows[child + side, j] = lows[own, j]
                        highs[child + side, j] = highs[own, j]
                    begin[child + side] = first if side == 0 else middle
                    end[child + side] = middle if side == 0 else last
                highs[child, dim] = lows[child + 1, dim] = at
                nodes += 2
            else:
                for i in range(first, last):
                    member[partition, rows[i]] = node
            node += 1
    return ValueCells(roots, feature[:nodes], threshold[:nodes], left[:nodes], count[:nodes]), member


@njit_no_inline
def nearest(z: Floats, points: Floats) -> Ints:
    """Return the row of the state nearest to each point."""
    rows = np.zeros(points.shape[0], np.int64)
    for i in range(points.shape[0]):
        least = np.inf
        for row in range(z.shape[0]):
            squared = 0.0
            for j in range(z.shape[1]):
                squared += (z[row, j] - points[i, j]) ** 2
            if squared < least:
                least = squared
                rows[i] = row
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
    rng: Rng,
) -> tuple[int, float]:
    for _ in range(_TRIES):
        dim = int(rng.random() * z.shape[1])
        side = high[dim] - low[dim]
        if side > (box_high[dim] - box_low[dim]) / coarse:
            return dim, float(low[dim] + side * (0.25 + 0.5 * rng.random()))
        least = np.inf
        most = -np.inf
        for i in range(first, last):
            value = z[rows[i], dim]
            least = min(least, value)
            most = max(most, value)
        at = least + (most - least) * rng.random()
        if most - least > 1e-9 and at > least:
            return dim, at
    return -1, 0.0


@njit_no_inline
def try_options(plant: PlantEnsemble, cells: ValueCells, z: Floats, actions: Floats, gamma: float) -> Options:
    """Return the outcome of holding every action for 1, 2, 4 and 8 steps from every point."""
    points = z.shape[0]
    partitions = cells.roots.shape[0]
    options = actions.shape[0] * _HOLDS
    reward = np.zeros((points, options))
    discount = np.zeros((points, options))
    cell = np.zeros((points, options, partitions), np.int32)
    roots, feature, threshold, left, _ = cells
    after = np.empty((_BLOCK, options, z.shape[1]))
    room = np.empty(z.shape[1] + 1)
    root = plant.roots[0]
    state = np.empty(z.shape[1])
    for first in range(0, points, _BLOCK):
        last = min(first + _BLOCK, points)
        for i in range(first, last):
            for a in range(actions.shape[0]):
                for j in range(z.shape[1]):
                    state[j] = z[i, j]
                total = 0.0
                alive = 1.0
                steps = 0
                for hold in range(_HOLDS):
                    option = a * _HOLDS + hold
                    while steps < 1 << hold:
                        chance, expected, _ = predict(plant, root, state, actions[a], state, room)
                        total += alive * expected
                        alive *= gamma * (1.0 - chance)
                        steps += 1
                    reward[i, option] = total
                    discount[i, option] = alive
                    for j in range(z.shape[1]):
                        after[i - first, option, j] = state[j]
        for m in range(partitions):  # one tree at a time fits in the cache
            for i in range(first, last):
                for option in range(options):
                    node = roots[m]
                    while feature[node] >= 0:  # `find`, written out: a call costs as much
                        value = after[i - first, option, feature[node]]
                        node = left[node] + (0 if value < threshold[node] else 1)
                    cell[i, option, m] = node
    return Options(reward, discount, cell)


@njit_no_inline
def sweep(
    options: Options,
    cells: ValueCells,
    member: Ints,
    point_values: Floats,
    unknown: float,
    optimistic: bool,
    sweeps: int,
    tolerance: float,
) -> Floats:
    """Update the values of the points by sweeps of value iteration; returns the value of every cell.

    V(x) = max over options of the reward + the discount times the mean value of the cells reached; the value
    of a cell is the mean value of its points. If optimistic, an unknown cell has the value `unknown`; else it
    is left out. Ends early when a sweep changes the values by less than a share `tolerance` of the largest.
    """
    points = point_values.shape[0]
    partitions = member.shape[0]
    rewards, discounts, reached = options
    count = cells.points
    value = np.zeros(cells.points.shape[0])
    for done in range(sweeps + 1):
        for cell in range(value.shape[0]):
            value[cell] = 0.0
        for m in range(partitions):
            for i in range(points):
                value[member[m, i]] += point_values[i]
        for cell in range(value.shape[0]):
            value[cell] = value[cell] / count[cell] if count[cell] else unknown
        if done == sweeps:
            break
        change = 0.0
        largest = 1e-9
        for i in range(points):
            best = -np.inf
            for option in range(rewards.shape[1]):
                ahead = rewards[i, option]
                if discounts[i, option] > _NEGLIGIBLE:
                    total = 0.0
                    known = 0
                    for m in range(partitions):
                        cell = reached[i, option, m]
                        if optimistic or count[cell]:
                            total += value[cell]
                            known += 1
                    ahead += discounts[i, option] * (total / known if known else point_values[i])
                best = max(best, ahead)
            change += abs(best - point_values[i])
            point_values[i] = best
            largest = max(largest, abs(best))
        if change / points < tolerance * largest:
            sweeps = done + 1
    return value


@njit_no_inline
def mean_values(cells: ValueCells, value: Floats, optimistic: bool, z: Floats, unknown: float) -> Floats:
    """Return the mean value of the cells that hold each state; `unknown` where there is none to average."""
    roots, feature, threshold, left, count = cells
    means = np.full(z.shape[0], unknown)
    for i in range(z.shape[0]):
        total = 0.0
        known = 0
        for m in range(roots.shape[0]):
            node = find(feature, threshold, left, roots[m], z[i])
            if optimistic or count[node]:
                total += value[node]
                known += 1
        if known:
            means[i] = total / known
    return means


@njit_no_inline
def look_ahead(
    plant: PlantEnsemble,
    cells: ValueCells,
    value: Floats,
    actions: Floats,
    optimistic: bool,
    gamma: float,
    z: Floats,
) -> Floats:
    """Return the value of every action at every state: of its best option, and of the cells it reaches."""
    count = cells.points
    rewards, discounts, reached = try_options(plant, cells, z, actions, gamma)
    q = np.empty((z.shape[0], actions.shape[0]))
    for i in range(z.shape[0]):
        for a in range(actions.shape[0]):
            best = -np.inf
            for option in range(a * _HOLDS, (a + 1) * _HOLDS):
                ahead = rewards[i, option]
                alive = discounts[i, option]
                if alive > _NEGLIGIBLE:
                    total = 0.0
                    known = 0
                    for m in range(reached.shape[2]):
                        cell = reached[i, option, m]
                        if optimistic or count[cell]:
                            total += value[cell]
                            known += 1
                    ahead += alive * total / known if known else -_UNKNOWN_PENALTY
                best = max(best, ahead)
                if alive <= _NEGLIGIBLE:  # longer options end here, too
                    break
            q[i, a] = best
    return q
