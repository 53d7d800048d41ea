"""Learned plants: trees with an affine law of motion in each leaf, for PlanTree.

States are standardised throughout. A forest holds several trees in one set of arrays; the right child of a
node follows its left one.
"""

from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit, njit_inlined, njit_no_inline
from spaql.kernels.numerics import Floats, Ints, principal_axes, solve, sorted_rows

_CUTS = 3
"""Quartiles at which a cell may be cut."""
_ENOUGH = 600
"""Samples by which cuts are compared."""


class PlantEnsemble(NamedTuple):
    """An ensemble of piecewise-affine plants, and the termination tree."""

    roots: Ints
    """Root of each member of the ensemble."""
    feature: Ints
    """The state dimension that a node tests; -1 for a leaf."""
    threshold: Floats
    left: Ints
    law: Floats
    """Nodes × outputs × [1, z, action]; the outputs are the next state and the reward."""
    centre: Floats
    """The mean next state of each cell."""
    axes: Floats
    """The principal axes of the next states of each cell, one per row."""
    low: Floats
    """Range of the next states along each axis."""
    high: Floats
    rewards: Floats
    """The lowest and highest reward seen, and the mean reward of the steps that end an episode."""
    end_feature: Ints
    end_threshold: Floats
    end_left: Ints
    end_chance: Floats
    end_score: Floats
    """Weights of the quadratic score (see `quadratic_score`), which the termination tree tests as one more
    dimension; empty without one."""


@njit_inlined
def find(feature: Ints, threshold: Floats, left: Ints, root: int, z: Floats) -> int:
    """Return the leaf that a state reaches."""
    node = root
    while feature[node] >= 0:
        node = left[node] + (0 if z[feature[node]] < threshold[node] else 1)
    return node


@njit_inlined
def quadratic_score(weights: Floats, state: Floats) -> float:
    """Return the weighted sum of 1, a state's numbers, and their pairwise products; 0 without weights."""
    dims = state.shape[0]
    if weights.shape[0] == 0:
        return 0.0
    score = weights[0]
    term = 1 + dims
    for i in range(dims):
        score += weights[1 + i] * state[i]
        for j in range(i, dims):
            score += weights[term] * state[i] * state[j]
            term += 1
    return float(score)


@njit_inlined
def apply_laws(law: Floats, z: Floats, action: Floats, outputs: Floats) -> None:
    """Write the outputs of the affine laws of a cell."""
    dims = z.shape[0]
    for k in range(outputs.shape[0]):
        value = law[k, 0]
        for j in range(dims):
            value += law[k, 1 + j] * z[j]
        for j in range(action.shape[0]):
            value += law[k, 1 + dims + j] * action[j]
        outputs[k] = value


@njit_inlined
def predict(
    plant: PlantEnsemble, root: int, z: Floats, action: Floats, after: Floats, room: Floats
) -> tuple[float, float, float]:
    """Write the next state to `after`, which may be z itself; `room` is for one number more than a state has.

    Returns the probability that the episode terminates, the expected reward, and by how much the prediction
    was cut: it is kept in the box, along the cell's principal axes, of the next states seen there.
    """
    dims = z.shape[0]
    cell = find(plant.feature, plant.threshold, plant.left, root, z)
    apply_laws(plant.law[cell], z, action, room)
    cut = 0.0
    for k in range(dims):
        after[k] = room[k]
    for k in range(dims):
        along = 0.0
        for j in range(dims):
            along += plant.axes[cell, k, j] * (room[j] - plant.centre[cell, j])
        over = along - min(max(along, plant.low[cell, k]), plant.high[cell, k])
        if over != 0.0:
            cut = max(cut, abs(over))
            for j in range(dims):
                after[j] -= over * plant.axes[cell, k, j]
    score = quadratic_score(plant.end_score, after)
    end = 0
    while plant.end_feature[end] >= 0:
        look = score if plant.end_feature[end] == dims else after[plant.end_feature[end]]
        end = plant.end_left[end] + (0 if look < plant.end_threshold[end] else 1)
    chance = plant.end_chance[end]
    reward = min(max(room[dims], plant.rewards[0]), plant.rewards[1])
    return float(chance), float((1.0 - chance) * reward + chance * plant.rewards[2]), cut


@njit_no_inline
def move(plant: PlantEnsemble, root: Ints, z: Floats, actions: Floats, chance: Floats, cut: Floats) -> None:
    """Overwrite each state by the next one in its plant; also write what `predict` returns.

    That is the probability that an episode terminates, and by how much a prediction was cut.
    """
    room = np.empty(z.shape[1] + 1)
    for i in range(z.shape[0]):
        chance[i], _, cut[i] = predict(plant, root[i], z[i], actions[i], z[i], room)


class Sums(NamedTuple):
    """Sums over the samples (x, y) of each of several parts of a cell."""

    gram: Floats
    """X'X."""
    cross: Floats
    """X'Y."""
    squares: Floats
    """The diagonal of Y'Y."""


@njit
def _add_sample(x: Floats, y: Floats, row: int, sums: Sums, part: int) -> None:
    """Add a sample to the sums of a part; by whole rows, which compilers vectorise."""
    inputs = x[row]
    outputs = y[row]
    for j in range(inputs.shape[0]):
        value = inputs[j]
        gram = sums.gram[part, j]
        cross = sums.cross[part, j]
        for k in range(inputs.shape[0]):
            gram[k] += value * inputs[k]
        for k in range(outputs.shape[0]):
            cross[k] += value * outputs[k]
    squares = sums.squares[part]
    for k in range(outputs.shape[0]):
        squares[k] += outputs[k] * outputs[k]


@njit_no_inline
def _add_part(sums: Sums, part: int, other: int) -> None:
    """Add the sums of another part to those of a part."""
    for j in range(sums.gram.shape[1]):
        for k in range(sums.gram.shape[2]):
            sums.gram[part, j, k] += sums.gram[other, j, k]
        for k in range(sums.cross.shape[2]):
            sums.cross[part, j, k] += sums.cross[other, j, k]
    for k in range(sums.squares.shape[1]):
        sums.squares[part, k] += sums.squares[other, k]


@njit_no_inline
def regress(sums: Sums, part: int, ridge: float, prior: Floats, law: Floats, lower: Floats) -> float:
    """Fit a law to the samples of a part, with a ridge penalty towards a prior law.

    Returns the sum of squared errors. `lower` is room for a square matrix with as many rows as the law.
    """
    gram = sums.gram[part]
    cross = sums.cross[part]
    squares = sums.squares[part]
    inputs, outputs = law.shape
    for j in range(inputs):
        for k in range(outputs):
            predicted = 0.0
            for i in range(inputs):
                predicted += gram[j, i] * prior[i, k]
            law[j, k] = cross[j, k] - predicted
    solve(gram, ridge, law, lower)
    total = 0.0
    for k in range(outputs):
        value = squares[k]
        for j in range(inputs):
            law[j, k] += prior[j, k]
        for j in range(inputs):
            predicted = 0.0
            for i in range(inputs):
                predicted += gram[j, i] * law[i, k]
            value += law[j, k] * (predicted - 2.0 * cross[j, k])
        total += max(value, 0.0)
    return total


@njit_no_inline
def best_cut(
    x: Floats, y: Floats, rows: Ints, first: int, last: int, dims: int, least: int, ridge: float, law: Floats
) -> tuple[int, float]:
    """Return the dimension and quartile whose cut leaves the least squared error; -1 if none is possible."""
    inputs = x.shape[1]
    outputs = y.shape[1]
    stride = max(1, (last - first) // _ENOUGH)
    count = (last - first + stride - 1) // stride
    best = np.inf
    best_dim = -1
    best_at = 0.0
    values = np.empty(count)
    order = np.empty(2 * count, np.int64)
    cuts = np.empty(_CUTS)
    counts = np.empty(_CUTS + 1, np.int64)
    scratch = np.empty((inputs, outputs))
    lower = np.empty((inputs, inputs))
    # Part q holds the samples below cut q, cumulated in the end; part _CUTS + 1 + q those above.
    parts = 2 * _CUTS + 1
    for dim in range(dims):
        sums = Sums(
            np.zeros((parts, inputs, inputs)), np.zeros((parts, inputs, outputs)), np.zeros((parts, outputs))
        )
        for i in range(count):
            values[i] = x[rows[first + i * stride], 1 + dim]
        sorted_rows(values, count, order)
        for q in range(_CUTS):
            cuts[q] = values[order[(count * (q + 1)) // (_CUTS + 1)]]
            counts[q] = 0
        counts[_CUTS] = 0
        for i in range(count):
            part = 0
            while part < _CUTS and values[i] >= cuts[part]:
                part += 1
            counts[part] += 1
            _add_sample(x, y, rows[first + i * stride], sums, part)
        for q in range(_CUTS - 1, -1, -1):
            _add_part(sums, _CUTS + 1 + q, q + 1)
            if q < _CUTS - 1:
                _add_part(sums, _CUTS + 1 + q, _CUTS + 2 + q)
        below = 0
        for q in range(_CUTS):
            below += counts[q]
            if q > 0:
                _add_part(sums, q, q - 1)
            if below * stride < least or (count - below) * stride < least or cuts[q] <= values[order[0]]:
                continue
            error = 0.0
            for side in range(2):
                error += regress(sums, q + side * (_CUTS + 1), ridge, law, scratch, lower)
            if error < best:
                best = error
                best_dim = dim
                best_at = cuts[q]
    return best_dim, best_at


@njit
def divide(x: Floats, rows: Ints, first: int, last: int, column: int, at: float) -> int:
    """Partition rows so that those below a cut come first; returns where the others begin."""
    low = first
    high = last - 1
    while low <= high:
        if x[rows[low], column] < at:
            low += 1
        else:
            rows[low], rows[high] = rows[high], rows[low]
            high -= 1
    return low


@njit_no_inline
def fit_cell(
    x: Floats, y: Floats, rows: Ints, first: int, last: int, ridge: float, prior: Floats, law: Floats
) -> float:
    """Fit the law of a cell with a ridge penalty towards a prior law; returns the sum of squared errors."""
    inputs, outputs = law.shape
    sums = Sums(np.zeros((1, inputs, inputs)), np.zeros((1, inputs, outputs)), np.zeros((1, outputs)))
    for i in range(first, last):
        _add_sample(x, y, rows[i], sums, 0)
    return regress(sums, 0, ridge, prior, law, np.empty((inputs, inputs)))


def grow_motion(
    x: Floats, y: Floats, dims: int, least: int, tolerance: float, ridge: float
) -> tuple[Ints, Floats, Ints, Floats]:
    """Return a tree of affine laws y = x' law, each with a ridge penalty towards its parent's.

    The columns of x are [1, z, action]; cuts are made along z. A cell with fewer than 2 `least` samples, or
    with a mean squared error below the tolerance, is a leaf.
    """
    count, outputs = y.shape
    room = 2 * (count // least) + 3
    feature = np.full(room, -1)
    threshold = np.zeros(room)
    left = np.zeros(room, np.int64)
    law = np.zeros((room, x.shape[1], outputs))
    rows = np.arange(count)
    cells = [(0, count, np.zeros(law.shape[1:]))]
    for node, (first, last, prior) in enumerate(cells):  # which grows
        error = fit_cell(x, y, rows, first, last, ridge, prior, law[node])
        if last - first < 2 * least or error < tolerance * (last - first) * outputs:
            continue
        dim, at = best_cut(x, y, rows, first, last, dims, least, ridge, law[node])
        middle = divide(x, rows, first, last, 1 + dim, at) if dim >= 0 else first
        if middle - first >= least and last - middle >= least:
            feature[node] = dim
            threshold[node] = at
            left[node] = len(cells)
            cells += [(first, middle, law[node]), (middle, last, law[node])]
    nodes = len(cells)
    return feature[:nodes], threshold[:nodes], left[:nodes], law[:nodes]


@njit_no_inline
def find_all(feature: Ints, threshold: Floats, left: Ints, root: int, z: Floats) -> Ints:
    """Return the leaf that each state reaches."""
    leaves = np.empty(z.shape[0], np.int64)
    for i in range(z.shape[0]):
        leaves[i] = find(feature, threshold, left, root, z[i])
    return leaves


@njit_no_inline
def cell_boxes(
    cells: Ints, after: Floats, size: Ints, centre: Floats, axes: Floats, low: Floats, high: Floats
) -> None:
    """Write each cell's number of samples, their mean, principal axes, and the range along each axis.

    `cells` is the cell of each sample. The outputs must be 0, and stay 0 for an empty cell.
    """
    dims = after.shape[1]
    spread = np.zeros((centre.shape[0], dims, dims))
    for i in range(cells.shape[0]):
        size[cells[i]] += 1
        for j in range(dims):
            centre[cells[i], j] += after[i, j]
    for cell in range(centre.shape[0]):
        for j in range(dims):
            centre[cell, j] /= max(size[cell], 1)
    for i in range(cells.shape[0]):
        cell = cells[i]
        for j in range(dims):
            for k in range(dims):
                spread[cell, j, k] += (after[i, j] - centre[cell, j]) * (after[i, k] - centre[cell, k])
    for cell in range(centre.shape[0]):
        principal_axes(spread[cell], axes[cell])
    for i in range(cells.shape[0]):
        cell = cells[i]
        for k in range(dims):
            along = 0.0
            for j in range(dims):
                along += axes[cell, k, j] * (after[i, j] - centre[cell, j])
            low[cell, k] = min(low[cell, k], along)
            high[cell, k] = max(high[cell, k], along)
