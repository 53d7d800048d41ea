"""The loop of samples: an observation comes, an action goes, and what is late or lost is counted."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from spaql.errors import BadEnvironmentError
from spaql.plugins.hardware import protocol
from spaql.plugins.hardware.board import Board, Counts
from spaql.plugins.hardware.declaration import Signals
from spaql.plugins.hardware.protocol import Sample
from spaql.plugins.hardware.step_log import Row, StepLog

Numbers = tuple[float, ...]
_STARTS = 10
"""How often a board is told to begin, until a sample comes."""
_FIRST = 0.05
"""Least seconds to wait for it."""
_DRIFT = 0.01
"""Largest difference between the clocks of computer and board, as a share."""
_KEPT = 1_000
"""Samples for which the actions that were sent are remembered."""


class _Clock:
    """When the next observation is expected, by the earliest ones since the board was told to begin."""

    def __init__(self, period: float, begun: float) -> None:
        self._period = period
        self._begun = begun
        self._zero = math.inf

    def expected(self, sample: int) -> float:
        return self._zero + sample * self._period

    def due(self, now: float) -> int:
        """Return the number of the sample that the board is at."""
        return math.floor((now - self._zero) / self._period)

    def allows(self, sample: int, now: float) -> bool:
        """Return whether the board can have got to a sample, since it was told to begin with number 0."""
        return sample <= 1 + (1 + _DRIFT) * (now - self._begun) / self._period

    def arrived(self, sample: int, now: float) -> None:
        self._zero = min(self._zero + _DRIFT * self._period, now - sample * self._period)


@dataclass(frozen=True)
class Exchange:
    """What came of an action."""

    sample: int
    """Number of the last sample."""
    observation: Numbers | None
    """None if the plant was stopped before another one came."""
    played: Numbers | None = None
    """What the board played upon the observation before, if that is known."""
    missed: int = 0
    """Observations since then that did not come in time."""


class SampleLoop:
    """The computer's side of the protocol; it knows nothing of rewards and episodes."""

    def __init__(
        self,
        address: tuple[str, int],
        signals: Signals,
        *,
        period: float,
        patience: float,
        most_misses: int,
        emergency: Callable[[Numbers], str],
        log: StepLog | None,
    ) -> None:
        self._address = address
        self._signals = signals
        self._period = period
        self._patience = patience
        self._most_misses = most_misses
        self._emergency = emergency
        self._log = log
        self._board: Board | None = None
        self._lock = threading.RLock()
        self.counts = Counts()
        self.is_running = False
        """Whether the board may play actions."""
        self.stopped = ""
        """Why the plant was stopped, until it is released."""

    def begin(self) -> Exchange:
        """Let the board begin to send samples, and return the first observation."""
        with self._lock:
            board = self._connected()
            if not board.confirms(protocol.QUIT):
                raise BadEnvironmentError(f"The board at {board.name} does not answer: is it running?")
            self._streak = 0
            self._sent: dict[int, Numbers] = {}
            self._played: dict[int, Numbers | None] = {}
            self._clock = _Clock(self._period, time.perf_counter())
            if self._log is not None:
                self._log.begin()
            self.is_running = True
            for _ in range(_STARTS):
                self._number = -1
                self._recorded = -1
                board.send(protocol.GO)
                seen = self._newest(board, time.perf_counter() + max(3 * self._period, _FIRST))
                if seen is not None:
                    return Exchange(self._number, seen)
        raise BadEnvironmentError(
            f"The board at {board.name} sends no observations that can be used ({self.counts.damaged} lines "
            f"damaged, {self.counts.outside} beyond their ranges): if it was stopped there, release it."
        )

    def exchange(self, action: Numbers) -> Exchange:
        """Send an action, and return with the next observation that comes in time."""
        with self._lock:
            board = self._connected()
            first = self._number
            missed = 0
            self._played.clear()
            if not self.stopped:
                self._act(board, action, "agent")
            seen: Numbers | None = None
            while seen is None and not self.stopped:
                seen = self._newest(board, self._deadline())
                if seen is None and not self.stopped:
                    missed += 1
                    self._miss(board)
            self._streak = 0
            return Exchange(self._number, seen, self._played.get(first), missed)

    def _deadline(self) -> float:
        """Return until when the next observation may come: not too short after a pause of this process.

        It is asked once for every wait, so that nothing that comes in it moves the deadline.
        """
        expected = self._clock.expected(self._number + 1)
        return max(expected, time.perf_counter()) + self._patience

    def _newest(self, board: Board, deadline: float) -> Numbers | None:
        """Return the newest observation to act upon that comes by a deadline, whatever else does."""
        newest: Numbers | None = None
        for heard in board.heard(deadline):
            for words in heard:
                if words[0] == protocol.OBSERVATION and not self.stopped:
                    now = time.perf_counter()
                    seen = self._take(words, now)
                    self.counts.overtaken += None not in (newest, seen)
                    newest = seen or newest
            if newest is not None:
                self.counts.read_late += now > self._clock.expected(self._number) + self._patience
            if newest is not None or self.stopped:
                break
        return newest

    def _take(self, words: list[str], now: float) -> Numbers | None:
        """Log an observation; return it if it is to be acted upon, or has stopped the plant."""
        sample = protocol.sample_of(words, len(self._signals.observations))
        number = -1 if sample is None else protocol.unwrapped(sample.number, self._number + 1)
        # Lines come in their order.
        if sample is None or number <= self._recorded or not self._clock.allows(number, now):
            self.counts.damaged += 1
            return None
        outside, is_far = self._signals.outside(sample.values)
        self.counts.outside += bool(outside)
        values: Row = {} if is_far else dict(zip(self._signals.observations, sample.values, strict=True))
        self._record(number, sample, now, {**values, "outside": ", ".join(outside)})
        is_fresh = not is_far and self._is_fresh(number, now)
        if sample.state == protocol.STOPPED:
            self.stopped = self.stopped or "the board reports that it was stopped"
        if reason := self._emergency(sample.values):
            self.stop(reason)
        return sample.values if is_fresh or self.stopped else None

    def _is_fresh(self, number: int, now: float) -> bool:
        """Count an observation; return whether it was not missed before, and no newer one is overdue."""
        if number <= self._number:
            self.counts.late += 1
            return False
        self.counts.gaps += number - self._number - 1
        self.counts.samples += number - self._number
        self._number = number
        is_overtaken = now > self._clock.expected(number + 1) + self._patience
        self.counts.overtaken += is_overtaken
        self._clock.arrived(number, now)
        return not is_overtaken

    def _miss(self, board: Board) -> None:
        """Play the safe action for the sample that the board is at; after too many, stop."""
        number = max(self._number + 1, self._clock.due(time.perf_counter()))
        self._write({i: self._timed(i) for i in range(self._number + 1, number + 1)})
        self.counts.samples += number - self._number
        self.counts.gaps += number - self._number - 1
        self.counts.missed += 1
        self._number = number
        self._streak += 1
        if self._streak > self._most_misses:
            self.stop(f"{self._streak} observations in a row did not come in time")
        else:
            self._act(board, self._signals.safe, "watchdog")

    def _act(self, board: Board, action: Numbers, by: str) -> None:
        board.send(protocol.ACTION, self._number % protocol.WRAP, *action)
        self._sent[self._number] = action
        self._sent.pop(self._number - _KEPT, None)
        names = (f"sent {name}" for name in self._signals.actions)
        self._write({self._number: {**dict(zip(names, action, strict=True)), "sent by": by}})

    def _record(self, number: int, sample: Sample, now: float, seen: Row) -> None:
        """Write what is known of a sample, and what was played upon the one before."""
        if self._recorded < 0:
            self._zero = now
        self._recorded = number
        last = protocol.unwrapped(sample.last, number - 1)
        safe = sample.state != protocol.RUNNING
        played = self._signals.safe if safe else self._sent.get(last)
        self._played[number - 1] = played
        if last != number - 1 and number - 1 in self._sent:
            self.counts.not_played += 1
        before: Row = {"board": sample.state}
        if played is not None:
            before |= dict(zip(self._signals.actions, played, strict=True))
        rows = {i: self._timed(i) for i in range(self._number + 1, number)}
        if number > 0:
            rows[number - 1] = rows.get(number - 1, {}) | before
        seen = self._timed(number) | seen | {"arrival [s]": round(now - self._zero, 6)}
        self._write(rows | {number: seen}, number)

    def _timed(self, number: int) -> Row:
        return {"time [s]": round(number * self._period, 9)}

    def _write(self, rows: dict[int, Row], final: int | None = None) -> None:
        if self._log is not None:
            self._log.write(rows, final)

    def stop(self, reason: str) -> None:
        """Stop the plant until it is released; from any thread."""
        self.stopped = self.stopped or reason
        board = self._board
        if board is None:
            return
        with suppress(BadEnvironmentError):
            board.send(protocol.STOP)  # before anything that may wait
        with self._lock:
            try:
                confirmed = board.confirms(protocol.STOP)
            except BadEnvironmentError:
                confirmed = False
            self.is_running = False
            if not confirmed:
                self.stopped += "; the board did not confirm the stop"

    def release(self) -> None:
        """Let the plant run again after a stop."""
        with self._lock:
            if not (board := self._connected()).confirms(protocol.RELEASE):
                raise BadEnvironmentError(f"The board at {board.name} stays stopped: look at its own switch.")
            self.stopped = ""

    def quit(self) -> None:
        """Let the board play the safe action, and send no more samples."""
        with self._lock:
            board = self._board
            if board is None or not self.is_running:
                return
            confirmed = board.confirms(protocol.QUIT)
            self.is_running = False
            if not confirmed:
                warnings.warn(
                    f"The board at {board.name} did not confirm the safe action; its watchdog plays it after "
                    f"{board.watchdog} samples.",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def close(self) -> None:
        """Play the safe action, and close the connection, which may be broken.

        An exception in the middle, such as Ctrl-C, leaves it open for another call.
        """
        try:
            self.quit()
        except BadEnvironmentError:
            self.is_running = False
        finally:
            if self._board is not None and not self.is_running:
                self._board.close()
                self._board = None

    def _connected(self) -> Board:
        if self._board is None:
            self._board = Board(self._address, self._signals, self._period, self.counts)
        return self._board
