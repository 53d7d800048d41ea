"""The exact set of observations for which two controllers act differently, as boxes."""

import math
from dataclasses import dataclass

from spaql.controllers import Controller
from spaql.errors import SettingError


@dataclass(frozen=True)
class Difference:
    """A box of observations, both ends included, with the rows of either tree in the table of laws."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    rows: tuple[int, int]


def differences(one: Controller, other: Controller) -> list[Difference]:
    """Return the observations, including infinite ones, for which two trees over one table differ.

    The boxes do not overlap. They are defined for trees that compare no sums.
    """
    if len(one.combinations) or len(other.combinations):
        raise SettingError("Where trees that compare sums of observations differ is no set of boxes.")
    same = one.same_laws
    found = []
    waiting = [(0, 0, (-math.inf,) * one.dims, (math.inf,) * one.dims)]
    while waiting:
        i, k, low, high = waiting.pop()
        asks = one.feature[i] >= 0
        tree, node = (one, i) if asks else (other, k)
        j = int(tree.feature[node])
        t = float(tree.threshold[node])
        if j < 0:
            rows = int(one.leaf[i]), int(other.leaf[k])
            if same[rows[0]] != same[rows[1]]:
                found.append(Difference(low, high, rows))
            continue
        left = int(tree.left[node])
        right = int(tree.right[node])
        if low[j] < t:
            top = (*high[:j], min(high[j], math.nextafter(t, -math.inf)), *high[j + 1 :])
            waiting.append((left, k, low, top) if asks else (i, left, low, top))
        if high[j] >= t:
            bottom = (*low[:j], max(low[j], t), *low[j + 1 :])
            waiting.append((right, k, bottom, high) if asks else (i, right, bottom, high))
    return found
