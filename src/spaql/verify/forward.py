"""From a box of starts forwards: all cells that can be reached, for ever or for some steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.kernels.verify.closed_loop import new_memory, put_box
from spaql.kernels.verify.closure import CLOSED, OPEN, Reached, mark, new_reached, spread_out
from spaql.kernels.verify.forms import A
from spaql.kernels.verify.points import play
from spaql.kernels.verify.search import Rules, new_desk
from spaql.verify.closed_loop import ClosedLoop, box_of
from spaql.verify.prover import Clock, Progress
from spaql.verify.statement import Statement

Floats = NDArray[np.float64]

_ROOM = 22
_CHUNK = 2_000
_TOGETHER = 256
_SAMPLES, _PLAYED = 400, 2_000
ATTEMPTS = ((24, 4), (32, 8), (48, 16), (64, 12), (100, 8), (200, 6))
"""Cells over the played range of each number, and steps of an image, one attempt after the other."""


class ForwardSearch:
    """The cells that a box of starts can come to."""

    def __init__(self, loop: ClosedLoop, statement: Statement, clock: Clock, progress: Progress) -> None:
        self.loop, self._clock, self._progress = loop, clock, progress
        self.low, self.high = box_of(loop.names, statement.starts)
        if not np.all(np.isfinite(self.high - self.low)):
            raise SettingError(f"Give a range of starts of each of {', '.join(loop.names)}.")
        self._keep = box_of(loop.names, statement.allowed)
        self._arrays = loop.arrays
        self._memory = new_memory(self._arrays)
        self._desk = new_desk(len(loop.names), _TOGETHER)
        self.closed = False
        self.steps = 0
        """Steps for which nothing is left, at least."""
        self.cells = 0
        self.attempt = (0, 0)
        self.proof: dict[str, Any] = {}
        """What a certificate holds, besides the statement."""
        self._warm()

    def _warm(self) -> None:
        """Compile the kernels, and start the clock after it."""
        n = len(self.loop.names)
        reached = new_reached(self.low - 1.0, self.high + 1.0, np.ones(n, np.int64), 2)
        self._begin(reached)
        spread_out(self._arrays, self._memory, reached, self._rules(1), self._desk, 0)
        self._play(1, 1)
        self._clock.restart()

    def _begin(self, reached: Reached) -> int:
        """Add the cells of the starts."""
        put_box(self._memory.m, 0, self.low, self.high)
        n = len(self.low)
        self._memory.parts[0] = self._memory.m[:n, : A + n]
        return int(mark(reached, self._memory.parts, 0, self.low, self.high, self._desk.at, self._memory.e))

    def _rules(self, steps: int) -> Rules:
        return Rules(False, *self._keep, np.full(len(self.low), np.inf), steps, 1, _TOGETHER)

    def _play(self, samples: int, steps: int) -> tuple[Floats, NDArray[np.int64]]:
        rng = np.random.default_rng(0)
        starts = rng.uniform(self.low, self.high, (samples, len(self.low)))
        return play(self._arrays.step, self._arrays.observe, self._arrays.tree, starts, steps)

    def failing(self, steps: int, samples: int = _SAMPLES) -> tuple[Floats, float]:
        """Return starts from which episodes leave what is allowed or terminate, and their share."""
        path, ended = self._play(samples, steps)
        inside = np.all((path >= self._keep[0]) & (path <= self._keep[1]), axis=2)
        going_on = np.arange(steps + 1) < np.where(ended < 0, steps + 1, ended)[:, np.newaxis]
        bad = (ended >= 0) | np.any(~inside & going_on, axis=1)
        return path[bad, 0], float(bad.mean())

    def run(self) -> None:
        """Try finer and finer cells until the set of cells is closed, or the time is up."""
        path, _ = self._play(_SAMPLES, _PLAYED)
        low = np.minimum(np.nanmin(path, axis=(0, 1)), self.low)
        high = np.maximum(np.nanmax(path, axis=(0, 1)), self.high)
        for attempt in ATTEMPTS:
            self._try(low, high, *attempt)
            if self.closed or self._clock.is_up:
                return

    def _try(self, low: Floats, high: Floats, cells: int, steps: int) -> None:
        size = (high - low) / cells
        bottom = np.maximum(
            low - 2.0 * (high - low), np.where(np.isfinite(self._keep[0]), self._keep[0], -np.inf)
        )
        top = np.minimum(
            high + 2.0 * (high - low), np.where(np.isfinite(self._keep[1]), self._keep[1], np.inf)
        )
        bottom, top = bottom - size, top + size
        count = np.ceil((top - bottom) / size).astype(np.int64)
        reached = new_reached(bottom, bottom + count * size, count, _ROOM)
        if self._begin(reached) != OPEN:
            return
        answer = OPEN
        while answer == OPEN and not self._clock.is_up:
            answer = spread_out(self._arrays, self._memory, reached, self._rules(steps), self._desk, _CHUNK)
            self._progress(0.0, self._clock.spent / self._clock.seconds)
        rounds = int(reached.state[3])
        done = rounds if answer == CLOSED else max(rounds - 1, 0)
        if answer == CLOSED or done * steps >= self.steps:
            self.steps, self.cells, self.attempt = done * steps, int(reached.state[0]), (cells, steps)
        self.closed = answer == CLOSED
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
