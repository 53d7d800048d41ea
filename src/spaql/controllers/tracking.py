"""By how much integrals follow an action that others gave: in manual mode, and while it is tracked.

Both are defined by `spaql.program.manual`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from spaql.controllers.controller import Controller
from spaql.kernels.controller import BOUND, INTEGRAL, KIND, LARGEST, LEFT, OBSERVATIONS, ROW, VELOCITY
from spaql.kernels.numerics import Floats

_DEPENDENT = 1e-12
"""Actions whose gains of integrals are dependent to this share of their square cannot be followed apart."""


def tracking_gains(controller: Controller) -> Floats:
    """Return by how much integrals change for a change of each action: nodes × computed features × actions.

    They solve `sum of gain * change of integral = change of action` in each leaf, with the smallest changes
    relative to the limits of the integrals. They are 0 for an action that cannot be followed: that has no
    integral in this leaf, or none that an action before it does not need. In velocity form all are 0: there
    the last action is the integrator.

    Examples
    --------
    >>> from gymnasium.spaces import Box
    >>> from spaql.controllers import Error, Integral
    >>> controller = Controller.of_laws(
    ...     [Error("error", "set-point", "level"), Integral("integral", "error", limit=50.0)],
    ...     {"pump": {"error": 2.0, "integral": 0.5}},
    ...     observation_space=Box(0.0, 1.0, (2,), np.float64),
    ...     action_space=Box(0.0, 10.0, (1,), np.float64),
    ...     observations=("level", "set-point"),
    ...     actions=("pump",),
    ...     sample_time=2.0,
    ... )
    >>> tracking_gains(controller).tolist()
    [[[0.0], [2.0]]]
    """
    arrays, numbers = controller.arrays
    actions = len(controller.actions)
    shifts = np.zeros((len(arrays.node), len(arrays.feature), actions))
    integrals = np.flatnonzero(arrays.feature[:, KIND] == INTEGRAL)
    if arrays.shape[VELOCITY] or not len(integrals):
        return shifts
    limits = arrays.setting[integrals, BOUND].tolist()
    columns = (arrays.shape[OBSERVATIONS] + integrals).tolist()
    for leaf in np.flatnonzero(arrays.node[:, LEFT] < 0).tolist():
        gains = []
        for row in range(arrays.node[leaf, ROW], arrays.node[leaf, ROW] + actions):
            terms = slice(*arrays.span[row : row + 2].tolist())
            gain = dict(zip(arrays.term[terms].tolist(), numbers.weight[terms].tolist(), strict=True))
            gains.append([gain.get(column, 0.0) for column in columns])
        shifts[leaf, integrals] = _smallest_changes(gains, limits)
    return shifts


def _smallest_changes(gains: list[list[float]], limits: list[float]) -> list[list[float]]:
    """Return the pseudo-inverse of gains (actions × integrals), weighted by the squares of the limits.

    It is computed in exact numbers and rounded once, so that it has the same bits on every machine.
    """
    rows = [[Fraction(gain) for gain in row] for row in gains]
    weights = [Fraction(limit) ** 2 for limit in limits]
    weighted = [[w * gain for w, gain in zip(weights, row, strict=True)] for row in rows]
    inverse = _inverse_of_independent([[_product(row, other) for other in weighted] for row in rows])
    columns = zip(*weighted, strict=True)
    most = Fraction(LARGEST)  # a shift beyond it brings any integral to its limit
    return [[float(max(-most, min(most, _product(column, row)))) for row in inverse] for column in columns]


def _product(left: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, other, strict=True)), Fraction(0))


def _inverse_of_independent(gram: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the inverse of a Gram matrix over its independent rows; all else is 0 (Gauss-Jordan)."""
    n = len(gram)
    left = [list(row) for row in gram]
    right = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    kept: list[int] = []
    for k in range(n):
        pivot = left[k][k]
        if pivot <= gram[k][k] * Fraction(_DEPENDENT):
            continue
        kept.append(k)
        for part in (left, right):
            part[k] = [x / pivot for x in part[k]]
        for j in range(n):
            factor = left[j][k]
            if j != k and factor:
                for part in (left, right):
                    part[j] = [x - factor * y for x, y in zip(part[j], part[k], strict=True)]
    return [[right[i][j] if i in kept and j in kept else Fraction(0) for j in range(n)] for i in range(n)]
