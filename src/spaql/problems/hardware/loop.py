"""The loop of samples: an observation comes, an action goes, and what is late or lost is counted."""

from __future__ import annotations

import threading
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass

from spaql.errors import BadEnvironmentError
from spaql.problems.hardware import protocol
from spaql.problems.hardware.declaration import Signals
from spaql.problems.hardware.link import Link, opened
from spaql.problems.hardware.protocol import Sample, encoded
from spaql.problems.hardware.step_log import Row, StepLog

Numbers = tuple[float, ...]
_START_UP = 5.0
"""Seconds for which a board is asked who it is: opening its port restarts an Arduino."""
_TRIES = 10
"""How often a command is sent until it is confirmed."""
_WAIT = 0.05
"""Least seconds to wait for a confirmation."""
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
    """Of these, those that came later; they are in the log, and were not acted upon."""
    gaps: int = 0
    """Samples that never came, while this process was not waiting for them."""
    read_late: int = 0
    """Observations that were acted upon after that time, because this process was not waiting for them."""
    overtaken: int = 0
    """Observations that were not acted upon because this process read them when there was a newer one."""
    not_played: int = 0
    """Actions that the board did not play: they were lost, or came after the next sample."""
    damaged: int = 0
    """Lines with a wrong checksum, or numbers that are not finite."""
    limited: int = 0
    """Actions of the agent that were cut to their limits, or were not finite and became the safe action."""

    @property
    def lost(self) -> int:
        """Observations that never came."""
        return self.missed + self.gaps - self.late


class _Clock:
    """When the next observation is expected, by the earliest ones so far."""

    def __init__(self, period: float, sample: int, now: float) -> None:
        self._period, self._zero = period, now - sample * period

    def expected(self, sample: int) -> float:
        return self._zero + sample * self._period

    def arrived(self, sample: int, now: float) -> None:
        self._zero = min(self._zero + _DRIFT * self._period, now - sample * self._period)


@dataclass(frozen=True)
class Exchange:
    """What came of an action."""

    sample: int
    """Number of the last sample."""
    observation: Numbers | None
    """None if the plant was stopped before another one came."""
    played: Numbers | None
    """What the board played upon the observation before, if that is known."""
    missed: int
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
        log: StepLog | None,
    ) -> None:
        self._address, self._signals, self._log = address, signals, log
        self._period, self._patience, self._most_misses = period, patience, most_misses
        self._link: Link | None = None
        self._lock = threading.RLock()
        self._watchdog = 0
        self.counts = Counts()
        self.is_running = False
        """Whether the board sends samples, and plays actions."""
        self.stopped = ""
        """Why the plant was stopped, until it is released."""

    @property
    def sample(self) -> int:
        """The number of the last sample of this episode."""
        return self._number

    def begin(self) -> Numbers:
        """Let the board begin to send samples, and return the first observation."""
        with self._lock:
            link = self._connect()
            if not self._confirmed(link, protocol.QUIT):
                raise BadEnvironmentError(f"The board at {link.name} does not answer: is it running?")
            for _ in range(_TRIES):
                link.send(encoded(protocol.GO))
                sample = self._next_sample(link, time.perf_counter() + max(3 * self._period, _WAIT))
                if sample is not None:
                    return self._begun(sample)
        raise BadEnvironmentError(
            f"The board at {link.name} sends no observations: if it was stopped there, release it."
        )

    def _begun(self, sample: Sample) -> Numbers:
        now = time.perf_counter()
        self._number, self._streak = sample.number, 0
        self._clock = _Clock(self._period, sample.number, now)
        self._zero = now
        self._sent: dict[int, Numbers] = {}
        if self._log is not None:
            self._log.begin()
        self.is_running = True
        self.counts.samples += 1
        self._write({sample.number: self._seen(sample.number, sample, now)})
        return sample.values

    def exchange(self, action: Numbers) -> Exchange:
        """Send an action, and return with the next observation that comes in time."""
        with self._lock:
            link, first, missed = self._connect(), self._number, 0
            played: Numbers | None = None
            if not self.stopped:
                self._act(link, action, "agent")
            while not self.stopped:
                sample, now = self._next_sample(link, self._due()), time.perf_counter()
                if sample is None:
                    missed += 1
                    self._miss(link)
                    continue
                number = protocol.unwrapped(sample.number, self._number + 1)
                one = self._record(number, sample, now)
                played = one if number == first + 1 else played
                if number <= self._number:
                    self.counts.late += 1
                    continue
                self.counts.gaps += number - self._number - 1
                self.counts.samples += number - self._number
                self._number = number
                is_late = now > self._clock.expected(number) + self._patience
                self._clock.arrived(number, now)
                if sample.state == protocol.STOPPED:
                    self.stopped = self.stopped or "the board reports that it was stopped"
                elif link.has_more(protocol.OBSERVATION):  # this process was late
                    self.counts.overtaken += 1
                    continue
                self.counts.read_late += is_late
                self._streak = 0
                return Exchange(number, sample.values, played, missed)
            return Exchange(self._number, None, played, missed)

    def _due(self) -> float:
        """Return until when to wait for the next observation: not too short after a pause of this process."""
        expected = self._clock.expected(self._number + 1)
        return max(expected, time.perf_counter()) + self._patience

    def _miss(self, link: Link) -> None:
        """Play the safe action for a sample that did not come in time; after too many, stop."""
        self._number += 1
        self._streak += 1
        self.counts.samples += 1
        self.counts.missed += 1
        self._write({self._number: self._timed(self._number)})
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

    def _record(self, number: int, sample: Sample, now: float) -> Numbers | None:
        """Write an observation, and what was played upon the one before, which is returned."""
        last = protocol.unwrapped(sample.last, number - 1)
        safe = sample.state != protocol.RUNNING
        played = self._signals.safe if safe else self._sent.get(last)
        if last != number - 1 and number - 1 in self._sent:
            self.counts.not_played += 1
        before: Row = {"board": sample.state}
        if played is not None:
            before |= dict(zip(self._signals.actions, played, strict=True))
        rows = {i: self._timed(i) for i in range(self._number + 1, number)}
        rows[number - 1] = rows.get(number - 1, {}) | before
        # Lines come in their order: no observation before this one will still come.
        self._write(rows | {number: self._seen(number, sample, now)}, number)
        return played

    def _seen(self, number: int, sample: Sample, now: float) -> Row:
        seen = dict(zip(self._signals.observations, sample.values, strict=True))
        return {**self._timed(number), **seen, "arrival [s]": round(now - self._zero, 6)}

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
            self.is_running = False
            try:
                confirmed = self._confirmed(link, protocol.STOP)
            except BadEnvironmentError:
                confirmed = False
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
            link, was_running, self.is_running = self._link, self.is_running, False
            if link is not None and was_running and not self._confirmed(link, protocol.QUIT):
                warnings.warn(
                    f"The board at {link.name} did not confirm the safe action; its watchdog plays it after "
                    f"{self._watchdog} samples.",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def close(self) -> None:
        """Play the safe action, and close the connection, which may be broken."""
        try:
            with suppress(BadEnvironmentError):
                self.quit()
        finally:
            if self._link is not None:
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
                while (words := self._words(link, time.perf_counter() + 0.2)) is not None:
                    if (board := protocol.identity_of(words)) is not None:
                        self._signals.check(board, self._period, link.name)
                        self._watchdog, self._link = board.watchdog, link
                        return link
        finally:
            if self._link is None:
                link.close()
        raise BadEnvironmentError(
            f"No board that speaks version {protocol.VERSION} of the protocol answers at {link.name}."
        )

    def _confirmed(self, link: Link, letter: str) -> bool:
        """Send a command until the board confirms it; return whether it did."""
        for _ in range(_TRIES):
            link.send(encoded(letter))
            until = time.perf_counter() + max(2 * self._period, _WAIT)
            while (words := self._words(link, until)) is not None:
                if words[0] == letter:
                    return True
        return False

    def _next_sample(self, link: Link, until: float) -> Sample | None:
        while (words := self._words(link, until)) is not None:
            if words[0] == protocol.OBSERVATION:
                if (sample := protocol.sample_of(words, len(self._signals.observations))) is not None:
                    return sample
                self.counts.damaged += 1
        return None

    def _words(self, link: Link, until: float) -> list[str] | None:
        """Return the next line whose checksum is right."""
        while (line := link.receive(until)) is not None:
            if (words := protocol.decoded(line)) is not None:
                return words
            self.counts.damaged += 1
        return None
