"""From a box of starts forwards: all cells that can be reached, for ever or for some steps."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.verify.closed_loop import new_memory, put_box
from spaql.kernels.verify.forms import A
from spaql.kernels.verify.points import play
from spaql.kernels.verify.search import (
    CLOSED,
    OPEN,
    CellRules,
    Reached,
    mark,
    new_desk,
    new_reached,
    spread_out,
)
from spaql.verify.closed_loop import ClosedLoop, box_of
from spaql.verify.prover import Clock, Progress, starts_of
from spaql.verify.statement import Statement

Floats = NDArray[np.float64]

_ROOM = 22
"""Logarithm of the most cells."""
_CHUNK = 2_000
"""Cells that are followed between two looks at the clock."""
_TOGETHER = 256
"""Parts of an image that may wait at a time."""
_SAMPLES = 400
"""Episodes that are played to look for a failure, and for where the states are."""
_PLAYED = 2_000
"""Their steps, to look where the states are."""
ATTEMPTS = ((24, 4), (32, 8), (48, 16), (64, 12), (100, 8), (200, 6))
"""Cells over the played range of each number, and steps of an image, one attempt after the other."""
_AROUND = 2.0
"""Played ranges that cells cover on either side of what was played."""


class ForwardSearch:
    """The cells that a box of starts can come to."""

    def __init__(self, loop: ClosedLoop, statement: Statement, clock: Clock, progress: Progress) -> None:
        self.loop = loop
        self._clock = clock
        self._progress = progress
        self.low, self.high = starts_of(loop, statement)
        self._keep = box_of(loop.names, statement.allowed)
        self._within = statement.within
        self._desk = new_desk(len(loop.names), _TOGETHER)
        self._arrays = loop.arrays
        self._memory = new_memory(self._arrays)
        self._starts = np.zeros((1, len(self.low), A + len(self.low)))
        put_box(self._starts[0], 0, self.low, self.high)
        self.closed = False
        self.steps = 0
        """Steps for which nothing is left, at least."""
        self.cells = 0
        self.proof: dict[str, Any] | None = None
        """What a certificate holds, besides the statement; None if there is none."""
        self._warm()

    @property
    def holds(self) -> bool:
        """Whether the statement is proven: for ever, or for as many steps as it is about."""
        return self.closed or (self._within is not None and self.steps >= self._within)

    def _warm(self) -> None:
        """Compile the kernels, and start the clock after it."""
        reached = new_reached(self.low - 1.0, self.high + 1.0, np.ones(len(self.low), np.int64), 2)
        self._begin(reached)
        spread_out(self._arrays, self._memory, reached, self._rules(1), self._desk, 0)
        self._play(1, 1)
        self._clock.restart()

    def _begin(self, reached: Reached) -> int:
        """Add the cells of the starts."""
        return int(mark(reached, self._starts, 0, self.low, self.high, self._desk.at, self._memory.e))

    def _rules(self, steps: int) -> CellRules:
        return CellRules(False, False, *self._keep, np.full(len(self.low), np.inf), steps, 1, _TOGETHER)

    def _play(self, samples: int, steps: int) -> tuple[Floats, NDArray[np.int64]]:
        """Play the corners of the starts, and starts at random."""
        rng = np.random.default_rng(0)
        starts = rng.uniform(self.low, self.high, (samples, len(self.low)))
        corners = np.array(list(itertools.product(*zip(self.low, self.high, strict=True))))[:samples]
        starts[: len(corners)] = corners
        arrays = self._arrays
        return play(arrays.step, arrays.observe, arrays.tree, starts, steps)

    def failing(self, steps: int, samples: int = _SAMPLES) -> tuple[Floats, float]:
        """Return starts from which episodes leave what is allowed or terminate, and their share."""
        path, ended = self._play(samples, steps)
        inside = np.all((path >= self._keep[0]) & (path <= self._keep[1]), axis=2)
        going_on = np.arange(steps + 1) < np.where(ended < 0, steps + 1, ended)[:, np.newaxis]
        bad = (ended >= 0) | np.any(~inside & going_on, axis=1)
        return path[bad, 0], float(bad.mean())

    def run(self) -> None:
        """Try finer and finer cells until the set of cells is closed, or the time is up."""
        if not np.all((self.low >= self._keep[0]) & (self.high <= self._keep[1])):
            return  # it begins outside of what is allowed
        path, _ = self._play(_SAMPLES, _PLAYED)
        states = path.reshape(-1, len(self.low))
        states = states[np.all(np.isfinite(states), axis=1)]
        low = np.minimum(states.min(axis=0), self.low)
        high = np.maximum(states.max(axis=0), self.high)
        for cells, steps in ATTEMPTS:
            size = (high - low) / cells
            around = _AROUND * (high - low)
            bottom = np.maximum(low - around, self._keep[0]) - size
            top = np.minimum(high + around, self._keep[1]) + size
            self._try(bottom, top, size, steps)
            if self.holds or self._clock.is_up:
                return

    def _try(self, bottom: Floats, top: Floats, size: Floats, steps: int) -> None:
        """Follow cells of a size that cover a box."""
        count = np.ceil((top - bottom) / size).astype(np.int64)
        reached = new_reached(bottom, bottom + count * size, count, _ROOM)
        if self._begin(reached) != OPEN:
            return
        answer = OPEN
        rules = self._rules(steps)
        enough = np.inf if self._within is None else self._within // steps + 2
        while answer == OPEN and reached.state[3] < enough and not self._clock.is_up:
            answer = spread_out(self._arrays, self._memory, reached, rules, self._desk, _CHUNK)
            self._progress(0.0, self._clock.spent / self._clock.seconds)
        rounds = int(reached.state[3])
        done = rounds if answer == CLOSED else max(rounds - 1, 0)
        if answer == CLOSED or done * steps >= self.steps:
            self.steps = done * steps
            self.cells = int(reached.state[0])
        self.closed = answer == CLOSED
        self.reached = reached
        self.image = steps
        if self.closed:
            self.proof = {
                "loop": self.loop,
                "steps": steps,
                "arrays": {
                    "reached": np.sort(reached.queue[: self.cells]),
                    "origin": reached.low,
                    "size": reached.size,
                    "sides": reached.sides,
                    "starts": np.stack([self.low, self.high]),
                    "keep": np.stack(self._keep),
                },
            }
