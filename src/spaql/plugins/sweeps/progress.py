"""The progress of a sweep, as lines on stderr."""

from __future__ import annotations

import sys
import time

from spaql.formatting import duration
from spaql.plugins.sweeps.execute import Outcome

_SECONDS_A_LINE = 10.0
"""Between two lines."""
_ESTIMATE_FROM = 0.05
"""Share of the runs after which the remaining time is estimated."""


class SweepProgress:
    """Shows the progress of a sweep."""

    def __init__(self, runs: int, finished_before: int, *, show: bool) -> None:
        self._runs = runs
        self._before = finished_before
        self._done = 0
        self._failed = 0
        self._interactions = 0
        self._began = self._reported = time.monotonic()
        self._show = show
        if finished_before:
            self._print(f"{finished_before} of {runs} runs are finished already")

    def update(self, outcome: Outcome) -> None:
        """Count a run."""
        self._interactions += outcome.interactions
        if outcome.error is None:
            self._done += 1
        else:
            self._failed += 1
            self._print(f"failed: {outcome.run.id}: {outcome.error.strip().splitlines()[-1]}")
        now = time.monotonic()
        ended = self._before + self._done + self._failed
        if now - self._reported <= _SECONDS_A_LINE and ended < self._runs:
            return
        self._reported = now
        tried = self._done + self._failed
        # The first runs wait for the compiler, and are slower than the others.
        known = ended < self._runs and tried >= _ESTIMATE_FROM * (self._runs - self._before)
        left = f"  {duration((self._runs - ended) * (now - self._began) / tried)} left" if known else ""
        failed = f"{self._failed} failed  " if self._failed else ""
        speed = self._interactions / max(now - self._began, 1e-9)
        self._print(f"{ended} of {self._runs} runs  {failed}{speed:,.0f} steps/s{left}")

    def _print(self, line: str) -> None:
        if self._show:
            print(line, file=sys.stderr, flush=True)
