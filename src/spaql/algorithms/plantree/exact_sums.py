"""Sums that are the same to the last bit whatever library adds them up.

NumPy's sums, `@` and `numpy.linalg` round in an order that depends on its version and on the machine.
PlanTree compares what it computes, so a last bit can become another tree. Here sums are rounded once
(`math.fsum`), or taken in an order that is written out. All other arithmetic on arrays is number by number,
which IEEE 754 defines to the last bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mean(values: Floats) -> float:
    """Return the mean of some numbers.

    Examples
    --------
    >>> mean(np.array([0.1] * 10))
    0.1
    """
    return math.fsum(values.tolist()) / len(values)


def deviation(values: Floats, *, lost: int = 0) -> float:
    """Return the standard deviation, with `lost` degrees of freedom less than there are numbers."""
    apart = values - mean(values)
    return math.sqrt(math.fsum((apart * apart).tolist()) / (len(values) - lost))


def moments(rows: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of each column."""
    columns = rows.T
    return np.array([mean(one) for one in columns]), np.array([deviation(one) for one in columns])


def means(rows: Floats) -> Floats:
    """Return the mean of each row."""
    return np.array([mean(row) for row in rows])


def weighed(numbers: Floats, weights: Floats) -> Floats:
    """Return the sums of the last axis, weighted: `numbers @ weights`, from the first to the last.

    Examples
    --------
    >>> weighed(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    total = np.zeros(numbers.shape[:-1])
    for j, weight in enumerate(weights):
        total = total + numbers[..., j] * weight
    return total
