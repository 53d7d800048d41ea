"""What the drivers of the lease tests do, in processes of their own."""

import errno
import multiprocessing
import time
from pathlib import Path

from spaql import grid, leases
from spaql.leases import Driver
from spaql.plugins.sweeps.store import RunStore


def take_and_tidy(root: str, rounds: int) -> None:
    store = RunStore(root)
    runs = grid(["cartpole200"], ["spaql"], scaling=list(range(1, 4)))
    with store.driver() as driver:
        for i in range(rounds):
            if store.claim(driver, runs[i % 3]):
                store._tidy(store.working_folder(runs[i % 3]))


def take_all(root: str, start: float, results: "multiprocessing.Queue[list[int]]") -> None:
    driver = Driver(Path(root) / "drivers")
    time.sleep(max(start - time.time(), 0.0))
    results.put([i for i in range(200) if driver.take(Path(root) / str(i))])
    time.sleep(30)  # alive until it is killed, or its leases would expire


def take_all_elsewhere(root: str, start: float, results: "multiprocessing.Queue[list[int]]") -> None:
    """Take them as on a system without /proc."""
    leases._PROC = Path(root) / "there is no proc"
    take_all(root, start, results)


def take_all_without_links(root: str, start: float, results: "multiprocessing.Queue[list[int]]") -> None:
    """Take them as on a file system without hard links."""

    def refuse(*args: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    leases.os.link = refuse  # type: ignore[assignment]
    take_all_elsewhere(root, start, results)
