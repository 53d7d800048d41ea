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

from spaql.errors import SpaqlError
from spaql.experiments.execute import ATTEMPTS, Outcome
from spaql.experiments.run import Run

_DIED = "The process that was at it died: it was killed, or ran out of memory."


class LocalExecutor:
    """Worker processes, each in a pool of its own.

    When a process dies, its pool breaks and no other: the run it was at is known, and is tried again. All
    workers read from one pipe, their lifeline; when its other end is closed, by `close` or by the death of
    this process, they exit at once.
    """

    def __init__(self, workers: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._lifeline, self._held = self._context.Pipe(duplex=False)
        self._idle = [self._new_pool() for _ in range(workers)]
        self._all = list(self._idle)
        self._deaths, self._deaths_at_most = 0, ATTEMPTS * (workers + 1)

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            1, mp_context=self._context, initializer=_prepare, initargs=(self._lifeline,)
        )

    def close(self) -> None:
        """End all workers, at work or not."""
        self._held.close()
        for pool in self._all:
            pool.shutdown(cancel_futures=True)

    def map(self, task: Callable[[Run], Outcome], runs: Iterator[Run]) -> Iterator[Outcome]:
        """Apply a task to runs, which are taken as workers become free; outcomes come as they are ready."""
        again: deque[tuple[Run, int]] = deque()
        at_work: dict[Future[Outcome], tuple[ProcessPoolExecutor, Run, int]] = {}
        while True:
            while self._idle:
                run, attempt = again.popleft() if again else (next(runs, None), 1)
                if run is None:
                    break
                pool = self._idle.pop()
                at_work[_submit(pool, task, run)] = pool, run, attempt
            if not at_work:
                return
            for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                pool, run, attempt = at_work.pop(future)
                outcome = self._outcome(future, pool, run)
                if outcome.error is not None and attempt < ATTEMPTS:
                    again.append((run, attempt + 1))
                else:
                    yield outcome

    def _outcome(self, future: Future[Outcome], pool: ProcessPoolExecutor, run: Run) -> Outcome:
        """Take what a worker gave back, or put a new one in its place."""
        try:
            outcome = future.result()
        except BrokenProcessPool:
            self._deaths += 1
            if self._deaths == self._deaths_at_most:
                raise SpaqlError(
                    "Every worker process dies, and none has finished a run: is there memory enough, and can "
                    "the script that began the sweep be imported (one from standard input cannot)?"
                ) from None
            self._all.remove(pool)
            self._all.append(self._new_pool())
            self._idle.append(self._all[-1])
            return Outcome(run, error=_DIED)
        self._deaths_at_most = -1  # it can be done
        self._idle.append(pool)
        return outcome


def _submit(pool: ProcessPoolExecutor, task: Callable[[Run], Outcome], run: Run) -> Future[Outcome]:
    try:
        return pool.submit(_attempt, task, run)
    except BrokenProcessPool as error:  # it died while it was idle
        future: Future[Outcome] = Future()
        future.set_exception(error)
        return future


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
