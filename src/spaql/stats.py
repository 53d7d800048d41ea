"""Statistics of returns: arrays in, numbers out."""

import math

import numpy as np
from numpy.typing import ArrayLike


def mean_ci95(values: ArrayLike) -> tuple[float, float]:
    """Give the mean and the half-width of its 95 % interval, 1.96 s / sqrt(n).

    s is the sample standard deviation; for a single value the half-width is 0.

    Examples
    --------
    >>> mean, half = mean_ci95([1.0, 2.0, 3.0, 4.0])
    >>> round(mean, 3), round(half, 3)
    (2.5, 1.265)
    """
    array = np.asarray(values, np.float64)
    if len(array) < 2:
        return float(array.mean()), 0.0
    return float(array.mean()), float(1.96 * array.std(ddof=1) / math.sqrt(len(array)))
