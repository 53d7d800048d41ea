"""Ctrl-C between two iterations of a training, never inside compiled code."""

from __future__ import annotations

import signal
from typing import Any, Self

from spaql.agents import Agent


class StopOnInterrupt:
    """A callback that ends training after the iteration in which Ctrl-C was pressed.

    Pressing it again ends the command at once.
    """

    pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def __call__(self, agent: Agent, row: dict[str, float]) -> bool:
        """Return whether to continue: not after Ctrl-C."""
        return not self.pressed

    def saved(self) -> None:
        """Restore the previous effect of Ctrl-C.

        If it was pressed already, pressing it again kills the process directly, because Python's handlers are
        not called while compiled code runs.
        """
        signal.signal(signal.SIGINT, signal.SIG_DFL if self.pressed else self._before)

    def _on_interrupt(self, number: int, frame: Any) -> None:
        self.pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
