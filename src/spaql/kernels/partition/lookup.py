"""The greedy policy of a partition as one look-up in raw units.

The balls relevant to a state differ in their actions; which of them has the highest Q depends on the
state alone. So the policy is a tree over the state space, whose leaf names the actions of the greedy ball.
Every dimension is mapped into the cube by an increasing function, so the cube's dyadic boundaries are
thresholds in raw units: a look-up needs no standardisation.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import Fields, njit, njit_no_inline
from spaql.kernels.numerics import Floats, Ints
from spaql.kernels.partition.balls import BITS, Balls, Found, coordinate, cut, new_found, relevant
from spaql.kernels.partition.equations import draw, greedy, middle
from spaql.kernels.partition.standardise import (
    ActionMap,
    StateMap,
    coordinates,
    raw_action,
    standardise,
    standardise_one,
)


class Flat(NamedTuple):
    """Trees over the state space; an inner node has 2^ds children, one for each orthant."""

    roots: NDArray[np.int32]
    """The root of each tree of balls."""
    first_child: NDArray[np.int32]
    """-1 for a leaf."""
    low: Ints
    """First action of a leaf's range in each action dimension."""
    size: Ints
    cut: Floats
    """Where an inner node is cut in each state dimension, in raw units."""


class _Cells(NamedTuple):
    """State cells during the construction of `Flat`: the greedy ball so far, and split balls to search."""

    first_child: NDArray[np.int32]
    place: Ints
    """Index of the cell's centre in each dimension, as a heap: 0, then 1 and 2 for its halves, and so on."""
    low: Ints
    """Actions of the greedy ball so far."""
    size: Ints
    best_q: Floats
    best_place: Ints
    """How many of the cell's split balls come before the greedy ball in the order of actions."""
    first_open: Ints
    """Where the cell's split balls begin."""
    n_open: Ints


@njit
def _begin(balls: Balls, root: int, cells: _Cells, opened: Found) -> int:
    """Begin with one cell, the state space, and the root as its ball; returns the split balls."""
    cells.first_child[0] = -1
    cells.best_q[0] = -np.inf
    cells.best_place[0] = 0
    cells.first_open[0] = 0
    for j in range(cells.place.shape[1]):
        cells.place[0, j] = 0
    for j in range(cells.low.shape[1]):
        cells.low[0, j] = 0
        cells.size[0, j] = balls.action_sizes[j]
        opened.low[0, j] = 0
        opened.size[0, j] = balls.action_sizes[j]
    opened.ball[0] = root
    cells.n_open[0] = 1 if balls.first_child[root] >= 0 else 0
    return int(cells.n_open[0])


@njit
def _lay_over(balls: Balls, root: int, cells: _Cells, opened: Found) -> int:
    """Overlay the trees of a root's actions, breadth first; returns the number of cells.

    The children of a cell's split balls are visited in the order of their actions, with the greedy ball so
    far at its place among them, and an equal Q wins: so of ties the highest action is kept, as in `greedy`.
    Loops over arrays are written out, because a call with array arguments costs more than the work itself.
    """
    first_child = cells.first_child
    place = cells.place
    low = cells.low
    size = cells.size
    state_dims = place.shape[1]
    dims = low.shape[1]
    end = _begin(balls, root, cells, opened)
    n_cells = 1
    cell = 0
    while cell < n_cells:
        if cells.n_open[cell] == 0:
            cell += 1
            continue
        first_child[cell] = n_cells
        for orthant in range(1 << state_dims):
            child = n_cells + orthant
            begin = end
            best_q = -np.inf
            best_place = 0
            for i in range(cells.n_open[cell] + 1):
                if i == cells.best_place[cell] and cells.best_q[cell] >= best_q:
                    best_q = cells.best_q[cell]
                    best_place = end - begin
                    for j in range(dims):
                        low[child, j] = low[cell, j]
                        size[child, j] = size[cell, j]
                if i == cells.n_open[cell]:
                    break
                parent = cells.first_open[cell] + i
                parts = 1
                for j in range(dims):
                    if opened.size[parent, j] > 1:
                        parts *= 2
                first = balls.first_child[opened.ball[parent]] + orthant * parts
                for part in range(parts):
                    ball = first + part
                    if balls.first_child[ball] >= 0:
                        opened.ball[end] = ball
                        left = part
                        for j in range(dims):
                            lowest, length, left = cut(opened.low[parent, j], opened.size[parent, j], left)
                            opened.low[end, j] = lowest
                            opened.size[end, j] = length
                        end += 1
                    elif balls.q[ball] >= best_q:
                        best_q = balls.q[ball]
                        best_place = end - begin
                        left = part
                        for j in range(dims):
                            lowest, length, left = cut(opened.low[parent, j], opened.size[parent, j], left)
                            low[child, j] = lowest
                            size[child, j] = length
            for j in range(state_dims):
                upper = (orthant >> (state_dims - 1 - j)) & 1
                place[child, j] = 2 * place[cell, j] + 1 + upper
            first_child[child] = -1
            cells.first_open[child] = begin
            cells.n_open[child] = end - begin
            cells.best_q[child] = best_q
            cells.best_place[child] = best_place
        n_cells += 1 << state_dims
        cell += 1
    return n_cells


@njit
def _merge(cells: _Cells, n_cells: int, orthants: int) -> None:
    """Make every cell a leaf whose children are leaves with the same actions; children follow parents."""
    for cell in range(n_cells - 1, -1, -1):
        first = cells.first_child[cell]
        if first < 0:
            continue
        same = True
        for child in range(first, first + orthants):
            same = same and cells.first_child[child] < 0
            for j in range(cells.low.shape[1]):
                same = same and cells.low[child, j] == cells.low[first, j]
                same = same and cells.size[child, j] == cells.size[first, j]
            if not same:
                break
        if same:
            cells.first_child[cell] = -1
            for j in range(cells.low.shape[1]):
                cells.low[cell, j] = cells.low[first, j]
                cells.size[cell, j] = cells.size[first, j]


@njit_no_inline
def flatten(balls: Balls, trees: int, state_map: StateMap, known: Floats) -> Flat:
    """Return the greedy policy of a partition as trees over the state space.

    `known` are `thresholds` that were computed before; others are computed here.
    """
    state_dims = state_map.center.shape[0]
    dims = balls.action_sizes.shape[0]
    orthants = 1 << state_dims
    n_split = balls.counts[0] - balls.counts[1]  # each opens one cell at most, and lies in one cell
    room = trees + n_split * orthants
    cells = _Cells(
        np.empty(room, np.int32),
        np.empty((room, state_dims), np.int64),
        np.empty((room, dims), np.int64),
        np.empty((room, dims), np.int64),
        np.empty(room),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )
    opened = new_found(n_split + 1, dims)
    node_of = np.empty(room, np.int32)
    roots = np.empty(trees, np.int32)
    first_child = np.empty(room, np.int32)
    low = np.empty((room, dims), np.int64)
    size = np.empty((room, dims), np.int64)
    cut = np.empty((room, state_dims))
    nodes = 0
    for tree in range(trees):
        n_cells = _lay_over(balls, tree, cells, opened)
        _merge(cells, n_cells, orthants)
        # Keep the reachable cells.
        for cell in range(n_cells):
            node_of[cell] = -1
        roots[tree] = node_of[0] = nodes
        nodes += 1
        for cell in range(n_cells):
            node = node_of[cell]
            if node < 0:
                continue
            for j in range(dims):
                low[node, j] = cells.low[cell, j]
                size[node, j] = cells.size[cell, j]
            first_child[node] = -1
            first = cells.first_child[cell]
            if first < 0:
                continue
            first_child[node] = nodes
            for j in range(state_dims):
                place = cells.place[cell, j]
                cut[node, j] = known[j, place] if place < known.shape[1] else threshold(state_map, j, place)
            for child in range(first, first + orthants):
                node_of[child] = nodes
                nodes += 1
    return Flat(roots, first_child[:nodes], low[:nodes], size[:nodes], cut[:nodes])


@njit
def _from_order(order: int) -> float:
    """Return the float with this rank among all floats: 0.0 has rank 0, its neighbours 1 and -2."""
    bits = np.empty(1, np.int64)
    bits[0] = order if order >= 0 else order ^ 0x7FFFFFFFFFFFFFFF
    return float(bits.view(np.float64)[0])


@njit
def threshold(state_map: StateMap, j: int, place: int) -> float:
    """Return the smallest raw number that dimension j maps to a boundary or beyond.

    Boundaries are numbered as a heap: 0 is the centre of the cube, 1 and 2 those of its halves, and so on.
    The number is found by bisection over all floats, so that comparing with it agrees with standardisation
    to the last bit.
    """
    level = 0
    row = place + 1
    while row > 1:
        row >>= 1
        level += 1
    boundary = (2 * (place + 1 - (1 << level)) + 1) << (BITS - 1 - level)
    infinity = 0x7FF0000000000000
    below = -infinity - 1
    above = infinity
    while below + 1 < above:
        middle = (below >> 1) + (above >> 1) + (below & above & 1)  # their sum may overflow
        if coordinate(standardise_one(state_map, j, _from_order(middle))) >= boundary:
            above = middle
        else:
            below = middle
    return _from_order(above) + 0.0  # no minus zero


@njit
def thresholds(state_map: StateMap, levels: int) -> Floats:
    """Return the first thresholds of every dimension, one row each."""
    table = np.empty((state_map.center.shape[0], (1 << levels) - 1))
    for j in range(table.shape[0]):
        for place in range(table.shape[1]):
            table[j, place] = threshold(state_map, j, place)
    return table


@njit
def find_leaf(flat: Flat, tree: int, raw: Floats, state_dims: int) -> int:
    """Return the leaf of a raw observation.

    With a constant number of dimensions the inner loop is unrolled; an unsigned index avoids the test for a
    negative one.
    """
    node: Any = np.uint64(flat.roots[tree])
    child = flat.first_child[node]
    while child >= 0:
        orthant = 0
        for j in range(state_dims):
            orthant += (1 if raw[j] >= flat.cut[node, j] else 0) << (state_dims - 1 - j)
        node = np.uint64(child + orthant)
        child = flat.first_child[node]
    return node  # type: ignore[no-any-return]


@njit
def central_actions(flat: Flat, action_sizes: Ints, action_map: ActionMap) -> Floats:
    """Return the central raw action of each leaf, one per row."""
    raw = np.empty((flat.low.shape[0], action_sizes.shape[0]))
    for leaf in range(raw.shape[0]):
        for j in range(raw.shape[1]):
            low = flat.low[leaf, j]
            size = flat.size[leaf, j]
            standard = draw(action_sizes[j], low, size, middle(action_sizes[j]))
            raw[leaf, j] = raw_action(action_map, j, standard)
    return raw


@njit
def look_up(fields: Fields, steps: Ints, observations: Floats, leaves: Ints) -> int:
    """Write the leaf of each observation at its time step; past the last tree, that of the last tree.

    Returns how many numbers of the actions are random; or -1 - i if observation i holds NaN.
    """
    flat = Flat(*fields)
    choices = 0
    last = flat.roots.shape[0] - 1
    for i in range(observations.shape[0]):
        for j in range(observations.shape[1]):
            if math.isnan(observations[i, j]):
                return -1 - i
        leaf = find_leaf(flat, min(steps[i], last), observations[i], observations.shape[1])
        leaves[i] = leaf
        for j in range(flat.size.shape[1]):
            choices += 1 if flat.size[leaf, j] > 1 else 0
    return choices


@njit
def redraw(
    flat: Flat,
    action_sizes: Ints,
    action_map: ActionMap,
    leaves: Ints,
    uniforms: Floats,
    raw: Floats,
) -> None:
    """Draw the random numbers of raw actions, each from the next of the uniform numbers."""
    spent = 0
    for i in range(raw.shape[0]):
        for j in range(raw.shape[1]):
            low = flat.low[leaves[i], j]
            size = flat.size[leaves[i], j]
            if size > 1:
                raw[i, j] = raw_action(action_map, j, draw(action_sizes[j], low, size, uniforms[spent]))
                spent += 1


@njit_no_inline
def greedy_balls(balls: Balls, root: int, state_map: StateMap, observations: Floats) -> Ints:
    """Return, for each raw observation, the relevant ball with the highest Q."""
    chosen = np.empty(observations.shape[0], np.int64)
    for i in range(observations.shape[0]):
        found, count = relevant(balls, root, coordinates(standardise(state_map, observations[i])))
        chosen[i] = found.ball[greedy(balls, found, count)]
    return chosen
