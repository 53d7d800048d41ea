"""Runs on this machine: one process for each core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import NamedTuple

from spaql.errors import SpaqlError
from spaql.experiments.execute import ATTEMPTS, Outcome
from spaql.experiments.run import Run

_SHORT = 0.5
"""Seconds of a run below which a worker gets the next one before it is done, and never waits for it."""
_DIED = "The process that was at it died: it was killed, or ran out of memory."


class LocalExecutor:
    """Worker processes, each in a pool of its own.

    When a process dies, its pool breaks and no other: the run it was at is known, and is tried again. All
    workers read from one pipe, their lifeline; when its other end is closed, by `close` or by the death of
    this process, they exit at once.
    """

    def __init__(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        lifeline, self._held = context.Pipe(duplex=False)

        def new_pool() -> ProcessPoolExecutor:
            return ProcessPoolExecutor(1, mp_context=context, initializer=_prepare, initargs=(lifeline,))

        self._workers = [_Worker(new_pool) for _ in range(workers)]

    def close(self) -> None:
        """End all workers, at work or not."""
        self._held.close()
        for worker in self._workers:
            worker.pool.shutdown(cancel_futures=True)

    def map(self, task: Callable[[Run], Outcome], runs: Iterator[Run]) -> Iterator[Outcome]:
        """Apply a task to runs, which are taken as workers become free; outcomes come as they are ready."""
        again: deque[tuple[Run, int]] = deque()
        deaths, sound = 0, False
        while True:
            for length in (1, 2):  # first a run for every worker, then the next one for the quick
                for worker in self._workers:
                    if len(worker.queue) < min(length, worker.room):
                        run, attempt = again.popleft() if again else (next(runs, None), 1)
                        if run is not None:
                            worker.submit(task, run, attempt)
            waiting = [tried.future for worker in self._workers for tried in worker.queue]
            if not waiting:
                return
            wait(waiting, return_when=FIRST_COMPLETED)
            for tried, outcome in [found for worker in self._workers for found in worker.collect()]:
                if outcome is None:
                    again.append((tried.run, tried.attempt))
                    continue
                died = outcome.error == _DIED
                deaths, sound = deaths + died, sound or not died
                if deaths > ATTEMPTS * len(self._workers) and not sound:
                    raise SpaqlError(
                        "Every worker process dies at once: can the script that began the sweep be imported "
                        "(one from standard input cannot), and is there memory enough?"
                    )
                if outcome.error is not None and tried.attempt < ATTEMPTS:
                    again.append((tried.run, tried.attempt + 1))
                else:
                    yield outcome


class _Try(NamedTuple):
    run: Run
    attempt: int
    future: Future[Outcome]


class _Worker:
    """A process, and the runs it was given, the one it is at first."""

    def __init__(self, new_pool: Callable[[], ProcessPoolExecutor]) -> None:
        self._new_pool = new_pool
        self.pool = new_pool()
        self.queue: deque[_Try] = deque()
        self.room = 1
        self._began = 0.0

    def submit(self, task: Callable[[Run], Outcome], run: Run, attempt: int) -> None:
        if not self.queue:
            self._began = time.monotonic()
        try:
            future = self.pool.submit(_attempt, task, run)
        except BrokenProcessPool as error:
            future = Future()
            future.set_exception(error)
        self.queue.append(_Try(run, attempt, future))

    def collect(self) -> Iterator[tuple[_Try, Outcome | None]]:
        """Take what is done off the queue; runs that only waited behind a death have no outcome."""
        while self.queue and self.queue[0].future.done():
            tried = self.queue.popleft()
            now = time.monotonic()
            self.room = 2 if now - self._began < _SHORT else 1
            self._began = now
            try:
                yield tried, tried.future.result()
            except BrokenProcessPool:
                yield tried, Outcome(tried.run, error=_DIED)
                yield from ((waited, None) for waited in self.queue)
                self.queue.clear()
                self.pool.shutdown(wait=False)
                self.pool = self._new_pool()


def _attempt(task: Callable[[Run], Outcome], run: Run) -> Outcome:
    """Catch what goes wrong where it goes wrong: not every exception can be sent to another process."""
    try:
        return task(run)
    except Exception:
        return Outcome(run, error=traceback.format_exc())


def _prepare(lifeline: Connection) -> None:
    """Make a worker deaf to Ctrl-C, which the driver handles, and let it die with its driver."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()


def _die_with(lifeline: Connection) -> None:
    try:
        lifeline.poll(None)  # nothing is ever sent: it is ready when the other end is closed
    finally:
        os._exit(1)
