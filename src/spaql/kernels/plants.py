"""Plants learned from samples: trees whose leaves hold an affine law of motion, for PlanTree.

States are standardised throughout. A forest holds several trees in one set of arrays; the right child of a
node follows its left one.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit, njit_apart

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CUTS = 3
"""Quartiles at which a cell may be cut."""
_ENOUGH = 600
"""Samples by which a cut is judged."""


class Plant(NamedTuple):
    """A forest of piecewise-affine plants, and the tree that says where episodes end."""

    roots: Ints
    """Of each member of the ensemble."""
    feature: Ints
    """The state dimension that a node looks at; -1 for a leaf."""
    threshold: Floats
    left: Ints
    law: Floats
    """Of each leaf, rows on [1, z, action]: the next state, one dimension a row, and the reward."""
    centre: Floats
    """The mean next state of each cell."""
    axes: Floats
    """The principal axes of the next states of each cell, one a row."""
    low: Floats
    """How far next states were seen along each axis."""
    high: Floats
    rewards: Floats
    """The lowest and the highest reward seen, and the mean reward of the step that ends an episode."""
    end_feature: Ints
    end_threshold: Floats
    end_left: Ints
    end_chance: Floats
    end_score: Floats
    """Weights of 1, z, and the products of two of its numbers: what the tree of ends may look at as one more
    dimension; none if it does not."""


@njit
def find(feature: Ints, threshold: Floats, left: Ints, root: int, z: Floats) -> int:
    """Give the leaf of a state."""
    node = root
    while feature[node] >= 0:
        node = left[node] + (0 if z[feature[node]] < threshold[node] else 1)
    return node


@njit
def quadratic_score(weights: Floats, state: Floats) -> float:
    """Sum the weights of 1, a state's numbers, and the products of two of them; 0 without weights."""
    dims = state.shape[0]
    if weights.shape[0] == 0:
        return 0.0
    score, term = weights[0], 1 + dims
    for i in range(dims):
        score += weights[1 + i] * state[i]
        for j in range(i, dims):
            score += weights[term] * state[i] * state[j]
            term += 1
    return float(score)


@njit
def predict(plant: Plant, root: int, z: Floats, action: Floats, after: Floats, room: Floats) -> float:
    """Write the next state, which may be z itself, and into the end of `room` the reward.

    Gives the chance that the episode ends. A prediction stays in the box, along the cell's principal axes, of
    the next states that were seen there.
    """
    dims, inputs = z.shape[0], action.shape[0]
    cell = root
    while plant.feature[cell] >= 0:
        cell = plant.left[cell] + (0 if z[plant.feature[cell]] < plant.threshold[cell] else 1)
    for k in range(dims + 1):
        value = plant.law[cell, k, 0]
        for j in range(dims):
            value += plant.law[cell, k, 1 + j] * z[j]
        for j in range(inputs):
            value += plant.law[cell, k, 1 + dims + j] * action[j]
        room[k] = value
    for k in range(dims):
        after[k] = room[k]
    for k in range(dims):
        along = 0.0
        for j in range(dims):
            along += plant.axes[cell, k, j] * (room[j] - plant.centre[cell, j])
        over = along - min(max(along, plant.low[cell, k]), plant.high[cell, k])
        if over != 0.0:
            for j in range(dims):
                after[j] -= over * plant.axes[cell, k, j]
    score = quadratic_score(plant.end_score, after)
    end = 0
    while plant.end_feature[end] >= 0:
        look = score if plant.end_feature[end] == dims else after[plant.end_feature[end]]
        end = plant.end_left[end] + (0 if look < plant.end_threshold[end] else 1)
    chance = plant.end_chance[end]
    reward = min(max(room[dims], plant.rewards[0]), plant.rewards[1])
    room[dims] = (1.0 - chance) * reward + chance * plant.rewards[2]
    return float(chance)


@njit_apart
def solve(matrix: Floats, ridge: float, right: Floats) -> Floats:
    """Solve (matrix + ridge) x = right for a symmetric, non-negative matrix, by Cholesky's method."""
    n, columns = right.shape
    lower, x = np.zeros((n, n)), right.copy()
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j] + (ridge if i == j else 0.0)
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = math.sqrt(max(total, 1e-12)) if i == j else total / lower[j, j]
    for c in range(columns):
        for i in range(n):
            for k in range(i):
                x[i, c] -= lower[i, k] * x[k, c]
            x[i, c] /= lower[i, i]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                x[i, c] -= lower[k, i] * x[k, c]
            x[i, c] /= lower[i, i]
    return x


@njit
def product(a: Floats, b: Floats) -> Floats:
    """Multiply two matrices: in compiled code `@` would need SciPy, and sum in an order that is not ours."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                total[i, j] += a[i, k] * b[k, j]
    return total


@njit
def towards(gram: Floats, cross: Floats, ridge: float, prior: Floats) -> Floats:
    """Regress with a ridge towards prior coefficients, from sums over samples: X'X and X'Y."""
    return prior + solve(gram, ridge, cross - product(gram, prior))


@njit_apart
def squared_error(gram: Floats, cross: Floats, squares: Floats, law: Floats) -> float:
    """Sum the squared errors of a law over samples, given their sums."""
    predicted = product(gram, law)
    total = 0.0
    for k in range(law.shape[1]):
        value = squares[k]
        for j in range(law.shape[0]):
            value += law[j, k] * (predicted[j, k] - 2.0 * cross[j, k])
        total += max(value, 0.0)
    return total


@njit
def add_sample(x: Floats, y: Floats, gram: Floats, cross: Floats, squares: Floats) -> None:
    """Add a sample to the sums X'X, X'Y and Y'Y; by whole rows, which compilers make quick."""
    for j in range(x.shape[0]):
        value, inputs, outputs = x[j], gram[j], cross[j]
        for k in range(x.shape[0]):
            inputs[k] += value * x[k]
        for k in range(y.shape[0]):
            outputs[k] += value * y[k]
    for k in range(y.shape[0]):
        squares[k] += y[k] * y[k]


@njit_apart
def best_cut(
    x: Floats, y: Floats, rows: Ints, first: int, last: int, dims: int, least: int, ridge: float, law: Floats
) -> tuple[int, float]:
    """Find the quartile of a dimension that leaves the lowest squared error on both sides; -1 if none can."""
    inputs, outputs, stride = x.shape[1], y.shape[1], max(1, (last - first) // _ENOUGH)
    taken = rows[first:last:stride]
    count = taken.shape[0]
    best, best_dim, best_at = np.inf, -1, 0.0
    cuts = np.empty(_CUTS)
    values = np.empty(count)
    for dim in range(dims):
        for i in range(count):
            values[i] = x[taken[i], 1 + dim]
        ordered = np.sort(values)
        for q in range(_CUTS):
            cuts[q] = ordered[(count * (q + 1)) // (_CUTS + 1)]
        grams = np.zeros((_CUTS + 1, inputs, inputs))
        crosses, squares = np.zeros((_CUTS + 1, inputs, outputs)), np.zeros((_CUTS + 1, outputs))
        counts = np.zeros(_CUTS + 1, np.int64)
        for i in range(count):
            part = 0
            while part < _CUTS and values[i] >= cuts[part]:
                part += 1
            counts[part] += 1
            add_sample(x[taken[i]], y[taken[i]], grams[part], crosses[part], squares[part])
        for q in range(_CUTS):
            below = counts[: q + 1].sum()
            if below * stride < least or (count - below) * stride < least or cuts[q] <= ordered[0]:
                continue
            error = 0.0
            for side in range(2):
                begin, end = (0, q + 1) if side == 0 else (q + 1, _CUTS + 1)
                gram, cross, square = grams[begin].copy(), crosses[begin].copy(), squares[begin].copy()
                for part in range(begin + 1, end):
                    gram += grams[part]
                    cross += crosses[part]
                    square += squares[part]
                error += squared_error(gram, cross, square, towards(gram, cross, ridge, law))
            if error < best:
                best, best_dim, best_at = error, dim, cuts[q]
    return best_dim, best_at


@njit
def divide(x: Floats, rows: Ints, first: int, last: int, column: int, at: float) -> int:
    """Order rows so that those below a cut come first; gives where the others begin."""
    low, high = first, last - 1
    while low <= high:
        if x[rows[low], column] < at:
            low += 1
        else:
            rows[low], rows[high] = rows[high], rows[low]
            high -= 1
    return low


@njit_apart
def grow_motion(
    x: Floats, y: Floats, dims: int, least: int, tolerance: float, ridge: float
) -> tuple[Ints, Floats, Ints, Floats]:
    """Grow a tree of affine laws y = x' law, each with a ridge towards its parent's.

    The columns of x are [1, z, action]; cuts are made along z. A cell of less than two times `least` samples,
    or whose mean squared error is below the tolerance, is cut no more.
    """
    count, inputs, outputs = x.shape[0], x.shape[1], y.shape[1]
    room = 2 * (count // least) + 3
    feature, threshold, left = np.full(room, -1), np.zeros(room), np.zeros(room, np.int64)
    law = np.zeros((room, inputs, outputs))
    begin, end = np.zeros(room, np.int64), np.zeros(room, np.int64)
    rows = np.arange(count)
    end[0] = count
    nodes, node = 1, 0
    while node < nodes:
        first, last = begin[node], end[node]
        gram, cross, squares = np.zeros((inputs, inputs)), np.zeros((inputs, outputs)), np.zeros(outputs)
        for i in range(first, last):
            add_sample(x[rows[i]], y[rows[i]], gram, cross, squares)
        law[node] = towards(gram, cross, ridge, law[node])
        size = last - first
        if (
            size >= 2 * least
            and nodes + 2 <= room
            and squared_error(gram, cross, squares, law[node]) >= tolerance * size * outputs
        ):
            dim, at = best_cut(x, y, rows, first, last, dims, least, ridge, law[node])
            if dim >= 0:
                middle = divide(x, rows, first, last, 1 + dim, at)
                if middle - first >= least and last - middle >= least:
                    feature[node], threshold[node], left[node] = dim, at, nodes
                    for side in range(2):
                        law[nodes + side] = law[node]
                        begin[nodes + side] = first if side == 0 else middle
                        end[nodes + side] = middle if side == 0 else last
                    nodes += 2
        node += 1
    return feature[:nodes], threshold[:nodes], left[:nodes], law[:nodes]


@njit_apart
def find_all(feature: Ints, threshold: Floats, left: Ints, root: int, z: Floats) -> Ints:
    """Give the leaf of each state."""
    leaves = np.empty(z.shape[0], np.int64)
    for i in range(z.shape[0]):
        leaves[i] = find(feature, threshold, left, root, z[i])
    return leaves


@njit_apart
def extents(cells: Ints, after: Floats, centre: Floats, axes: Floats, low: Floats, high: Floats) -> None:
    """Widen the range along each axis of each cell to its samples."""
    dims = after.shape[1]
    for i in range(cells.shape[0]):
        cell = cells[i]
        for k in range(dims):
            along = 0.0
            for j in range(dims):
                along += axes[cell, k, j] * (after[i, j] - centre[cell, j])
            low[cell, k] = min(low[cell, k], along)
            high[cell, k] = max(high[cell, k], along)
