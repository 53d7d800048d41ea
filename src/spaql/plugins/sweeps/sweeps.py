"""Sweeps: execute the runs of a study that are missing in a store."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from spaql.archive import write_atomically
from spaql.errors import SettingError
from spaql.formatting import duration
from spaql.plugins.sweeps.execute import Outcome, execute
from spaql.plugins.sweeps.on_ray import RayWorkers
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.study import check
from spaql.values import whole_number
from spaql.workers import Pool, Workers, cores, refuse_in_import

_POLLS_EVERY = 0.5
"""Seconds between two checks of runs that other drivers execute."""
_SECONDS_A_LINE = 10.0
"""Between two lines."""
_ESTIMATE_FROM = 0.05
"""Share of the runs after which the remaining time is estimated."""


@dataclass(frozen=True)
class Summary:
    """What a sweep did."""

    runs: int
    """All runs of the study."""
    finished_before: int
    finished: int
    """Finished now, by this sweep."""
    finished_elsewhere: int
    """Finished in the meantime by another driver on the same store."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why runs failed, by id."""
    interactions: int = 0
    seconds: float = 0.0


def sweep(
    runs: Sequence[Run],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    ray: str | None = None,
    checkpoint_every: int = 500,
    progress_bar: bool = True,
) -> Summary:
    """Execute the runs that are missing in a store, and nothing else.

    A sweep may be interrupted at any time and started again; several may use one store.

    Parameters
    ----------
    runs
        Made by `spaql.grid`, `spaql.read_study`, or by hand.
    out
        The folder of the store.
    workers
        Processes on this machine; as many as there are cores by default.
    ray
        Instead: the address of a Ray cluster (`HOST:PORT`, `auto` or `local`); `out` is then a folder that
        all its nodes share.
    checkpoint_every
        Iterations between two checkpoints, from which an interrupted run continues.
    progress_bar
        Show the progress, as a line every ten seconds.

    Examples
    --------
    >>> import tempfile
    >>> from spaql.plugins.sweeps.study import grid
    >>> runs = grid(["cartpole200"], ["spaql"], iterations=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep(runs, folder, workers=1, progress_bar=False).finished
    1
    """
    if ray is not None and workers is not None:
        raise SettingError("Give workers on this machine, or a Ray cluster.")
    workers = None if workers is None else whole_number("workers", workers, 1)
    checkpoint_every = whole_number("checkpoint_every", checkpoint_every, 1)
    check(runs)
    refuse_in_import("the sweep")
    runs = list(dict.fromkeys(runs))
    store = RunStore(out)
    task = functools.partial(execute, root=str(store.root), checkpoint_every=checkpoint_every)
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        stack.enter_context(store.driven())
        missing = store.missing(runs)
        progress = SweepProgress(len(runs), len(runs) - len(missing), show=progress_bar)
        done: list[Outcome] = []
        if missing:
            pool: Pool = RayWorkers(ray) if ray is not None else Workers(workers or cores())
            stack.enter_context(contextlib.closing(pool))
            for outcome in _outcomes(pool, task, store, missing):
                progress.update(outcome)
                done.append(outcome)
    failed = {outcome.run.id: outcome.error for outcome in done if outcome.error is not None}
    finished = len(done) - len(failed)
    summary = Summary(
        runs=len(runs),
        finished_before=len(runs) - len(missing),
        finished=finished,
        finished_elsewhere=len(missing) - len(done),
        failed=failed,
        interactions=sum(outcome.interactions for outcome in done),
        seconds=time.perf_counter() - began,
    )
    write_atomically(store.root / "summary.json", (json.dumps(asdict(summary), indent=2) + "\n").encode())
    return summary


def _outcomes(
    pool: Pool, task: Callable[[Run], Outcome], store: RunStore, runs: Sequence[Run]
) -> Iterator[Outcome]:
    """Execute runs that no other driver executes, then those that others abandoned."""
    pause = _POLLS_EVERY
    while runs:
        elsewhere: list[Run] = []
        for answer in pool.map(task, _claimed(store, runs, elsewhere)):
            store.release(answer.item)
            yield answer.result or Outcome(answer.item, error=answer.error)
            pause = _POLLS_EVERY
        runs = [run for run in elsewhere if not store.is_finished(run)]
        if runs:
            time.sleep(pause)
            pause = min(2 * pause, 10 * _POLLS_EVERY)


def _claimed(store: RunStore, runs: Iterable[Run], elsewhere: list[Run]) -> Iterator[Run]:
    for run in runs:
        if store.claim(run):
            yield run
        else:
            elsewhere.append(run)


class SweepProgress:
    """Shows the progress of a sweep."""

    def __init__(self, runs: int, finished_before: int, *, show: bool) -> None:
        self._runs = runs
        self._before = finished_before
        self._done = 0
        self._failed = 0
        self._interactions = 0
        self._began = self._reported = time.monotonic()
        self._show = show
        if finished_before:
            self._print(f"{finished_before} of {runs} runs are finished already")

    def update(self, outcome: Outcome) -> None:
        """Count a run."""
        self._interactions += outcome.interactions
        if outcome.error is None:
            self._done += 1
        else:
            self._failed += 1
            self._print(f"failed: {outcome.run.id}: {outcome.error.strip().splitlines()[-1]}")
        now = time.monotonic()
        ended = self._before + self._done + self._failed
        if now - self._reported <= _SECONDS_A_LINE and ended < self._runs:
            return
        self._reported = now
        tried = self._done + self._failed
        # The first runs wait for the compiler, and are slower than the others.
        known = ended < self._runs and tried >= _ESTIMATE_FROM * (self._runs - self._before)
        left = f"  {duration((self._runs - ended) * (now - self._began) / tried)} left" if known else ""
        failed = f"{self._failed} failed  " if self._failed else ""
        speed = self._interactions / max(now - self._began, 1e-9)
        self._print(f"{ended} of {self._runs} runs  {failed}{speed:,.0f} steps/s{left}")

    def _print(self, line: str) -> None:
        if self._show:
            print(line, file=sys.stderr, flush=True)
