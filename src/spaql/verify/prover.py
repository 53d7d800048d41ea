"""The prover: cells of the state space, proven from coarse to fine, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.kernels.verify.cells import new_cells, set_time
from spaql.kernels.verify.closed_loop import new_memory
from spaql.kernels.verify.points import new_point
from spaql.kernels.verify.search import CellRules, estimate, follow_cells, middles, new_desk
from spaql.verify.closed_loop import ClosedLoop, box_of, check_box
from spaql.verify.statement import Statement
from spaql.verify.verdict import PROVEN, REFUTED, UNDECIDED

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Progress = Callable[[float, float], object]
"""Called with the share that is proven so far and the share of the time that is spent."""

LEVELS = {1: 10, 2: 11, 3: 7, 4: 5, 5: 4}
"""Halvings of the box along each state variable, by how many there are."""
COARSEST = 26
"""Level of the coarsest cells that are tried."""
_STEPS = 40
"""Most steps in which the image of a cell has to come to other cells."""
_TOGETHER = 64
"""Parts of an image that may wait at a time."""
_WIDEST = 0.1
"""Share of the box that a set may span."""
_CHUNK = 500
"""Cells that are followed between two looks at the clock."""
_FOR_EVER = 10**6
"""Steps that no search comes to."""
_AFTER = 200
"""Steps after the limit in which a played state may leave a target where it has to stay."""
_GAIN = 0.1
"""Share of the hopeful cells of a level that must be proven in a round for another round."""
_PLAYED = 20_000
"""Most starts that are played to refute what is not proven."""
_SECONDS_TO_PLAY = 2.0
"""Least processor time in which they are played."""


class Clock:
    """Processor time of this process since it was made, and its limit."""

    def __init__(self, seconds: float) -> None:
        self._began = time.process_time()
        self.seconds = seconds

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return time.process_time() - self._began

    @property
    def is_up(self) -> bool:
        """Whether the time is up."""
        return self.spent >= self.seconds

    def restart(self) -> None:
        """Count from now on."""
        self._began = time.process_time()


class BackwardSearch:
    """Cells of the statement's box, from which it is proven, refuted or undecided."""

    def __init__(
        self, loop: ClosedLoop, statement: Statement, levels: int | None, clock: Clock, progress: Progress
    ) -> None:
        self._clock = clock
        self._progress = progress
        self.loop = loop
        self._arrays = loop.arrays
        self._memory = new_memory(self._arrays)
        self._point = new_point(self._arrays.step, self._arrays.observe)
        n = len(loop.names)
        low, high = starts_of(loop, statement)
        self.levels = levels or LEVELS.get(n, 3)
        period = self._arrays.period
        turns = (period > 0.0) & (np.abs(high - low - period) < 1e-9 * np.maximum(period, 1.0))
        self.cells = new_cells(low, high, turns, self.levels)
        self._desk = new_desk(n, _TOGETHER)
        self._keep = box_of(loop.names, statement.allowed)
        home = box_of(loop.names, statement.target or {})
        self._home = np.maximum(home[0], self._keep[0]), np.minimum(home[1], self._keep[1])
        self._statement = statement
        self._reaches = statement.reaches
        self._to_the_end = statement.lasts or (statement.forward and self._reaches)
        """Whether cells are followed to the end, in place of an image of some steps."""
        self._steps = statement.within if self._to_the_end and statement.within is not None else _STEPS
        self.finished = True
        self._boxes: list[tuple[int, Ints]] = []
        """Cells that were followed with success, by level."""
        self._core: list[tuple[int, Ints]] = []
        """Cells that stay at home for ever."""
        self._warm()

    def _rules(self, keep: tuple[Floats, Floats], limit: int) -> CellRules:
        widest = _WIDEST * (self.cells.high - self.cells.low)
        if self._to_the_end:  # which may be far away from the starts
            widest = np.full(len(widest), np.inf)
        goal = self._statement.termination == "goal"
        return CellRules(goal, self._statement.lasts, *keep, widest, self._steps, limit, _TOGETHER)

    def _warm(self) -> None:
        """Compile the kernels, and start the clock after it."""
        nothing = np.empty(0, np.int64)
        rules = self._rules(self._keep, 1)
        self._follow(rules, 0, nothing, dropping=False)
        self._estimate(rules, 0, nothing, 0.0)
        self._clock.restart()

    def _follow(self, rules: CellRules, level: int, chosen: Ints, *, dropping: bool) -> int:
        """Follow cells; see `follow_cells`."""
        return int(
            follow_cells(self._arrays, self._memory, self.cells, rules, self._desk, level, chosen, dropping)
        )

    def _estimate(self, rules: CellRules, level: int, chosen: Ints, until: float) -> Ints:
        """Play the middles of cells; those that are left after some seconds of the clock are not known."""
        points = np.empty((len(chosen), len(self.loop.names)))
        steps = np.full(len(chosen), -1)
        middles(self.cells, level, chosen, points)
        for first in range(0, max(len(chosen), 1), _CHUNK):
            part = slice(first, first + _CHUNK)
            estimate(
                self._arrays,
                self.cells,
                rules,
                self._desk,
                self._point,
                *self._home,
                2 if self._statement.stays else int(self._reaches),
                _AFTER,
                points[part],
                steps[part],
            )
            if self._clock.spent > until:
                break
        return steps

    @property
    def proven(self) -> float:
        """The share of the box that is proven."""
        return float(np.mean(self.cells.times[: self.cells.first[1]] >= 0))

    def _level(self, level: int) -> NDArray[np.int32]:
        """Return the times of the cells of a level."""
        return self.cells.times[self.cells.first[level] : self.cells.first[level + 1]]

    def run(self) -> None:
        """Search until nothing is gained, or the time is up."""
        statement = self._statement
        if statement.stays or statement.within is None:
            self._stay(every_level=not self._reaches)
        elif statement.target is not None:
            for index in self._inside(0, self._home):
                set_time(self.cells, 0, index, 0, True)
        if statement.within is not None:
            self._reach(statement.within)

    def _inside(self, level: int, box: tuple[Floats, Floats]) -> Ints:
        """Return the cells of a level that lie in a box."""
        n = len(self.loop.names)
        side = 1 << (self.levels - level)
        size = (self.cells.high - self.cells.low) / side
        kept = []
        for j in range(n):
            low = self.cells.low[j] + np.arange(side) * size[j]
            high = low + size[j]
            at_ends = (np.arange(side) == 0, np.arange(side) == side - 1)
            lower = (low >= box[0][j]) | (at_ends[0] & (self.cells.low[j] >= box[0][j]))
            upper = (high <= box[1][j]) | (at_ends[1] & (self.cells.high[j] <= box[1][j]))
            kept.append(np.flatnonzero(lower & upper))
        indices = np.zeros(1, np.int64)
        for places in kept:
            indices = (indices[:, np.newaxis] * side + places).ravel()
        return indices

    def _stay(self, *, every_level: bool) -> None:
        """Find cells from which the closed loop never leaves home, at the first level that has any."""
        rules = self._rules(self._home, _FOR_EVER)
        for level in range(max(self.levels - 6, 0), -1, -1):
            chosen = self._inside(level, self._home)
            chosen = chosen[self._level(level)[chosen] < 0]
            for index in chosen:
                set_time(self.cells, level, index, 0, True)
            if self._settle(rules, level, chosen):
                self._core.append((level, chosen[chosen >= 0]))
                if not every_level and np.any(chosen >= 0):
                    return
            else:  # what is left was not checked to the end
                for index in chosen[chosen >= 0]:
                    set_time(self.cells, level, index, -1, False)
                self.finished = False
                return

    def _settle(self, rules: CellRules, level: int, chosen: Ints) -> bool:
        """Drop cells until all that are left come back to these; returns False if the time is up."""
        gone = 1
        while gone:
            gone = 0
            for first in range(0, len(chosen), _CHUNK):
                gone += self._follow(rules, level, chosen[first : first + _CHUNK], dropping=True)
                self._progress(0.0, self._clock.spent / self._clock.seconds)
                if self._clock.is_up:
                    return False
        return True

    def _reach(self, within: int) -> None:
        """Give times to cells whose image lies in cells with a time, from coarse cells to fine ones."""
        rules = self._rules(self._keep, within)
        if not (rules.goal or rules.lasts or np.any(self._level(0) >= 0)):
            return  # there is nothing to reach
        coarsest = self.levels if self._to_the_end else max(self.levels - 5, 0)
        for level in range(min(coarsest, COARSEST), -1, -1):
            allowed = self._inside(level, self._keep)
            while True:
                todo = allowed[self._level(level)[allowed] < 0]
                steps = self._estimate(rules, level, todo, self._clock.seconds)
                hopeful = steps >= 0
                # The nearest first: the images of the others then lie in cells that have a time.
                order = todo[hopeful][np.argsort(steps[hopeful], kind="stable")]
                won = 0
                for first in range(0, len(order), _CHUNK):
                    chosen = order[first : first + _CHUNK]
                    won += self._follow(rules, level, chosen, dropping=False)
                    self._boxes.append((level, chosen[self._level(level)[chosen] >= 0]))
                    self._progress(self.proven, self._clock.spent / self._clock.seconds)
                    if self._clock.is_up:
                        self.finished = False
                        return
                if won < _GAIN * len(order) or not len(order):
                    break

    def statuses(self) -> tuple[NDArray[np.int8], Floats]:
        """Return what is known of each of the finest cells, and starts that fail, as played.

        The middles of cells that are not proven are played, of the finest that are few enough. What is not
        proven of a cell whose middle fails is refuted.
        """
        status = np.where(self._level(0) >= 0, PROVEN, UNDECIDED).astype(np.int8)
        limit = self._statement.within or 5 * self.loop.dynamics.horizon
        rules = self._rules(self._keep, limit)
        level = self.levels
        while level > 0 and np.count_nonzero(self._level(level - 1) < 0) <= _PLAYED:
            level -= 1
        todo = np.flatnonzero(self._level(level) < 0)
        more = max(_SECONDS_TO_PLAY, 0.2 * self._clock.seconds)
        bad = todo[self._estimate(rules, level, todo, self._clock.spent + more) == -2]
        points = np.empty((len(bad), len(self.loop.names)))
        middles(self.cells, level, bad, points)
        n = len(self.loop.names)
        fails = np.zeros((1 << (self.levels - level),) * n, np.bool_)
        fails.ravel()[bad] = True
        for axis in range(n):
            fails = np.repeat(fails, 1 << level, axis=axis)
        status = status.reshape(fails.shape)
        status[fails & (status == UNDECIDED)] = REFUTED
        return status, points

    @property
    def proof(self) -> dict[str, Any]:
        """What a certificate holds, besides the closed loop and the statement."""
        arrays: dict[str, NDArray[Any]] = {
            "times": self._level(0),
            "box": np.stack([self.cells.low, self.cells.high]),
            "turns": self.cells.turns,
            "home": np.stack(self._home),
            "keep": np.stack(self._keep),
        }
        for name, boxes in (("boxes", self._boxes), ("core", self._core)):
            pairs = [(np.full(len(chosen), level), chosen) for level, chosen in boxes]
            for i, part in enumerate(("level", "index")):
                arrays[f"{name}.{part}"] = np.concatenate(
                    [np.empty(0, np.int64), *(pair[i] for pair in pairs)]
                )
        arrays["boxes.time"] = self._times_of(arrays["boxes.level"], arrays["boxes.index"])
        return {"loop": self.loop, "steps": self._steps, "levels": self.levels, "arrays": arrays}

    def _times_of(self, level: Ints, index: Ints) -> Ints:
        """Return the steps that were shown for boxes, which are in the order of the search.

        A box gave its time to those of its finest cells that had none: to those in no box before it.
        """
        n = len(self.loop.names)
        shown = np.zeros(len(index), np.int64)
        times = self._level(0).reshape((1 << self.levels,) * n)
        done = np.zeros(times.shape, np.bool_)
        for i, (shift, flat) in enumerate(zip(level.tolist(), index.tolist(), strict=True)):
            bits = self.levels - shift
            place: list[slice] = []
            for _ in range(n):
                first = (flat & ((1 << bits) - 1)) << shift
                place.insert(0, slice(first, first + (1 << shift)))
                flat >>= bits
            cells = tuple(place)
            shown[i] = times[cells][~done[cells]].max(initial=0)
            done[cells] = True
        return shown

    @property
    def longest(self) -> int:
        """The most steps from any proven cell."""
        return max(0, int(self._level(0).max()))


def starts_of(loop: ClosedLoop, statement: Statement) -> tuple[Floats, Floats]:
    """Return the ends of the box of starts, which must have a range of every state variable."""
    low, high = box_of(loop.names, statement.starts)
    missing = [name for name, wide in zip(loop.names, high - low, strict=True) if not np.isfinite(wide)]
    if missing:
        raise SettingError(f"Give a range of starts of {', '.join(missing)}: the statement depends on it.")
    return low, high


def reduced(loop: ClosedLoop, statement: Statement) -> tuple[ClosedLoop, tuple[str, ...]]:
    """Return the closed loop without numbers that the statement does not depend on, and their names."""
    flags = statement.termination != "ignored"
    named: Sequence[str] = [*(statement.target or {}), *statement.allowed]
    for box in (statement.starts, statement.target or {}, statement.allowed):
        check_box(loop.names, box)
    wanted = [loop.names.index(name) for name in named]
    kept = loop.needed(wanted, flags=flags)
    smaller = loop.restricted(kept, flags=flags)
    return smaller, tuple(name for name in loop.names if name not in smaller.names)
