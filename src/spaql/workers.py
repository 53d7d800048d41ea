"""Worker processes on this machine: a task is applied to items, and a process that dies is replaced."""

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
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Generic, NamedTuple, TypeVar

from spaql.errors import SettingError, SpaqlError

Item = TypeVar("Item")
Result = TypeVar("Result")

ATTEMPTS = 3
"""How often an item is tried before it counts as failed."""
_SHORT = 0.5
"""Seconds of a task below which a worker gets the next item before it is done, and never waits for it."""
_DIED = "The process that was at it died: it was killed, or ran out of memory."


def cores() -> int:
    """Count the cores that this process may use, which a cluster's scheduler may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refuse_in_import(call: str) -> None:
    """Refuse to start workers in a worker that is still importing the script which started it."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SettingError(
            f"A worker process began {call} anew, because it imports the script that started it: put the "
            'call under `if __name__ == "__main__":`.'
        )


@dataclass(frozen=True)
class Answer(Generic[Item, Result]):
    """What became of an item: the result of the task, or why it failed."""

    item: Item
    result: Result | None = None
    error: str | None = None


class Workers:
    """Worker processes, each in a pool of its own.

    When a process dies, its pool breaks and no other: the item it was at is known, and is tried again. All
    workers read from one pipe, their lifeline; when its other end is closed, by `close` or by the death of
    this process, they exit at once. They are spawned, not forked, on every system. They use as many threads
    for linear algebra as this process, since another number of them may change the last bits of a result.
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

    def map(self, task: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Answer[Item, Result]]:
        """Apply a task to items, which are taken as workers become free; answers come as they are ready."""
        again: deque[tuple[Item, int]] = deque()
        deaths, sound = 0, False
        while True:
            for length in (1, 2):  # first an item for every worker, then the next one for the quick
                for worker in self._workers:
                    if len(worker.queue) < min(length, worker.room):
                        item, attempt = again.popleft() if again else (next(items, None), 1)
                        if item is not None:
                            worker.submit(task, item, attempt)
            waiting = [tried.future for worker in self._workers for tried in worker.queue]
            if not waiting:
                return
            wait(waiting, return_when=FIRST_COMPLETED)
            for tried, answer in [found for worker in self._workers for found in worker.collect()]:
                if answer is None:
                    again.append((tried.item, tried.attempt))
                    continue
                died = answer.error == _DIED
                deaths, sound = deaths + died, sound or not died
                if deaths > ATTEMPTS * len(self._workers) and not sound:
                    raise SpaqlError(
                        "Every worker process dies at once: can the script that started them be imported "
                        "(one from standard input cannot), and is there memory enough?"
                    )
                if answer.error is not None and tried.attempt < ATTEMPTS:
                    again.append((tried.item, tried.attempt + 1))
                else:
                    yield answer


class _Attempt(NamedTuple):
    item: Any
    attempt: int
    future: Future[Any]


class _Worker:
    """A process, and the items it was given, the one it is at first."""

    def __init__(self, new_pool: Callable[[], ProcessPoolExecutor]) -> None:
        self._new_pool = new_pool
        self.pool = new_pool()
        self.queue: deque[_Attempt] = deque()
        self.room = 1
        self._began = 0.0

    def submit(self, task: Callable[[Any], Any], item: Any, attempt: int) -> None:
        if not self.queue:
            self._began = time.monotonic()
        try:
            future = self.pool.submit(_attempt, task, item)
        except BrokenProcessPool as error:
            future = Future()
            future.set_exception(error)
        self.queue.append(_Attempt(item, attempt, future))

    def collect(self) -> Iterator[tuple[_Attempt, Answer[Any, Any] | None]]:
        """Take what is done off the queue; items that only waited behind a death have no answer."""
        while self.queue and self.queue[0].future.done():
            tried = self.queue.popleft()
            now = time.monotonic()
            self.room = 2 if now - self._began < _SHORT else 1
            self._began = now
            try:
                yield tried, tried.future.result()
            except BrokenProcessPool:
                yield tried, Answer(tried.item, error=_DIED)
                yield from ((waited, None) for waited in self.queue)
                self.queue.clear()
                self.pool.shutdown(wait=False)
                self.pool = self._new_pool()


def _attempt(task: Callable[[Item], Result], item: Item) -> Answer[Item, Result]:
    """Catch what goes wrong where it goes wrong: not every exception can be sent to another process."""
    try:
        return Answer(item, task(item))
    except Exception:
        return Answer(item, error=traceback.format_exc())


def _prepare(lifeline: Connection) -> None:
    """Make a worker deaf to Ctrl-C, which the parent handles, and let it die with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()


def _die_with(lifeline: Connection) -> None:
    try:
        lifeline.poll(None)  # nothing is ever sent: it is ready when the other end is closed
    finally:
        os._exit(1)
