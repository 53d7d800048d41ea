"""What came over the line to a board, and what did not."""

from __future__ import annotations

from dataclasses import dataclass


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
