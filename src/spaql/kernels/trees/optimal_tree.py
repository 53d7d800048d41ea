"""Small decision trees for labelled boxes on a grid: the smallest of all, or a good one.

A box is `low <= place < high` in integers, the intervals between the thresholds of each dimension. Boxes do
not overlap; where there is none, any label is allowed.
"""

import numpy as np

from spaql.kernels.jit import njit, njit_inlined, njit_no_inline
from spaql.kernels.numerics import Ints

_ANY = -1
"""Entry of a box without a label; label l alone is -2 - l, and several labels are a cost."""
_LEAF = 1 << 32
"""The cost of one leaf. The bits below it hold the sum of the leaves' depths, so that of the smallest trees
one with the least sum is chosen."""
NO_LABEL = -1


@njit_inlined
def _cost(entry: int) -> int:
    return entry if entry >= 0 else _LEAF


@njit_inlined
def first_of_length(places: int, length: int) -> int:
    """Return the index of the first interval of a length among so many places; shorter ones come first."""
    return (length - 1) * places - (length - 1) * (length - 2) // 2


@njit_inlined
def box_index(begin: Ints, length: Ints, shape: Ints, strides: Ints) -> int:
    """Return the index of a box in a table."""
    index = 0
    for j in range(shape.shape[0]):
        index += (first_of_length(shape[j], length[j]) + begin[j]) * strides[j]
    return index


@njit_inlined
def halves(
    index: int, begin: Ints, length: Ints, shape: Ints, strides: Ints, j: int, left: int
) -> tuple[int, int]:
    """Return the indices of the parts of a box of which the lower one has `left` places in dimension j."""
    places = shape[j]
    rest = index - (first_of_length(places, length[j]) + begin[j]) * strides[j]
    lower = first_of_length(places, left) + begin[j]
    upper = first_of_length(places, length[j] - left) + begin[j] + left
    return rest + lower * strides[j], rest + upper * strides[j]


@njit_inlined
def divide_box(begin: Ints, length: Ints, node: int, child: int, j: int, cut: int) -> None:
    """Write the boxes of two children of a node, which is cut at a place."""
    for k in range(begin.shape[1]):
        for side in range(2):
            begin[child + side, k] = begin[node, k]
            length[child + side, k] = length[node, k]
    length[child, j] = cut - begin[node, j]
    begin[child + 1, j] = cut
    length[child + 1, j] = length[node, j] - length[child, j]


@njit
def strides_of(shape: Ints) -> Ints:
    """Return the strides of a table with an entry for every box of a grid."""
    strides = np.ones(shape.shape[0], np.int64)
    for j in range(shape.shape[0] - 2, -1, -1):
        strides[j] = strides[j + 1] * (shape[j + 1] * (shape[j + 1] + 1) // 2)
    return strides


@njit
def next_box(begin: Ints, length: Ints, shape: Ints) -> None:
    """Advance to the next box of a grid: dimension by dimension, short intervals before long ones."""
    j = shape.shape[0] - 1
    while j >= 0:
        begin[j] += 1
        if begin[j] + length[j] <= shape[j]:
            break
        begin[j] = 0
        length[j] += 1
        if length[j] <= shape[j]:
            break
        length[j] = 1
        j -= 1


@njit
def _paint(table: Ints, low: Ints, high: Ints, label: Ints, strides: Ints) -> None:
    """Write the boxes' labels for single places, whose intervals are numbered as the places are."""
    dims = low.shape[1]
    place = np.empty(dims, np.int64)
    for box in range(low.shape[0]):
        for k in range(dims):
            place[k] = low[box, k]
        j = dims - 1
        while j >= 0:
            index = 0
            for k in range(dims):
                index += place[k] * strides[k]
            table[index] = -2 - label[box]
            j = dims - 1
            while j >= 0:
                place[j] += 1
                if place[j] < high[box, j]:
                    break
                place[j] = low[box, j]
                j -= 1


@njit_no_inline
def fewest_leaves(low: Ints, high: Ints, label: Ints, shape: Ints) -> Ints:
    """Return the cost of the smallest tree for every box of a grid, by dynamic programming.

    In each dimension, intervals are numbered by length, so that the halves of a box come before it. The table
    has as many entries as the grid has boxes: the product of m (m + 1) / 2 over dimensions of m places.
    """
    dims = shape.shape[0]
    strides = strides_of(shape)
    table = np.full(strides[0] * (shape[0] * (shape[0] + 1) // 2), _ANY, np.int64)
    _paint(table, low, high, label, strides)
    begin = np.zeros(dims, np.int64)
    length = np.ones(dims, np.int64)
    for index in range(table.shape[0]):
        longer = -1  # a dimension in which the box is longer than one place
        for j in range(dims):
            if length[j] > 1:
                longer = j
        if longer >= 0:
            lower, upper = halves(index, begin, length, shape, strides, longer, 1)
            first = table[lower]
            others = table[upper]
            if first < 0 and others < 0 and (first == others or _ANY in (first, others)):
                table[index] = min(first, others)
            else:
                best = 1 << 62
                for j in range(dims):
                    for left in range(1, length[j]):
                        lower, upper = halves(index, begin, length, shape, strides, j, left)
                        best = min(best, _cost(table[lower]) + _cost(table[upper]))
                table[index] = best + best // _LEAF  # every leaf is one level deeper
        next_box(begin, length, shape)
    return table


@njit_no_inline
def smallest_tree(table: Ints, shape: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the smallest tree of the whole grid from the table of `fewest_leaves`.

    For each node, parents first and the root at 0: the dimension, or -1 for a leaf; the first place of the
    upper half, or a leaf's label; and both children.
    """
    dims = shape.shape[0]
    strides = strides_of(shape)
    room = 2 * (_cost(table[table.shape[0] - 1]) // _LEAF) - 1
    feature = np.full(room, -1, np.int64)
    cut = np.zeros(room, np.int64)
    children_left = np.full(room, -1, np.int64)
    children_right = np.full(room, -1, np.int64)
    begin = np.zeros((room, dims), np.int64)
    length = np.zeros((room, dims), np.int64)
    for j in range(dims):
        length[0, j] = shape[j]
    nodes = 1
    for node in range(room):
        index = box_index(begin[node], length[node], shape, strides)
        entry = table[index]
        if entry < 0:
            cut[node] = NO_LABEL if entry == _ANY else -2 - entry
            continue
        for j in range(dims):
            for left in range(1, length[node, j]):
                lower, upper = halves(index, begin[node], length[node], shape, strides, j, left)
                cost = _cost(table[lower]) + _cost(table[upper])
                if feature[node] < 0 and cost + cost // _LEAF == entry:
                    feature[node] = j
                    cut[node] = begin[node, j] + left
        children_left[node] = nodes
        children_right[node] = nodes + 1
        divide_box(begin, length, node, nodes, feature[node], cut[node])
        nodes += 2
    return feature, cut, children_left, children_right


@njit
def _best_cuts(
    low: Ints, high: Ints, label: Ints, members: Ints, region: Ints, counts: Ints, best: Ints
) -> int:
    """Rank the cuts of a region by the number of boxes in both halves, where a pure half counts as one.

    Writes rows of `best` (dimension, place, score), the best first; returns how many.
    """
    n = members.shape[0]
    dims = low.shape[1]
    labels = counts.shape[2]
    kept = 0
    for j in range(dims):
        first = region[0, j]
        places = region[1, j] - region[0, j]
        for part in range(3):
            for place in range(places + 1):
                for k in range(labels):
                    counts[part, place, k] = 0
        for i in range(n):
            box = members[i]
            counts[0, max(low[box, j], first) - first, label[box]] += 1  # boxes that begin here
            counts[1, min(high[box, j], region[1, j]) - first, label[box]] += 1  # and that end here
        left = counts[2, 0]
        right = counts[2, 1]
        for k in range(labels):
            left[k] = 0
            right[k] = 0
        for i in range(n):
            right[label[members[i]]] += 1
        for place in range(1, places):
            edge = False
            n_left = 0
            n_right = 0
            labels_left = 0
            labels_right = 0
            for k in range(labels):
                left[k] += counts[0, place - 1, k]
                right[k] -= counts[1, place, k]
                edge = edge or counts[0, place, k] > 0 or counts[1, place, k] > 0
                n_left = n_left + left[k]
                n_right = n_right + right[k]
                labels_left += 1 if left[k] > 0 else 0
                labels_right += 1 if right[k] > 0 else 0
            if not edge or n_left == 0 or n_right == 0:
                continue
            score = (n_left if labels_left > 1 else 1) + (n_right if labels_right > 1 else 1)
            score = score * (2 * n + 1) + max(n_left, n_right)  # ties: the most balanced
            rank = min(kept, best.shape[0])
            while rank > 0 and best[rank - 1, 2] > score:
                if rank < best.shape[0]:
                    for k in range(3):
                        best[rank, k] = best[rank - 1, k]
                rank -= 1
            if rank < best.shape[0]:
                best[rank, 0] = j
                best[rank, 1] = first + place
                best[rank, 2] = score
                kept = min(kept + 1, best.shape[0])
    return kept


@njit
def _mixed(label: Ints, members: Ints) -> bool:
    mixed = False
    for i in range(members.shape[0]):
        mixed = mixed or label[members[i]] != label[members[0]]
    return mixed


@njit_no_inline
def _greedy_leaves(
    low: Ints, high: Ints, label: Ints, members: Ints, region: Ints, counts: Ints, limit: int
) -> int:
    """Return the number of leaves, up to a limit, of the tree grown greedily by the best cuts."""
    best = np.zeros((1, 3), np.int64)
    waiting = [members]
    regions = [region]
    leaves = 0
    while len(waiting) > 0 and leaves + len(waiting) < limit:
        members = waiting.pop()
        region = regions.pop()
        if not _mixed(label, members):
            leaves += 1
            continue
        _best_cuts(low, high, label, members, region, counts, best)
        j = best[0, 0]
        place = best[0, 1]
        lower = region.copy()
        upper = region.copy()
        lower[1, j] = place
        upper[0, j] = place
        waiting.append(members[low[members, j] < place])
        regions.append(lower)
        waiting.append(members[high[members, j] > place])
        regions.append(upper)
    return leaves + len(waiting)


@njit_no_inline
def best_cut(low: Ints, high: Ints, label: Ints, region: Ints, tries: int) -> tuple[int, int]:
    """Return the cut, among the most promising, after which the greedy tree of a region has fewest leaves.

    The boxes are those of the region, with more than one label. A cut is its dimension and the first place of
    the upper half.
    """
    members = np.arange(low.shape[0])
    longest = max(2, (region[1] - region[0]).max() + 1)
    counts = np.zeros((3, longest, label.max() + 1), np.int64)
    best = np.zeros((tries, 3), np.int64)
    n_cuts = _best_cuts(low, high, label, members, region, counts, best)
    chosen = 0
    fewest = 1 << 62
    for i in range(n_cuts):
        j = best[i, 0]
        place = best[i, 1]
        lower = region.copy()
        upper = region.copy()
        lower[1, j] = place
        upper[0, j] = place
        below = members[low[:, j] < place]
        above = members[high[:, j] > place]
        leaves = _greedy_leaves(low, high, label, below, lower, counts, fewest)
        if leaves < fewest:
            leaves += _greedy_leaves(low, high, label, above, upper, counts, fewest - leaves)
        if leaves < fewest:
            chosen = i
            fewest = leaves
    return best[chosen, 0], best[chosen, 1]
