"""The progress of a training: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from spaql.formatting import duration, number, places

_LINES_AT_MOST = 10
"""Number of lines printed over a whole training where there is no terminal."""

_SECONDS_TO_KNOW = 3.0
_SHARE_TO_KNOW = 0.05
"""Seconds, and share of a training, after which the time that is left is estimated."""
_PREPARING = "the first training on a plant compiles it, which takes a few seconds"


class Progress:
    """Show the phase of a training, how far it is and what it returns, up to the last iteration or step."""

    def __init__(
        self,
        iteration: float,
        last_iteration: int | None,
        step: float,
        last_step: int | None,
        *,
        steady: bool,
        show: bool,
    ) -> None:
        self._by_steps = last_iteration is None
        self._at = step if self._by_steps else iteration
        self._last = (last_step if self._by_steps else last_iteration) or 0
        self._start = self._first = self._at
        self._steady = steady
        self._show = show
        self._phase = "preparing"
        self._status = _PREPARING
        self._live: Any = None
        self._lines = 0
        self._interactions: float | None = None
        self._began = time.perf_counter()
        self._updated = self._began
        if show and sys.stderr.isatty():
            self._open_bar()

    def close(self) -> None:
        """Stop updating the bar."""
        if self._live is not None:
            self._live.stop()

    def _open_bar(self) -> None:
        from rich.live import Live
        from rich.progress import TextColumn

        unit = "steps" if self._by_steps else "iterations"
        count = TextColumn("{task.completed:,.0f}/{task.total:,.0f} " + unit)
        self._bar = _bar("{task.description}", count, TextColumn("{task.fields[time]}"))
        self._task = self._bar.add_task("", total=self._last, time="")
        self._live = Live(get_renderable=self._rendered, console=self._bar.console)
        self._live.start()

    def _rendered(self) -> Any:
        """Return the bar and the line below it, as they are now."""
        from rich.console import Group
        from rich.text import Text

        done = min(self._at, self._last)
        self._bar.update(self._task, completed=done, description=self._phase, time=self._time())
        return Group(self._bar, Text(self._status, overflow="ellipsis", no_wrap=True))

    def _time(self) -> str:
        """Return the time that is left, if steps are alike and the next is not overdue, or spent."""
        now = time.perf_counter()
        spent = self._updated - self._began
        done = self._at - self._first
        if self._steady and spent >= _SECONDS_TO_KNOW and done >= _SHARE_TO_KNOW * (self._last - self._first):
            left = spent * (self._last - self._at) / done - (now - self._updated)
            if left > 0:
                return f"about {duration(math.ceil(left))} left"
        return f"{duration(round(now - self._began))} so far"

    def begin(self, phase: str) -> None:
        """Show a phase that takes a while, which begins now."""
        self._phase = phase
        if self._show and self._live is None:
            print(f"{phase} ...", file=sys.stderr, flush=True)

    def update(self, row: dict[str, float], phase: str) -> None:
        """Show the newest row of the history, and the phase that follows."""
        if not self._show:
            return
        self._at = row["training_steps" if self._by_steps else "iteration"]
        self._updated = time.perf_counter()
        if self._interactions is None:  # earlier trainings, and what is compiled, do not count in the speed
            self._interactions = row["interactions"]
            self._began = self._updated
            self._first = self._at
        self._phase = phase
        self._status = self._shown(row)
        if self._live is not None:
            return
        share = (self._at - self._start) / max(self._last - self._start, 1)
        if share * _LINES_AT_MOST >= self._lines:
            self._lines = int(share * _LINES_AT_MOST) + 1
            print(f"iteration {row['iteration']:g}: {self._status}", file=sys.stderr, flush=True)

    def _shown(self, row: dict[str, float]) -> str:
        seconds = max(time.perf_counter() - self._began, 1e-9)
        speed = (row["interactions"] - (self._interactions or 0)) / seconds
        returned = row["mean_return"]
        best = row["best_return"]
        digits = places(max(abs(returned), abs(best)))
        shown = ["cut by the budget" if math.isnan(returned) else f"return {number(returned, digits)}"]
        if not math.isnan(best):
            shown.append(f"best {number(best, digits)}")
        if "arms" in row:
            shown += [f"arms {row['arms']:,.0f}", f"temperature {row['temperature']:.2g}"]
        if row.get("leaves"):
            shown.append(f"leaves {row['leaves']:g}")
        if speed > 0:
            shown.append(f"{speed:,.0f} steps/s")
        return "  ".join(shown)


def _bar(what: str, *more: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn(what), BarColumn(), *(more or (MofNCompleteColumn(),))
    return Progress(*columns, console=Console(stderr=True))
