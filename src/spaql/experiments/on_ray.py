"""Runs on a Ray cluster."""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from spaql.errors import MissingExtraError, SettingError
from spaql.experiments.execute import Outcome
from spaql.experiments.run import Run
from spaql.workers import ATTEMPTS

_QUEUED = 2
"""Tasks for each core of the cluster: one running, and one queued."""

_COUNTS_EVERY = 5.0
"""Seconds between two checks of the size of the cluster, which may change."""


class RayExecutor:
    """Tasks on a Ray cluster, one core each; those that die with a worker or a node are tried again.

    Parameters
    ----------
    address
        `HOST:PORT` of a cluster, `auto` for the one that this machine belongs to, or `local` for a new one
        on this machine alone.
    """

    def __init__(self, address: str) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("Ray is not installed: pip install 'spaql[ray]'.") from error
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            try:
                _check_listening(address)
                ray.init(address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
            except (OSError, ValueError) as error:
                raise SettingError(
                    f"No Ray cluster at {address!r}: start one with `ray start --head`, or use the address "
                    f"`local`. ({error})"
                ) from error

    def close(self) -> None:
        """Leave the cluster; running tasks end."""
        if self._ours:
            self._ray.shutdown()

    def map(self, task: Callable[[Run], Outcome], runs: Iterator[Run]) -> Iterator[Outcome]:
        """Apply a task to runs, as cores become free; yield outcomes as they are ready."""
        ray = self._ray

        def call(run: Run) -> Outcome:
            return task(run)

        remote = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1, retry_exceptions=True)(call)
        at_work: dict[Any, Run] = {}
        try:
            yield from self._outcomes(remote, runs, at_work)
        finally:
            for reference in at_work:
                ray.cancel(reference)

    def _outcomes(self, remote: Any, runs: Iterator[Run], at_work: dict[Any, Run]) -> Iterator[Outcome]:
        ray = self._ray
        counted = -math.inf
        while True:
            if time.monotonic() - counted > _COUNTS_EVERY:
                counted, cores = time.monotonic(), max(1, int(ray.cluster_resources().get("CPU", 1)))
            while len(at_work) < cores * _QUEUED and (run := next(runs, None)) is not None:
                at_work[remote.remote(run)] = run
            if not at_work:
                return
            ray.wait(list(at_work), num_returns=1, timeout=_COUNTS_EVERY)
            ready, _ = ray.wait(list(at_work), num_returns=len(at_work), timeout=0)
            for reference in ready:
                run = at_work.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as failure:
                    yield Outcome(run, error=str(failure) or repr(failure))


def _check_listening(address: str) -> None:
    """Check that something listens at HOST:PORT; Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()
