"""CMA-ES in kernels, so that a seed gives the same bytes on every machine kind and version of NumPy.

The update is Hansen's (The CMA evolution strategy: a tutorial, 2016) with positive weights; the path of the
step size is whitened by the Cholesky factor instead of the square root (Krause, Arbonès and Igel, 2016).
"""

import math
from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit_no_inline
from spaql.kernels.numerics import Floats, Rng, sorted_rows


class Distribution(NamedTuple):
    """The search distribution, and its evolution paths."""

    mean: Floats
    covariance: Floats
    factor: Floats
    """The lower Cholesky factor of the covariance."""
    path: Floats
    step_path: Floats
    scalars: Floats
    """The step size, and the number of generations."""


def new_distribution(mean: Floats, scale: Floats, step_size: float) -> Distribution:
    """Return a distribution with independent numbers."""
    n = len(mean)
    return Distribution(
        mean.copy(),
        np.diag(scale * scale),
        np.diag(scale),
        np.zeros(n),
        np.zeros(n),
        np.array([step_size, 0.0]),
    )


def population_size(n: int) -> int:
    """Return the size of the population for n numbers."""
    return 8 + int(3 * math.log(max(n, 2)))


@njit_no_inline
def ask(distribution: Distribution, rng: Rng, vectors: Floats) -> None:
    """Draw a generation."""
    n = distribution.mean.shape[0]
    size = distribution.scalars[0]
    z = np.empty(n)
    for c in range(vectors.shape[0]):
        for j in range(n):
            z[j] = rng.standard_normal()
        for j in range(n):
            total = 0.0
            for k in range(j + 1):
                total += distribution.factor[j, k] * z[k]
            vectors[c, j] = distribution.mean[j] + size * total


@njit_no_inline
def tell(distribution: Distribution, vectors: Floats, scores: Floats) -> None:
    """Update the distribution by the scores of a generation, of which the higher are better."""
    count, n = vectors.shape
    parents = count // 2
    mean = distribution.mean
    covariance = distribution.covariance
    factor = distribution.factor
    path = distribution.path
    step_path = distribution.step_path
    scalars = distribution.scalars
    worse = np.empty(count)
    order = np.empty(2 * count, np.int64)
    for c in range(count):
        worse[c] = -scores[c]
    sorted_rows(worse, count, order)
    weights = np.empty(parents)
    total = 0.0
    squares = 0.0
    for i in range(parents):
        weights[i] = math.log(parents + 0.5) - math.log(i + 1.0)
        total += weights[i]
    for i in range(parents):
        weights[i] /= total
        squares += weights[i] * weights[i]
    mass = 1.0 / squares
    rate_path = (4 + mass / n) / (n + 4 + 2 * mass / n)
    rate_step = (mass + 2) / (n + mass + 5)
    rate_one = 2 / ((n + 1.3) ** 2 + mass)
    rate_rank = min(1 - rate_one, 2 * (mass - 2 + 1 / mass) / ((n + 2) ** 2 + mass))
    damping = 1 + 2 * max(0.0, math.sqrt((mass - 1) / (n + 1)) - 1) + rate_step
    expected = math.sqrt(n) * (1 - 1 / (4.0 * n) + 1 / (21.0 * n * n))
    size = scalars[0]
    moves = np.empty((parents, n))
    step = np.zeros(n)
    white = np.empty(n)
    for i in range(parents):
        for j in range(n):
            moves[i, j] = (vectors[order[i], j] - mean[j]) / size
            step[j] += weights[i] * moves[i, j]
    for j in range(n):
        mean[j] += size * step[j]
        value = step[j]
        for k in range(j):
            value -= factor[j, k] * white[k]
        white[j] = value / factor[j, j]
    scalars[1] += 1.0
    length = 0.0
    for j in range(n):
        step_path[j] = (1 - rate_step) * step_path[j] + math.sqrt(rate_step * (2 - rate_step) * mass) * white[
            j
        ]
        length += step_path[j] * step_path[j]
    length = math.sqrt(length)
    settled = math.sqrt(1 - (1 - rate_step) ** (2 * scalars[1]))
    moving = 1.0 if length / settled <= (1.4 + 2.0 / (n + 1)) * expected else 0.0
    kept = 1 - rate_one - rate_rank + (1 - moving) * rate_one * rate_path * (2 - rate_path)
    for j in range(n):
        path[j] = (1 - rate_path) * path[j]
        path[j] += moving * math.sqrt(rate_path * (2 - rate_path) * mass) * step[j]
    for j in range(n):
        for k in range(j + 1):
            value = 0.0
            for i in range(parents):
                value += weights[i] * moves[i, j] * moves[i, k]
            covariance[j, k] = kept * covariance[j, k] + rate_one * path[j] * path[k] + rate_rank * value
            covariance[k, j] = covariance[j, k]
    scalars[0] = size * math.exp(min(1.0, (rate_step / damping) * (length / expected - 1)))
    _decompose(covariance, factor)


@njit_no_inline
def _decompose(covariance: Floats, factor: Floats) -> None:
    """Write the Cholesky factor; a pivot that rounding has made too small is raised."""
    n = covariance.shape[0]
    largest = 0.0
    for j in range(n):
        largest = max(largest, covariance[j, j])
    for j in range(n):
        for k in range(j + 1):
            value = covariance[j, k]
            for i in range(k):
                value -= factor[j, i] * factor[k, i]
            if j == k:
                factor[j, j] = math.sqrt(max(value, 1e-14 * largest))
            else:
                factor[j, k] = value / factor[k, k]
