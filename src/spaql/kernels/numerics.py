"""Arithmetic in a fixed order, so that a seed gives the same bits on every machine, NumPy and Python."""

import math

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit, njit_inlined, njit_no_inline

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Rng = np.random.Generator

_ROTATIONS = 50
"""Most sweeps of Jacobi's rotations over all planes; about five suffice."""


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


@njit_no_inline
def sorted_rows(values: Floats, count: int, order: Ints) -> None:
    """Write the indices that sort the first `count` values in ascending order; the sort is stable.

    A merge sort of runs of 1, 2, 4 ... values. `order` has room for twice the count.
    """
    for i in range(count):
        order[i] = i
    source = 0
    target = count
    width = 1
    while width < count:
        first = 0
        while first < count:
            middle = min(first + width, count)
            last = min(first + 2 * width, count)
            left = first
            right = middle
            for place in range(first, last):
                take_left = right == last
                if left < middle and not take_left:
                    take_left = values[order[source + left]] <= values[order[source + right]]
                if take_left:
                    order[target + place] = order[source + left]
                    left += 1
                else:
                    order[target + place] = order[source + right]
                    right += 1
            first = last
        source, target = target, source
        width *= 2
    if source > 0:
        for i in range(count):
            order[i] = order[source + i]


@njit_no_inline
def solve(matrix: Floats, ridge: float, right: Floats, lower: Floats) -> None:
    """Solve (matrix + ridge) x = right for a positive semi-definite matrix, by Cholesky's method.

    The solution overwrites the right side; `lower` is room for the factor.
    """
    n, columns = right.shape
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j] + (ridge if i == j else 0.0)
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = math.sqrt(max(total, 1e-12)) if i == j else total / lower[j, j]
    for c in range(columns):
        for i in range(n):
            for k in range(i):
                right[i, c] -= lower[i, k] * right[k, c]
            right[i, c] /= lower[i, i]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                right[i, c] -= lower[k, i] * right[k, c]
            right[i, c] /= lower[i, i]


@njit
def _rotate(matrix: Floats, axes: Floats, p: int, q: int) -> None:
    """Rotate the plane of two dimensions so that a symmetric matrix has 0 at (p, q); each row is an axis."""
    slope = (matrix[q, q] - matrix[p, p]) / (2.0 * matrix[p, q])
    tangent = 1.0 / (abs(slope) + math.sqrt(slope * slope + 1.0))
    if slope < 0.0:
        tangent = -tangent
    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
    sine = tangent * cosine
    for k in range(matrix.shape[0]):
        one = matrix[k, p]
        other = matrix[k, q]
        matrix[k, p] = cosine * one - sine * other
        matrix[k, q] = sine * one + cosine * other
    for k in range(matrix.shape[0]):
        one = matrix[p, k]
        other = matrix[q, k]
        matrix[p, k] = cosine * one - sine * other
        matrix[q, k] = sine * one + cosine * other
        one = axes[p, k]
        other = axes[q, k]
        axes[p, k] = cosine * one - sine * other
        axes[q, k] = sine * one + cosine * other


@njit_no_inline
def principal_axes(matrix: Floats, axes: Floats) -> None:
    """Write the eigenvectors of a symmetric matrix, one per row, by Jacobi's rotations; destroys the matrix.

    The last bits of a library's would depend on its version.
    """
    n = matrix.shape[0]
    for j in range(n):
        for k in range(n):
            axes[j, k] = 1.0 if j == k else 0.0
    for _ in range(_ROTATIONS):
        aside = 0.0
        size = 0.0
        for p in range(n):
            size += matrix[p, p] * matrix[p, p]
            for q in range(p + 1, n):
                aside += matrix[p, q] * matrix[p, q]
        if aside <= 1e-32 * size:
            break
        for p in range(n):
            for q in range(p + 1, n):
                if matrix[p, q] != 0.0:
                    _rotate(matrix, axes, p, q)


@njit_inlined
def arc_tangent(y: float, x: float) -> float:
    """Return the angle of the point (x, y), from -pi to pi, and 0 for the origin.

    The rational approximation of the Cephes library, with a relative error below 3e-16. It needs basic
    arithmetic only, so that exported code has the same bits, whatever the library of the machine.
    """
    a = -y if y < 0.0 else y
    b = -x if x < 0.0 else x
    if a == 0.0 and b == 0.0:
        return 0.0
    steep = a > b
    t = b / a if steep else a / b
    turned = t > 0.66
    if turned:
        t = (t - 1.0) / (t + 1.0)
    z = t * t
    p = -8.750608600031904122785e-1 * z - 1.615753718733365076637e1
    p = p * z - 7.500855792314704667340e1
    p = p * z - 1.228866684490136173410e2
    p = p * z - 6.485021904942025371773e1
    q = z + 2.485846490142306297962e1
    q = q * z + 1.650270098316988542046e2
    q = q * z + 4.328810604912902668951e2
    q = q * z + 4.853903996359136964868e2
    q = q * z + 1.945506571482613964425e2
    angle = t + t * (z * p / q)
    if turned:
        angle = angle + 0.7853981633974483
    if steep:
        angle = 1.5707963267948966 - angle
    if x < 0.0:
        angle = 3.141592653589793 - angle
    if y < 0.0:
        angle = -angle
    return angle


@njit_inlined
def shorter_way(error: float) -> float:
    """Return the difference of two angles from -pi to pi, the shorter way round."""
    if error > 3.141592653589793:
        return error - 6.283185307179586
    if error < -3.141592653589793:
        return error + 6.283185307179586
    return error
