"""Manual mode and tracking of a controller with memory: actions that others gave, and bumpless transfer.

This module defines both, and exported code is compared with it bit by bit. In manual mode an operator gives
the action (`ManualMode.manual`). In automatic mode a limiter, a selector or a local switch after the
controller may apply another action than it gave (`ManualMode.track`). The memory follows in the same way: the
action counts as the last one, and the integrals are shifted by the difference between the two actions over
their gains (back calculation), so that the law would have given that action.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from spaql.controllers.controller import Controller
from spaql.kernels.controller import (
    BOUND,
    FIRST,
    HIGH,
    INTEGRAL,
    KIND,
    LARGEST,
    LAST,
    LAST_ACTION,
    LEAF,
    LEFT,
    LOW,
    OBSERVATIONS,
    RATE,
    ROW,
    SLOT,
    VELOCITY,
    Floats,
)

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


class ManualMode:
    """Manual mode and tracking of a controller, in several episodes at once, one a row of their memory."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.gains = tracking_gains(controller)
        actions = len(controller.actions)
        self._last = slice(LAST, LAST + actions)
        self._target = slice(LAST + actions, LAST + 2 * actions)

    def manual(self, observations: Floats, manual: Floats, memory: Floats) -> Floats:
        """Take a sample in manual mode: returns the actions, and updates the memory.

        The action is the one given by hand, within the rate limit and the range, without the dead band. One
        that is NaN or beyond 1e30 is not valid: the last action is held. Lags, filters and differences follow
        the observation, and integrals the action, unless what the law asks for differs by more than 1e30.
        """
        before = memory.copy()
        wish = self.controller.computed(observations, memory).wish
        memory[:, self._last] = before[:, self._last]
        actions = self.hold(manual, memory)
        with np.errstate(invalid="ignore"):
            cut = wish - actions
        self._shift(np.where(np.abs(cut) <= LARGEST, cut, 0.0), before, memory)
        for k, slot in self._newest_actions():
            memory[:, slot] = actions[:, k]
        return actions

    def hold(self, manual: Floats, memory: Floats) -> Floats:
        """Return manual actions within the limits, and remember them as the last ones.

        This is all that manual mode does without a valid reading.
        """
        low, high, rate = self.controller.frame.limit[[LOW, HIGH, RATE]]
        last = memory[:, self._last].copy()
        actions = np.where(np.abs(manual) <= LARGEST, manual, last)
        for least, most in ((last - rate, last + rate), (low, high)):
            actions = np.where(actions < least, least, actions)
            actions = np.where(actions > most, most, actions)
        memory[:, self._last] = actions
        memory[:, self._target] = actions
        return actions

    def track(self, applied: Floats, memory: Floats) -> None:
        """Correct the memory where other actions were applied than the last ones given.

        Call it before the next sample. It ignores actions that are NaN or beyond 1e30.
        """
        last = memory[:, self._last].copy()
        other = (np.abs(applied) <= LARGEST) & (np.abs(last) <= LARGEST) & (applied != last)
        wanted = np.where(other, applied, last)
        cut = last - wanted
        self._shift(cut, memory.copy(), memory)
        memory[:, self._last] = wanted
        memory[:, self._target] -= cut
        for k, slot in self._newest_actions():
            memory[:, slot] = np.where(other[:, k], applied[:, k], memory[:, slot])

    def _shift(self, cut: Floats, before: Floats, memory: Floats) -> None:
        """Write the integrals with which the laws ask for less by `cut`, within their limits.

        Without a gain they are as before; so are all before the first sample, when there is no leaf.
        """
        arrays = self.controller.arrays.arrays
        leaf = memory[:, LEAF].astype(np.int64)
        for i in np.flatnonzero(arrays.feature[:, KIND] == INTEGRAL).tolist():
            slot = arrays.feature[i, SLOT]
            bound = arrays.setting[i, BOUND]
            total = before[:, slot]
            for k in range(cut.shape[1]):
                gain = np.where(leaf >= 0, self.gains[leaf, i, k], 0.0)
                total = np.where(gain != 0.0, total - gain * cut[:, k], total)
            memory[:, slot] = np.clip(total, -bound, bound)

    def _newest_actions(self) -> list[tuple[int, int]]:
        """Return the number of the action, and the place of its newest value, of each last action."""
        feature = self.controller.arrays.arrays.feature
        rows = feature[feature[:, KIND] == LAST_ACTION]
        return [(int(component), int(slot)) for component, slot in rows[:, [FIRST, SLOT]]]
