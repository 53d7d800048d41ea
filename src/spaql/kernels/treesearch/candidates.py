"""Candidate controllers of one structure, as arrays.

Inner nodes hold `[threshold, weights]` in their first row: they go left if the weighted sum of the
observation is below the threshold. Leaves hold `[offset, gains]` in each row: of a list of actions the score
of each action, else the law of each number of the action, which is cut to its range.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit_no_inline

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Units(NamedTuple):
    """The units in which numbers are searched: centre and scale of observations and of actions."""

    centre: Floats
    scale: Floats
    action_centre: Floats
    """Of each number of an action; for a list of actions of each score, 0."""
    action_scale: Floats
    """The same: half of the range, or 1."""


@njit_no_inline
def in_raw_units(
    left: Ints, vectors: Floats, place: Ints, fixed: Floats, units: Units, numbers: Floats
) -> None:
    """Write the numbers of candidates in raw units: the free ones from vectors, the others from `fixed`.

    `place` is, for each number of a tree, its index in a vector, or -1. A number that is fixed at 0 stays 0.
    Cuts are divided by their largest weight.
    """
    nodes, rows, width = fixed.shape
    for c in range(vectors.shape[0]):
        for node in range(nodes):
            inner = left[node] >= 0
            for row in range(rows):
                at = place[node, row, 0]
                offset = vectors[c, at] if at >= 0 else fixed[node, row, 0]
                size = 1.0 if inner else units.action_scale[row]
                offset *= size
                for j in range(1, width):
                    at = place[node, row, j]
                    weight = vectors[c, at] if at >= 0 else fixed[node, row, j]
                    weight = weight * size / units.scale[j - 1]
                    numbers[c, node, row, j] = weight
                    if inner:
                        offset += weight * units.centre[j - 1]
                    else:
                        offset -= weight * units.centre[j - 1]
                numbers[c, node, row, 0] = offset if inner else offset + units.action_centre[row]
            if inner:
                largest = 0.0
                for j in range(1, width):
                    largest = max(largest, abs(numbers[c, node, 0, j]))
                if largest > 0.0:
                    for j in range(width):
                        numbers[c, node, 0, j] /= largest
