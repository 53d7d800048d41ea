"""A random operator and random actuators, for the equivalence check of manual mode and tracking."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.export.memory.machine import MemoryMachine
from spaql.kernels.controller import LAST, Floats
from spaql.policy.feature_controller import LARGEST

_SWITCHES, _APPLIED = 0.1, 0.3
"""Shares of the episodes in a sample: manual mode begins or ends, and an applied action is tracked."""
_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, LARGEST, -LARGEST, 1.1 * LARGEST, 5e-324])


class Operator:
    """Switches between manual and automatic mode in many episodes, and applies other actions at random."""

    def __init__(self, machine: MemoryMachine, rows: int, rng: np.random.Generator) -> None:
        self._machine, self._rng = machine, rng
        low, high, *_ = machine.controller.tables.limiter
        self._low, self._high = np.maximum(low, -10.0), np.minimum(high, 10.0)
        # Some episodes stay in automatic mode.
        self._absent = rng.random((rows, 1)) < 0.3
        self._manual = np.zeros((rows, 1), np.bool_)
        self._by_hand = self._anywhere(rows)

    def commands(self, memory: Floats) -> NDArray[Any]:
        """Return the commands of a sample (see `spaql.export.memory.check.Episodes`)."""
        rng, (rows, width) = self._rng, self._by_hand.shape
        self._manual ^= (rng.random((rows, 1)) < _SWITCHES) & ~self._absent
        changed = rng.random((rows, 1)) < _SWITCHES
        self._by_hand = np.where(changed, self._anywhere(rows), self._by_hand)
        last = memory[:, LAST : LAST + width]
        applied = self._anywhere(rows)
        kind = rng.random((rows, 1))
        applied = np.where(kind < 0.7, last + 0.1 * applied, applied)
        applied = np.where(kind < 0.4, np.minimum(last, self._anywhere(rows)), applied)
        applied = np.where(kind < 0.1, last, applied)
        track = (rng.random((rows, 1)) < _APPLIED) & ~self._absent
        with np.errstate(over="ignore"):
            return np.hstack([self._manual, self._by_hand, track, applied]).astype(self._machine.dtype)

    def _anywhere(self, rows: int) -> Floats:
        """Return actions within and somewhat beyond their range, and some special values."""
        rng, shape = self._rng, (rows, len(self._low))
        middle, half = self._low / 2 + self._high / 2, self._high / 2 - self._low / 2
        drawn = middle + 1.3 * half * rng.uniform(-1, 1, shape)
        return np.where(rng.random(shape) < 0.03, rng.choice(_SPECIAL, shape), drawn)
