"""Scores of candidates, by the returns of their episodes."""

import math

import numpy as np

from spaql.kernels.jit import njit_no_inline
from spaql.kernels.sorting import sorted_rows
from spaql.kernels.treesearch.candidates import Floats

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
