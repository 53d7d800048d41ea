"""Runs on this machine: one process for each core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import NamedTuple

from spaql.experiments.execute import ATTEMPTS, Outcome
from spaql.experiments.run import Run

_QUEUED = 2
"""Runs that a worker has: the one it is at, and the next, so that it never waits for the driver."""


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
        while True:
            for _ in range(_QUEUED):  # first one for every worker, then the next
                for worker in self._workers:
                    if len(worker.queue) < _QUEUED:
                        run, attempt = again.popleft() if again else (next(runs, None), 1)
                        if run is not None:
                            worker.submit(task, run, attempt)
            waiting = [tried.future for worker in self._workers for tried in worker.queue]
            if not waiting:
                return
            wait(waiting, return_when=FIRST_COMPLETED)
            for worker in self._workers:
                yield from worker.collect(again)


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

    def submit(self, task: Callable[[Run], Outcome], run: Run, attempt: int) -> None:
        try:
            future = self.pool.submit(task, run)
        except BrokenProcessPool:
            if self.queue:  # they will say so themselves
                future = Future()
                future.set_exception(BrokenProcessPool())
            else:
                self.pool = self._new_pool()
                future = self.pool.submit(task, run)
        self.queue.append(_Try(run, attempt, future))

    def collect(self, again: deque[tuple[Run, int]]) -> Iterator[Outcome]:
        """Take what is done off the queue; what has to be tried again goes to `again`."""
        while self.queue and self.queue[0].future.done():
            tried = self.queue.popleft()
            failure = tried.future.exception()
            if failure is None:
                yield tried.future.result()
                continue
            if isinstance(failure, BrokenProcessPool):
                again.extend((waited.run, waited.attempt) for waited in self.queue)
                self.queue.clear()
                self.pool.shutdown(wait=False)
                self.pool = self._new_pool()
            if tried.attempt < ATTEMPTS:
                again.append((tried.run, tried.attempt + 1))
            else:
                yield Outcome(tried.run, error="".join(traceback.format_exception(failure)))


def _prepare(lifeline: Connection) -> None:
    """Make a worker deaf to Ctrl-C, which the driver handles, and let it die with its driver."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()


def _die_with(lifeline: Connection) -> None:
    lifeline.poll(None)  # nothing is ever sent: it is ready when the other end is closed
    os._exit(1)
