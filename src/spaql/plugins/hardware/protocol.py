"""The lines between a computer and the board of a plant.

A line is a letter, fields and a checksum, separated by spaces, and ends with a newline:
`A 17 0.5 *5E29`. `docs/hardware.md` has the full protocol.
"""

from __future__ import annotations

import math
from binascii import crc_hqx
from dataclasses import dataclass

VERSION = 1
"""Of the protocol, which both sides must have."""
HELLO = "?"
"""Sent by the computer, as are the next five."""
GO = "G"
ACTION = "A"
QUIT = "Q"
"""The board confirms it by the same letter, and `STOP` and `RELEASE`, too."""
STOP = "X"
RELEASE = "U"
IDENTITY = "I"
"""Sent by the board, as is `OBSERVATION`."""
OBSERVATION = "O"
RUNNING = "R"
"""A state of the board: it plays actions."""
WATCHDOG = "W"
"""Its watchdog plays the safe action."""
STOPPED = "X"
"""It was stopped."""
WRAP = 1 << 16
"""Numbers of samples are sent modulo this."""
LONGEST = 512
"""Most bytes of a line; longer ones are damaged."""
_INITIAL = 0xFFFF


@dataclass(frozen=True)
class Identity:
    """What a board says about itself."""

    version: int
    observations: int
    actions: int
    period: int
    """Microseconds between two samples."""
    watchdog: int
    """Samples without an action after which it plays the safe action."""
    safe_action: tuple[float, ...]


@dataclass(frozen=True)
class Sample:
    """An observation of a plant, and what the board did since the one before."""

    number: int
    """Modulo `WRAP`."""
    last: int
    """Number of the last sample whose action was played, modulo `WRAP`."""
    state: str
    """What was played since the sample before: that action (`RUNNING`), or the safe action."""
    values: tuple[float, ...]


def encoded(letter: str, *fields: object) -> bytes:
    """Return a line; floats are written with nine digits.

    Examples
    --------
    >>> encoded("A", 17, 0.5)
    b'A 17 0.5 *5E29\\n'
    """
    words = [letter, *(f"{x:.9g}" if isinstance(x, float) else str(x) for x in fields)]
    text = " ".join(words).encode("ascii")
    return b"%s *%04X\n" % (text, crc_hqx(text, _INITIAL))


def decoded(line: bytes) -> list[str] | None:
    """Return letter and fields of a line, or None if it is damaged.

    Examples
    --------
    >>> decoded(b"A 17 0.5 *5E29")
    ['A', '17', '0.5']
    >>> decoded(b"A 17 0.6 *5E29") is None
    True
    """
    text, found, checksum = line.strip().rpartition(b" *")
    if not found or checksum != b"%04X" % crc_hqx(text, _INITIAL):
        return None
    try:
        words = text.decode("ascii").split(" ")
    except UnicodeDecodeError:
        return None
    return words if words[0] else None


def identity_of(words: list[str]) -> Identity | None:
    """Return what a board says about itself, or None if the words are something else."""
    if words[0] != IDENTITY or len(words) < 7:
        return None
    try:
        version, observations, actions, period, watchdog = map(int, words[1:6])
        safe = tuple(map(float, words[6:]))
    except ValueError:
        return None
    return Identity(version, observations, actions, period, watchdog, safe)


def sample_of(words: list[str], observations: int) -> Sample | None:
    """Return the sample of an observation; None if it is something else, or a value is not finite."""
    if words[0] != OBSERVATION or len(words) != 4 + observations:
        return None
    try:
        number = int(words[1])
        last = int(words[2])
        values = tuple(map(float, words[4:]))
    except ValueError:
        return None
    state = words[3]
    if state not in (RUNNING, WATCHDOG, STOPPED) or not all(map(math.isfinite, values)):
        return None
    return Sample(number % WRAP, last % WRAP, state, values)


def unwrapped(number: int, near: int) -> int:
    """Return the number of a sample that was sent modulo `WRAP`, as the nearest one to another.

    Examples
    --------
    >>> unwrapped(2, near=65_540), unwrapped(65_535, near=65_540)
    (65538, 65535)
    """
    half = WRAP // 2
    return near + (number - near + half) % WRAP - half


def as_sent(value: float) -> float:
    """Return a number as the other side reads it."""
    return float(f"{value:.9g}")
