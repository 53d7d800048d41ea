"""The loop of samples: an observation comes, an action goes, and what is late or lost is counted."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from spaql.errors import BadEnvironmentError
from spaql.problems.hardware import protocol
from spaql.problems.hardware.declaration import Signals
from spaql.problems.hardware.link import Link, opened
from spaql.problems.hardware.protocol import Sample, encoded
from spaql.problems.hardware.step_log import Row, StepLog

Numbers = tuple[float, ...]
_START_UP = 5.0
"""Seconds for which a board is asked who it is: opening its port restarts an Arduino."""
_ANSWER = 0.2
"""Seconds to wait for its answer."""
_TRIES = 10
"""How often a command is sent until it is confirmed."""
_WAIT = (0.05, 0.5)
"""Least and most seconds to wait for a confirmation."""
_DRIFT = 0.01
"""Largest difference between the clocks of computer and board, as a share."""
_KEPT = 1_000
"""Samples for which the actions that were sent are remembered."""


@dataclass
class Counts:
    """What came over the line, and what did not, since the environment was made."""

    samples: int = 0
    """Samples of the board, as far as is known."""
    missed: int = 0
    """Observations that did not come in time; the safe action was sent for each."""
    late: int = 0
    """Of these and of gaps, those that came later; they are in the log, and were not acted upon."""
    gaps: int = 0
    """Samples that had not come when a later one was there, or due: this process was not waiting for them."""
    read_late: int = 0
    """Observations that were acted upon after that time, because this process was not waiting for them."""
    overtaken: int = 0
    """Observations that were not acted upon because this process read them when there was a newer one, or
    should have been."""
    not_played: int = 0
    """Actions that the board did not play: they were lost, or came after the next sample."""
    damaged: int = 0
    """Lines with a wrong checksum, a number that is not finite, or a sample that has come or cannot be yet."""
    outside: int = 0
    """Observations beyond their ranges; those far beyond were not acted upon."""
    limited: int = 0
    """Actions of the agent that were cut to their limits, or were not finite and became the safe action."""

    @property
    def lost(self) -> int:
        """Observations that never came."""
        return self.missed + self.gaps - self.late


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
    outside: tuple[str, ...] = ()
    """Which observations are beyond their ranges."""
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
        self._link: Link | None = None
        self._lock = threading.RLock()
        self._watchdog = 0
        self.counts = Counts()
        self.is_running = False
        """Whether the board may play actions."""
        self.stopped = ""
        """Why the plant was stopped, until it is released."""

    def begin(self) -> Exchange:
        """Let the board begin to send samples, and return the first observation."""
        with self._lock:
            link = self._connect()
            if not self._confirmed(link, protocol.QUIT):
                raise BadEnvironmentError(f"The board at {link.name} does not answer: is it running?")
            self._number = -1
            self._recorded = -1
            self._streak = 0
            self._sent: dict[int, Numbers] = {}
            self._played: dict[int, Numbers | None] = {}
            self._outside: tuple[str, ...] = ()
            self._clock = _Clock(self._period, time.perf_counter())
            if self._log is not None:
                self._log.begin()
            self.is_running = True
            for _ in range(_TRIES):
                link.send(encoded(protocol.GO))
                seen = self._newest(link, time.perf_counter() + max(3 * self._period, _WAIT[0]))
                if seen is not None:
                    return Exchange(self._number, seen, self._outside)
        beyond = f" within the range of {', '.join(self._outside)}" if self._outside else ""
        raise BadEnvironmentError(
            f"The board at {link.name} sends no observations{beyond}: if it was stopped there, release it."
        )

    def exchange(self, action: Numbers) -> Exchange:
        """Send an action, and return with the next observation that comes in time."""
        with self._lock:
            link = self._connect()
            first = self._number
            missed = 0
            self._played.clear()
            if not self.stopped:
                self._act(link, action, "agent")
            seen: Numbers | None = None
            while seen is None and not self.stopped:
                seen = self._newest(link, self._deadline())
                if seen is None and not self.stopped:
                    missed += 1
                    self._miss(link)
            self._streak = 0
            return Exchange(self._number, seen, self._outside, self._played.get(first), missed)

    def _deadline(self) -> float:
        """Return until when the next observation may come: not too short after a pause of this process.

        It is asked once for every wait, so that nothing that comes in it moves the deadline.
        """
        expected = self._clock.expected(self._number + 1)
        return max(expected, time.perf_counter()) + self._patience

    def _newest(self, link: Link, deadline: float) -> Numbers | None:
        """Return the newest observation to act upon that comes by a deadline, whatever else does."""
        newest: Numbers | None = None
        for heard in self._heard(link, deadline):
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
        self._outside, is_far = self._signals.outside(sample.values)
        self.counts.outside += bool(self._outside)
        self._record(number, sample, now, is_far)
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

    def _miss(self, link: Link) -> None:
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
            self._act(link, self._signals.safe, "watchdog")

    def _act(self, link: Link, action: Numbers, by: str) -> None:
        link.send(encoded(protocol.ACTION, self._number % protocol.WRAP, *action))
        self._sent[self._number] = action
        self._sent.pop(self._number - _KEPT, None)
        names = (f"sent {name}" for name in self._signals.actions)
        self._write({self._number: {**dict(zip(names, action, strict=True)), "sent by": by}})

    def _record(self, number: int, sample: Sample, now: float, is_far: bool) -> None:
        """Write an observation, unless it is not to be believed, and what was played upon the one before."""
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
        seen: Row = {"outside": ", ".join(self._outside), "arrival [s]": round(now - self._zero, 6)}
        if not is_far:
            seen |= dict(zip(self._signals.observations, sample.values, strict=True))
        self._write(rows | {number: self._timed(number) | seen}, number)

    def _timed(self, number: int) -> Row:
        return {"time [s]": round(number * self._period, 9)}

    def _write(self, rows: dict[int, Row], final: int | None = None) -> None:
        if self._log is not None:
            self._log.write(rows, final)

    def stop(self, reason: str) -> None:
        """Stop the plant until it is released; from any thread."""
        self.stopped = self.stopped or reason
        link = self._link
        if link is None:
            return
        with suppress(BadEnvironmentError):
            link.send(encoded(protocol.STOP))  # before anything that may wait
        with self._lock:
            try:
                confirmed = self._confirmed(link, protocol.STOP)
            except BadEnvironmentError:
                confirmed = False
            self.is_running = False
            if not confirmed:
                self.stopped += "; the board did not confirm the stop"

    def release(self) -> None:
        """Let the plant run again after a stop."""
        with self._lock:
            if not self._confirmed(link := self._connect(), protocol.RELEASE):
                raise BadEnvironmentError(f"The board at {link.name} stays stopped: look at its own switch.")
            self.stopped = ""

    def quit(self) -> None:
        """Let the board play the safe action, and send no more samples."""
        with self._lock:
            link = self._link
            if link is None or not self.is_running:
                return
            confirmed = self._confirmed(link, protocol.QUIT)
            self.is_running = False
            if not confirmed:
                warnings.warn(
                    f"The board at {link.name} did not confirm the safe action; its watchdog plays it after "
                    f"{self._watchdog} samples.",
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
            if self._link is not None and not self.is_running:
                self._link.close()
                self._link = None

    def _connect(self) -> Link:
        """Return the link; a new one is asked whether the right board is at its other end."""
        if self._link is not None:
            return self._link
        link = opened(*self._address)
        try:
            until = time.perf_counter() + _START_UP
            while time.perf_counter() < until:
                link.send(encoded(protocol.HELLO))
                for words in chain.from_iterable(self._heard(link, time.perf_counter() + _ANSWER)):
                    if (board := protocol.identity_of(words)) is not None:
                        self._signals.check(board, self._period, link.name)
                        self._watchdog = board.watchdog
                        self._link = link
                        return link
        finally:
            if self._link is None:
                link.close()
        raise BadEnvironmentError(
            f"No board that speaks version {protocol.VERSION} of the protocol answers at {link.name}."
        )

    def _confirmed(self, link: Link, letter: str) -> bool:
        """Send a command until the board confirms it; return whether it did."""
        wait = min(max(2 * self._period, _WAIT[0]), _WAIT[1])
        for _ in range(_TRIES):
            link.send(encoded(letter))
            heard = chain.from_iterable(self._heard(link, time.perf_counter() + wait))
            if any(words[0] == letter for words in heard):
                return True
        return False

    def _heard(self, link: Link, until: float) -> Iterator[list[list[str]]]:
        """Yield the sound lines of one read after the other, until a time.

        What has come when the time has passed is read once more, because this process may have been paused.
        Nothing that comes can make it longer: a read is short, and waits no longer than the time left.
        """
        left = math.inf
        while left > 0.0:
            left = until - time.perf_counter()
            lines = [protocol.decoded(line) for line in link.receive(max(left, 0.0))]
            self.counts.damaged += lines.count(None)
            yield [words for words in lines if words is not None]
