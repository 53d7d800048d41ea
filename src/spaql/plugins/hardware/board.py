"""A board at the other end of a link: what it is told until it confirms, and what is heard of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from spaql.errors import BadEnvironmentError
from spaql.plugins.hardware import protocol
from spaql.plugins.hardware.declaration import Signals
from spaql.plugins.hardware.link import opened
from spaql.plugins.hardware.protocol import Identity, decoded, encoded

_START_UP = 5.0
"""Seconds for which a board is asked who it is: opening its port restarts an Arduino."""
_ANSWER = 0.2
"""Seconds to wait for its answer."""
_TRIES = 10
"""How often a command is sent until it is confirmed."""
_WAIT = (0.05, 0.5)
"""Least and most seconds to wait for a confirmation."""


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
    """Lines with a wrong checksum, values that are not finite, or a sample that cannot be the next."""
    outside: int = 0
    """Observations beyond their ranges; those far beyond were not acted upon."""
    limited: int = 0
    """Actions of the agent that were cut to their limits, or were not finite and became the safe action."""

    @property
    def lost(self) -> int:
        """Observations that never came."""
        return self.missed + self.gaps - self.late


class Board:
    """A board; connecting asks whether it is the one that is declared."""

    def __init__(self, address: tuple[str, int], signals: Signals, period: float, counts: Counts) -> None:
        self._link = opened(*address)
        self._wait = min(max(2 * period, _WAIT[0]), _WAIT[1])
        self._counts = counts
        self.name = self._link.name
        try:
            identity = self._identity()
            signals.check(identity, period, self.name)
        except BaseException:
            self.close()
            raise
        self.watchdog = identity.watchdog
        """Samples without an action after which it plays the safe action."""

    def _identity(self) -> Identity:
        until = time.perf_counter() + _START_UP
        while time.perf_counter() < until:
            self.send(protocol.HELLO)
            for words in chain.from_iterable(self.heard(time.perf_counter() + _ANSWER)):
                if (identity := protocol.identity_of(words)) is not None:
                    return identity
        raise BadEnvironmentError(
            f"No board that speaks version {protocol.VERSION} of the protocol answers at {self.name}."
        )

    def send(self, letter: str, *fields: object) -> None:
        """Send a line."""
        self._link.send(encoded(letter, *fields))

    def confirms(self, letter: str) -> bool:
        """Send a command until it is confirmed; return whether it was, after 0.5 to 5 seconds at most."""
        for _ in range(_TRIES):
            self.send(letter)
            heard = chain.from_iterable(self.heard(time.perf_counter() + self._wait))
            if any(words[0] == letter for words in heard):
                return True
        return False

    def heard(self, until: float) -> Iterator[list[list[str]]]:
        """Yield the sound lines of one read after the other, until a time.

        What has come when the time has passed is read once more, because this process may have been paused.
        Nothing that comes can make it longer: a read is short, and waits no longer than the time left.
        """
        left = math.inf
        while left > 0.0:
            left = until - time.perf_counter()
            lines = [decoded(line) for line in self._link.receive(max(left, 0.0))]
            self._counts.damaged += lines.count(None)
            yield [words for words in lines if words is not None]

    def close(self) -> None:
        """Close the connection."""
        self._link.close()
