"""Random episodes of a controller with memory, with what it does at every sample."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.rules import bisect
from spaql.export.machine import Machine
from spaql.export.test_states import branch
from spaql.kernels.controller import HIGH, LARGEST, LAST, LOW
from spaql.kernels.numerics import Floats
from spaql.spaces import space_bounds, unbounded

Bools = NDArray[np.bool_]
_SIDE_BY_SIDE = 1000
_LENGTH = 1000
_RESETS = 0.01
"""Share of the episodes of which a sample is after a reset."""
_BOUNDARIES = 0.2
"""Share of the episodes of which a sample is near a boundary."""
_SPECIAL = 0.03
"""Share of the episodes of which a sample has a special value."""
_BISECT_EVERY = 10
"""Boundaries are looked for in one of so many samples, in many episodes at once."""
_SWITCHES = 0.1
"""Share of the episodes in which manual mode begins or ends at a sample."""
_APPLIED = 0.3
"""Share of the episodes of which a sample tracks an applied action."""
_COMMANDS = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, LARGEST, -LARGEST, 1.1 * LARGEST, 5e-324])
"""Special values of actions given by hand."""


class Compared(NamedTuple):
    """Samples to compare: rows of components, or episodes of rows."""

    resets: Bools
    inputs: NDArray[Any]
    """In the numbers of the machine."""
    commands: NDArray[Any]
    """See `spaql.export.machine.Machine.operate`; without columns in automatic mode."""
    actions: Floats
    states: Floats
    """Those that are wanted; states after each sample, without columns for a controller without memory."""
    counts: Mapping[str, int]


def episodes(machine: Machine, samples: int, seed: int = 0, *, manual: bool = False) -> Iterator[Compared]:
    """Yield random episodes, with what the controller does in them.

    Observations wander, stay, jump within and far beyond their range, and take special values; resets come at
    random; and at some samples an observation is on one side of a boundary at which the leaf, a limit or the
    dead band begins to act, or next to it on the other side, as found by bisection. With `manual`,
    manual mode begins and ends at random, and actions other than those given are applied.
    """
    rng = np.random.default_rng(seed)
    left = samples
    while left > 0:
        rows = min(_SIDE_BY_SIDE, math.isqrt(left))
        steps = min(left // rows, _LENGTH)
        yield _Play(machine, rows, rng, manual).episodes(steps)
        left -= rows * steps


class _Play:
    """Episodes side by side, under construction."""

    def __init__(self, machine: Machine, rows: int, rng: np.random.Generator, manual: bool) -> None:
        self._machine = machine
        self._rng = rng
        self._rows = rows
        self._fresh = machine.arrays.new_memories(rows)
        self._memory = self._fresh.copy()
        endless = unbounded(machine.controller.observation_space)
        low, high = space_bounds(machine.controller.observation_space)
        self._low = np.where(endless, -10.0, low)
        self._high = np.where(endless, 10.0, high)
        self._inputs = self._anywhere()
        # Some episodes are calm, so that integrals reach their limits, and some have no reset.
        self._moves = 10 ** rng.uniform(-2, 0, (rows, 1))
        self._resets = _RESETS * (rng.random(rows) < 0.7)
        self._operator = _Operator(machine, rows, rng) if manual else None

    def episodes(self, steps: int) -> Compared:
        samples = []
        resets = self._rng.random((steps, self._rows)) < self._resets
        resets[0] = True
        counts: Counter[str] = Counter()
        for step in range(steps):
            self._memory = np.where(resets[step][:, np.newaxis], self._fresh, self._memory)
            self._wander()
            sampled = self._inputs.astype(self._machine.number.dtype)
            if step % _BISECT_EVERY == 1:
                counts["samples at boundaries"] += self._to_boundaries(sampled)
            self._specially(sampled)
            commanded = self._commands()
            done, valid = self._machine.operate(sampled, commanded, self._memory)
            counts["samples without a valid reading"] += int((~valid).sum())
            samples.append((resets[step], sampled, commanded, done, self._memory.copy()))
        counts["random samples"] = steps * self._rows - sum(counts.values())
        counts["resets"] = int(resets.sum())
        resets, inputs, commands, actions, states = (
            np.stack(part, axis=1) for part in zip(*samples, strict=True)
        )
        if self._operator is not None:
            manual, track = (part[..., 0] > 0 for part in np.split(commands, 2, axis=2))
            counts["samples in manual mode"] = int(manual.sum())
            counts["samples with tracking"] = int(track.sum())
        return Compared(resets, inputs, commands, actions, states, counts)

    def _commands(self) -> NDArray[Any]:
        if self._operator is None:
            return np.empty((self._rows, 0), self._machine.number.dtype)
        return self._operator.commands(self._memory)

    def _anywhere(self) -> Floats:
        middle = self._low / 2 + self._high / 2
        half = self._high / 2 - self._low / 2
        return middle + 1.05 * half * self._rng.uniform(-1, 1, (self._rows, len(middle)))

    def _wander(self) -> None:
        """Move some observations a little, and some anywhere; the others stay."""
        rng = self._rng
        shape = self._inputs.shape
        kind = np.where(rng.random((self._rows, 1)) < self._moves, rng.random(shape), 0.8)
        step = (self._high - self._low) * rng.normal(size=shape) * 10 ** rng.uniform(-4, -1, shape)
        self._inputs = np.where(kind < 0.6, self._inputs + step, self._inputs)
        self._inputs = np.where(kind > 0.95, self._anywhere(), self._inputs)
        beyond = np.abs(self._inputs) > 10 * np.maximum(np.abs(self._low), np.abs(self._high))
        self._inputs = np.where(beyond, self._anywhere(), self._inputs)

    def _specially(self, inputs: NDArray[Any]) -> None:
        """Replace some observations by special values."""
        rng = self._rng
        ends = np.array(self._machine.ends).ravel()
        edges = [ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)]
        values = np.concatenate([[np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e20, -1e20], *edges])
        rows = np.flatnonzero(rng.random(self._rows) < _SPECIAL)
        with np.errstate(over="ignore"):
            inputs[rows, rng.integers(inputs.shape[1], size=len(rows))] = rng.choice(values, len(rows))

    def _to_boundaries(self, inputs: NDArray[Any]) -> int:
        """Move some observations to a boundary, by bisection; returns how many."""
        rng = self._rng
        rows = np.flatnonzero(rng.random(self._rows) < _BOUNDARIES)
        if not len(rows):
            return 0
        memory = self._memory[rows]
        column = rng.integers(inputs.shape[1], size=len(rows))
        near = inputs[rows]
        other = inputs[rows]
        place = np.arange(len(rows)), column
        other[place] = self._anywhere().astype(inputs.dtype)[rows, column]
        crossed = bisect(lambda batch: branch(self._machine, batch, memory), near, other)
        sides = np.where(rng.random((len(rows), 1)) < 0.5, near, other)
        inputs[rows[crossed]] = sides[crossed]
        return int(crossed.sum())


class _Operator:
    """Switches between manual and automatic mode in many episodes, and applies other actions at random."""

    def __init__(self, machine: Machine, rows: int, rng: np.random.Generator) -> None:
        self._machine = machine
        self._rng = rng
        low, high = machine.arrays.arrays.limit[[LOW, HIGH]]
        self._low = np.maximum(low, -10.0)
        self._high = np.minimum(high, 10.0)
        # Some episodes stay in automatic mode.
        self._absent = rng.random((rows, 1)) < 0.3
        self._manual = np.zeros((rows, 1), np.bool_)
        self._by_hand = self._anywhere(rows)

    def commands(self, memory: Floats) -> NDArray[Any]:
        """Return the commands of a sample (see `spaql.export.machine.Machine.operate`)."""
        rng = self._rng
        rows, width = self._by_hand.shape
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
            return np.hstack([self._manual, self._by_hand, track, applied]).astype(self._machine.number.dtype)

    def _anywhere(self, rows: int) -> Floats:
        """Return actions within and somewhat beyond their range, and some special values."""
        rng = self._rng
        shape = (rows, len(self._low))
        middle = self._low / 2 + self._high / 2
        half = self._high / 2 - self._low / 2
        drawn = middle + 1.3 * half * rng.uniform(-1, 1, shape)
        return np.where(rng.random(shape) < 0.03, rng.choice(_COMMANDS, shape), drawn)
