"""The progress of a sweep: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from spaql.formatting import duration
from spaql.plugins.sweeps.execute import Outcome

_SECONDS_A_LINE = 10.0
"""Between two lines, without a terminal."""
_ESTIMATE_FROM = 0.05
"""Share of the runs after which the remaining time is estimated."""


class SweepProgress:
    """Shows the progress of a sweep."""

    def __init__(self, runs: int, finished_before: int, *, show: bool) -> None:
        self._runs = runs
        self._before = finished_before
        self._done = self._failed = self._interactions = 0
        self._began = self._reported = time.monotonic()
        self._show = show
        self._bar: Any = None
        if show and sys.stderr.isatty():
            self._open_bar()
        elif show and finished_before:
            print(f"{finished_before} of {runs} runs are finished already", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()

    def _open_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("runs"),
            MofNCompleteColumn(),
            BarColumn(),
            TimeRemainingColumn(),
            TextColumn("left  {task.description}"),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("", total=self._runs, completed=self._before)
        self._bar.start()

    def update(self, outcome: Outcome) -> None:
        """Count a run."""
        self._interactions += outcome.interactions
        if outcome.error is None:
            self._done += 1
        else:
            self._failed += 1
            self._print(f"failed: {outcome.run.id}: {outcome.error.strip().splitlines()[-1]}")
        if self._bar is not None:
            self._bar.update(self._task, completed=self._before + self._done, description=self._status())
        elif time.monotonic() - self._reported > _SECONDS_A_LINE or self._count() == self._runs:
            self._reported = time.monotonic()
            each = (self._reported - self._began) / (self._done + self._failed)
            missing = self._runs - self._count()
            # The first runs wait for the compiler, and are slower than the others.
            known = self._done + self._failed >= _ESTIMATE_FROM * (self._runs - self._before)
            left = f"  {duration(missing * each)} left" if missing and known else ""
            self._print(f"{self._count()} of {self._runs} runs  {self._status()}{left}")

    def _count(self) -> int:
        return self._before + self._done + self._failed

    def _status(self) -> str:
        speed = self._interactions / max(time.monotonic() - self._began, 1e-9)
        failed = f"{self._failed} failed  " if self._failed else ""
        return f"{failed}{speed:,.0f} steps/s"

    def _print(self, line: str) -> None:
        if not self._show:
            return
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=sys.stderr, flush=True)
