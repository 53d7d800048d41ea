"""Sorting: one kernel for all, because NumPy's is compiled anew for each kernel that calls it."""

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit_no_inline


@njit_no_inline
def sorted_rows(values: NDArray[np.float64], count: int, order: NDArray[np.int64]) -> None:
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
