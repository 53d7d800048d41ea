"""The memory of the processes of a sweep: what it takes to begin with, and what each finished run adds.

    python benchmarks/memory.py --runs 800

A sweep is left alone, and the resident memory of its driver and workers is written down beside the number of
finished runs. A process grows while it imports, and while it meets each kernel for the first time; on a busy
machine that takes a minute and more on the clock. So what counts is what every run adds after the first ones,
with its interval: what is kept of a run, were it only its history, is thousands of bytes. Linux only.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from chaos import STUDY, members, start

from spaql.experiments import RunStore
from spaql.stats import mean_ci95

FIRST = 120
"""Runs of a sweep in which its processes come to know every kernel."""
BLOCK = 40
"""Runs over which memory is averaged."""
HELPER_MB = 50
"""Below this it is Python's own helper, which counts semaphores."""
KEPT_AT_MOST = 4.0
"""kB a run. The history of a run of 200 iterations is 13, its partitions are more than a hundred."""


def resident_kb(pid: int) -> float | None:
    """Give the resident memory of a process, if it lives."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGESIZE") / 1024 if pages else None


def watch(sweep: subprocess.Popen[bytes], store: RunStore) -> dict[int, list[tuple[int, float]]]:
    """Write down, until a sweep ends, the memory of each of its processes at so many finished runs."""
    seen: dict[int, list[tuple[int, float]]] = {}
    while sweep.poll() is None:
        time.sleep(0.1)
        finished = len(store.finished())
        for pid in members(sweep.pid):
            if (resident := resident_kb(pid)) is not None:
                seen.setdefault(pid, []).append((finished, resident))
    return seen


def kept_a_run(points: list[tuple[int, float]], first: int = FIRST) -> tuple[float, float] | None:
    """Give the kB that a process keeps of a run, and half the width of the interval (95 %).

    What is added from one block of runs to the next is averaged. None if there are too few of them.

    >>> kept_a_run([(run, 1e5 + 7.0 * run) for run in range(400)])
    (7.0, 0.0)
    >>> leaky, half = kept_a_run([(run, 1e5 + 13.0 * run + run % 7) for run in range(400)])
    >>> leaky - half > KEPT_AT_MOST
    True
    """
    later = np.array([point for point in points if point[0] >= first], np.float64).reshape(-1, 2)
    block = (later[:, 0] - first) // BLOCK
    if len(np.unique(block)) < 4:
        return None
    added = np.diff([later[block == i].mean(axis=0) for i in np.unique(block)], axis=0)
    estimate, half = mean_ci95(added[:, 1] / added[:, 0])
    return round(estimate, 3), round(half, 3)


def steady(runs: int) -> dict[str, Any]:
    """Leave a sweep alone, and give what its processes keep of a run."""
    with tempfile.TemporaryDirectory() as folder:
        study, out = Path(folder) / "study.toml", Path(folder) / "out"
        study.write_text(STUDY.format(seeds=runs // 4))
        sweep = start(study, out)
        seen = watch(sweep, RunStore(out))
        assert sweep.returncode == 0
    parts = {}
    for pid, points in seen.items():
        peak = max(resident for _, resident in points) / 1024
        if (found := kept_a_run(points)) is not None and peak > HELPER_MB:
            name = "driver" if pid == sweep.pid else f"worker {pid}"
            parts[name] = {"kb_a_run": found[0], "plus_minus": found[1], "peak_mb": round(peak, 1)}
    if len(parts) < 3:
        raise SystemExit("There are too few runs to tell: the driver and both workers must have some.")
    return {
        "runs": runs,
        "load": round(os.getloadavg()[0], 1),
        "kb_a_run_at_most": round(max(part["kb_a_run"] + part["plus_minus"] for part in parts.values()), 3),
        "peak_mb": max(part["peak_mb"] for part in parts.values()),
        **parts,
    }


@click.command()
@click.option("--runs", default=800, show_default=True, help="of the sweep, a multiple of four")
def main(runs: int) -> None:
    """Show what the processes of a sweep keep of every run."""
    report = steady(runs)
    click.echo(json.dumps(report, indent=2))
    if report["kb_a_run_at_most"] > KEPT_AT_MOST:
        raise SystemExit("Memory grows with every run.")


if __name__ == "__main__":
    main()
