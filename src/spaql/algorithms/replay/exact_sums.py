"""Sums that are reproducible to the last bit on every version of NumPy.

NumPy's sums, `@` and `numpy.linalg` add in an order that depends on its version and on the machine. PlanTree
compares what it computes, so the last bit can change the tree. Here sums are rounded once (`math.fsum`), or
added in a fixed order. All other arithmetic on arrays is elementwise, which IEEE 754 defines to the last bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mean(values: Floats) -> float:
    """Return the mean.

    Examples
    --------
    >>> mean(np.array([0.1] * 10))
    0.1
    """
    return math.fsum(values.tolist()) / len(values)


def deviation(values: Floats, *, ddof: int = 0) -> float:
    """Return the standard deviation, with `ddof` as in NumPy."""
    difference = values - mean(values)
    return math.sqrt(math.fsum((difference * difference).tolist()) / (len(values) - ddof))


def moments(rows: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of each column."""
    columns = rows.T
    return np.array([mean(column) for column in columns]), np.array([deviation(column) for column in columns])


def means(rows: Floats) -> Floats:
    """Return the mean of each row."""
    return np.array([mean(row) for row in rows])


def weighted_sum(numbers: Floats, weights: Floats) -> Floats:
    """Return `numbers @ weights`, added from the first to the last.

    Examples
    --------
    >>> weighted_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    total = np.zeros(numbers.shape[:-1])
    for j, weight in enumerate(weights):
        total = total + numbers[..., j] * weight
    return total
