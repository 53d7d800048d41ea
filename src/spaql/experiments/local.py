"""Runs on this machine, in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spaql.experiments.execute import Outcome
from spaql.experiments.run import Run
from spaql.workers import Workers


class LocalExecutor:
    """Worker processes that execute runs; one that dies is replaced, and its run tried again."""

    def __init__(self, workers: int) -> None:
        self._workers = Workers(workers)

    def close(self) -> None:
        """End all workers, busy or not."""
        self._workers.close()

    def map(self, task: Callable[[Run], Outcome], runs: Iterator[Run]) -> Iterator[Outcome]:
        """Apply a task to runs, as workers become free; yield outcomes as they are ready."""
        for answer in self._workers.map(task, runs):
            yield Outcome(answer.item, error=answer.error) if answer.result is None else answer.result
