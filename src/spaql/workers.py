"""Worker processes on this machine that apply a task to items; a process that dies is replaced."""

from __future__ import annotations

import multiprocessing
import os
import pickle
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
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from spaql.errors import SettingError, SpaqlError
from spaql.formatting import process_end

Item = TypeVar("Item")
Result = TypeVar("Result")

ATTEMPTS = 3
"""Attempts for an item before it counts as failed."""
_SHORT = 0.5
"""Seconds of a task below which a worker gets the next item in advance, so that it never waits."""
_END = 1.0
"""Seconds to wait for the exit code of a process that has died."""


def cores() -> int:
    """Return the number of cores that this process may use, which a cluster's scheduler may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refuse_in_import(call: str) -> None:
    """Raise in a worker that is still importing the script which started it."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SettingError(
            f"A worker process called {call} again, because it imports the script that started it: put the "
            'call under `if __name__ == "__main__":`.'
        )


def sendable(error: Exception) -> Exception:
    """Return an error that is being handled, or one with its traceback if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return SpaqlError(traceback.format_exc())
    return error


@dataclass(frozen=True)
class Answer(Generic[Item, Result]):
    """The result of the task for an item, or why it failed."""

    item: Item
    result: Result | None = None
    error: str | None = None
    died: bool = False
    """Whether its process did."""


class Pool(Protocol):
    """Applies tasks to items: `Workers`, or what the hook `ray` makes."""

    @property
    def size(self) -> int:
        """The number of workers."""

    def close(self) -> None:
        """Stop all workers."""

    def map(self, task: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Answer[Item, Result]]:
        """Yield the answers of a task for items as they are ready; items are taken when workers are free."""


class Workers:
    """Worker processes, each in its own pool.

    When a process dies, only its pool breaks: its item is known, and is tried again. All workers read from
    one pipe, the lifeline; when its other end is closed, by `close` or by the death of this process, they
    exit at once. They are spawned, not forked, on every system. They use as many threads for linear algebra
    as this process, since another number may change the last bits of a result.
    """

    def __init__(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        lifeline, self._held = context.Pipe(duplex=False)

        def new_pool() -> ProcessPoolExecutor:
            return ProcessPoolExecutor(1, mp_context=context, initializer=_prepare, initargs=(lifeline,))

        self._workers = [_Worker(new_pool) for _ in range(workers)]

    @property
    def size(self) -> int:
        """The number of workers."""
        return len(self._workers)

    def close(self) -> None:
        """Stop all workers, whether busy or idle."""
        self._held.close()
        for worker in self._workers:
            worker.pool.shutdown(cancel_futures=True)

    def map(self, task: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Answer[Item, Result]]:
        """Yield the answers of a task for items as they are ready; items are taken when workers are free."""
        again: deque[tuple[Item, int]] = deque()
        deaths = 0
        sound = False
        while True:
            for length in (1, 2):  # first an item for every worker, then a second for fast tasks
                for worker in self._workers:
                    if len(worker.queue) < min(length, worker.room):
                        item, attempt = again.popleft() if again else (next(items, None), 1)
                        if item is not None:
                            worker.submit(task, item, attempt)
            waiting = [tried.future for worker in self._workers for tried in worker.queue]
            if not waiting:
                return
            wait(waiting, return_when=FIRST_COMPLETED)
            for tried, answer in [result for worker in self._workers for result in worker.collect()]:
                if answer is None:
                    again.append((tried.item, tried.attempt))
                    continue
                deaths += answer.died
                sound = sound or not answer.died
                if deaths > ATTEMPTS * len(self._workers) and not sound:
                    raise SpaqlError(
                        "Every worker process dies at start: check that the script that started them can be "
                        "imported (one from standard input cannot), and that there is enough memory."
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
    """A process with its queue of items; the first is the current one."""

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
        """Yield finished items; those that were queued behind one whose process died have no answer."""
        while self.queue and self.queue[0].future.done():
            tried = self.queue.popleft()
            now = time.monotonic()
            self.room = 2 if now - self._began < _SHORT else 1
            self._began = now
            try:
                yield tried, tried.future.result()
            except BrokenProcessPool:
                yield tried, Answer(tried.item, error=self._death(), died=True)
                yield from ((waited, None) for waited in self.queue)
                self.queue.clear()
                self.pool.shutdown(wait=False)
                self.pool = self._new_pool()

    def _death(self) -> str:
        """Return how the process died, of which a broken pool says only that it did."""
        codes: list[int] = []
        for process in list((self.pool._processes or {}).values()):
            process.join(_END)
            codes += [] if process.exitcode is None else [process.exitcode]
        if not codes or codes[0] == -9:
            return "The worker process died: it was killed, or ran out of memory."
        return (
            f"The worker process died ({process_end(codes[0])}): code that it ran, of the environment or a "
            "library that it uses, crashed or ended the process. `spaql check` of the environment says where."
        )


def _attempt(task: Callable[[Item], Result], item: Item) -> Answer[Item, Result]:
    """Return the answer for an item; exceptions are caught here, because not all can be pickled."""
    try:
        return Answer(item, task(item))
    except Exception:
        return Answer(item, error=traceback.format_exc())


def _prepare(lifeline: Connection) -> None:
    """Make a worker ignore Ctrl-C, which the parent handles, and exit with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()


def _die_with(lifeline: Connection) -> None:
    try:
        lifeline.poll(None)  # nothing is ever sent: returns when the other end is closed
    finally:
        os._exit(1)
