"""The progress of a training: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from spaql.formatting import number, places

_LINES_AT_MOST = 10
"""Number of lines printed over a whole training where there is no terminal."""

_SECONDS_A_FRAME = 0.05
_PREPARING = "preparing (the first training on a plant compiles it, which takes a few seconds)"
_COMPILING = "compiling kernels, which are cached for all later trainings"


class Progress:
    """Show the progress of iterations, or training steps, up to the last one."""

    def __init__(
        self,
        iteration: int,
        last_iteration: int | None,
        step: int,
        last_step: int | None,
        *,
        show: bool,
    ) -> None:
        self._by_steps = last_iteration is None
        self._first = step if self._by_steps else iteration
        self._last = (last_step if self._by_steps else last_iteration) or 0
        self._show = show
        self._live: Any = None
        self._lines = 0
        self._drawn = 0.0
        self._interactions: float | None = None
        self._began = time.perf_counter()
        if show and sys.stderr.isatty():
            self._open_bar()

    def close(self) -> None:
        """Stop updating the bar."""
        if self._live is not None:
            self._live.stop()

    def _open_bar(self) -> None:
        from rich.console import Console, Group
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
        from rich.text import Text

        self._bar = RichProgress(
            TextColumn("training steps" if self._by_steps else "iteration"),
            MofNCompleteColumn(),
            BarColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
        )
        self._task = self._bar.add_task("", total=self._last, completed=self._first)
        self._status_line = Text(_PREPARING, overflow="ellipsis", no_wrap=True)
        self._live = Live(Group(self._bar, self._status_line), console=Console(stderr=True))
        self._live.start()

    def update(self, row: dict[str, float]) -> None:
        """Show the newest row of the history."""
        if not self._show:
            return
        if self._interactions is None:  # earlier trainings do not count in the speed
            self._interactions = row["interactions"]
            self._began = time.perf_counter()
        at = row["training_steps" if self._by_steps else "iteration"]
        if self._live is not None:
            now = time.perf_counter()
            if at < self._last and now - self._drawn < _SECONDS_A_FRAME:
                return
            self._drawn = now
            self._bar.update(self._task, completed=min(at, self._last))
            self._status_line.plain = self._status(row)
            return
        share = (at - self._first) / max(self._last - self._first, 1)
        if share * _LINES_AT_MOST >= self._lines:
            self._lines = int(share * _LINES_AT_MOST) + 1
            print(f"iteration {row['iteration']:g}: {self._status(row)}", file=sys.stderr, flush=True)

    def _status(self, row: dict[str, float]) -> str:
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


class Compiling:
    """Show the progress of compilation: a bar on a terminal, a line elsewhere."""

    def __init__(self, *, show: bool) -> None:
        self._show = show
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Show the number of compiled kernels."""
        if not self._show:
            return
        if not sys.stderr.isatty():
            if done == 0:
                print(_COMPILING, file=sys.stderr, flush=True)
            return
        if self._bar is None:
            self._bar = _bar(_COMPILING)
            self._task = self._bar.add_task("", total=total)
            self._bar.start()
        self._bar.update(self._task, completed=done)

    def close(self) -> None:
        """Stop updating the bar."""
        if self._bar is not None:
            self._bar.stop()


def _bar(what: str) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn(what), BarColumn(), MofNCompleteColumn()
    return Progress(*columns, console=Console(stderr=True))
