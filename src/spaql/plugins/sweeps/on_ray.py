"""Workers on a Ray cluster that apply a task to items."""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from spaql.errors import MissingExtraError, SettingError
from spaql.workers import ATTEMPTS, Answer, Item, Result

_QUEUED = 2
"""Tasks for each core of the cluster: one running, and one queued."""

_COUNTS_EVERY = 5.0
"""Seconds between two checks of the size of the cluster, which may change."""


class RayWorkers:
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
        self._task: Callable[..., Any] | None = None
        self._remote: Any = None
        self._size = 1
        self._counted = -math.inf

    @property
    def size(self) -> int:
        """The number of cores of the cluster, as last counted."""
        if time.monotonic() - self._counted > _COUNTS_EVERY:
            self._counted = time.monotonic()
            self._size = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return self._size

    def close(self) -> None:
        """Leave the cluster; running tasks end."""
        if self._ours:
            self._ray.shutdown()

    def map(self, task: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Answer[Item, Result]]:
        """Yield the answers of a task for items as they are ready; items are taken when cores are free."""
        at_work: dict[Any, Item] = {}
        try:
            yield from self._answers(self._sent(task), items, at_work)
        finally:
            for reference in at_work:
                self._ray.cancel(reference)

    def _sent(self, task: Callable[[Item], Result]) -> Any:
        """Return the task as a remote function; one that is used again is sent once."""
        if task is not self._task:

            def call(item: Item) -> Result:
                return task(item)

            options = {"num_cpus": 1, "max_retries": ATTEMPTS - 1, "retry_exceptions": True}
            self._task = task
            self._remote = self._ray.remote(**options)(call)
        return self._remote

    def _answers(
        self, remote: Any, items: Iterator[Item], at_work: dict[Any, Item]
    ) -> Iterator[Answer[Item, Any]]:
        ray = self._ray
        while True:
            while len(at_work) < self.size * _QUEUED and (item := next(items, None)) is not None:
                at_work[remote.remote(item)] = item
            if not at_work:
                return
            ray.wait(list(at_work), num_returns=1, timeout=_COUNTS_EVERY)
            ready, _ = ray.wait(list(at_work), num_returns=len(at_work), timeout=0)
            for reference in ready:
                item = at_work.pop(reference)
                try:
                    yield Answer(item, ray.get(reference))
                except ray.exceptions.RayError as failure:
                    yield Answer(item, error=str(failure) or repr(failure))


def _check_listening(address: str) -> None:
    """Check that something listens at HOST:PORT; Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()
