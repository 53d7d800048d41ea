"""What the drivers of the lease tests do, in processes of their own."""

import multiprocessing
import time
from pathlib import Path

from spaql import grid
from spaql.leases import take
from spaql.plugins.sweeps.store import RunStore


def take_and_tidy(root: str, rounds: int) -> None:
    store = RunStore(root)
    runs = grid(["cartpole200"], ["spaql"], scaling=list(range(1, 4)))
    with store.driven():
        for i in range(rounds):
            if store.claim(runs[i % 3]):
                store._tidy(store.working_folder(runs[i % 3]))
                store.release(runs[i % 3])


def take_all(root: str, start: float, results: "multiprocessing.Queue[list[int]]") -> None:
    time.sleep(max(start - time.time(), 0.0))
    taken = {i: take(Path(root) / str(i) / "lease") for i in range(200)}
    results.put([i for i, file in taken.items() if file is not None])
    time.sleep(30)  # alive until it is killed
