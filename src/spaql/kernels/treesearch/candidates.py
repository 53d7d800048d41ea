"""Candidate controllers of one structure as arrays, and their scores.

Inner nodes hold `[threshold, weights]` in their first row: they go left if the weighted sum of the
observation is below the threshold. Leaves hold `[offset, gains]` in each row: of a list of actions the score
of each action, else the law of each number of the action, which is cut to its range.
"""

import math
from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit_no_inline
from spaql.kernels.numerics import Floats, Ints, sorted_rows


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


WORST = 4
"""One in so many episodes counts as one of the worst."""


@njit_no_inline
def score_candidates(
    returns: Floats, movement: Floats, price: float, worst_weight: float, scores: Floats
) -> float:
    """Write a score for each candidate; returns how well two halves of the starts agree on them.

    A score is the mean return less the price of movement, mixed with the mean over the worst starts. The
    agreement is the correlation of the scores' means over even and odd starts.
    """
    candidates, starts = returns.shape
    worst = max(1, starts // WORST)
    row = np.empty(starts)
    order = np.empty(2 * starts, np.int64)
    halves = np.zeros((2, candidates))
    for c in range(candidates):
        total = 0.0
        low = 0.0
        for i in range(starts):
            row[i] = returns[c, i] - price * movement[c, i]
            total += row[i]
            halves[i % 2, c] += row[i]
        sorted_rows(row, starts, order)
        for i in range(worst):
            low += row[order[i]]
        scores[c] = (1 - worst_weight) * total / starts + worst_weight * low / worst
    means = np.zeros(2)
    spreads = np.zeros(2)
    shared = 0.0
    for half in range(2):
        for c in range(candidates):
            means[half] += halves[half, c] / candidates
        for c in range(candidates):
            spreads[half] += (halves[half, c] - means[half]) ** 2
    for c in range(candidates):
        shared += (halves[0, c] - means[0]) * (halves[1, c] - means[1])
    scale = math.sqrt(spreads[0] * spreads[1])
    return shared / scale if scale > 0 and math.isfinite(scale) else 0.0
