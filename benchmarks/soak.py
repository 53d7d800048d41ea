"""Sweep for half an hour on a small disk that fills up now and then, while workers and drivers are killed.

    python benchmarks/soak.py --minutes 30

One study is executed again and again, each time into an empty folder on a tmpfs of a few megabytes. For
every half a second that it has had on the processor, and at most twice a second on the wall, the dice are
thrown: a worker is killed -9, the driver is killed -9, or the disk is filled to the last byte for a while. A
sweep that has ended is started again until all its runs are finished; then they must be there once, with the
bytes of an undisturbed sweep, and nothing else. No process may take more memory than those of a sweep that is
left alone, which keep nothing of a run (see `memory.py`), and none may outlive its driver for long. Linux, as
root (to mount).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from chaos import (
    ORPHANS_GONE,
    STUDY,
    add,
    ended,
    examine,
    members,
    processor_seconds,
    start,
    wait_for_end,
    workers_of,
)
from memory import KEPT_AT_MOST, resident_kb, steady

from spaql.experiments import RunStore

MORE_AT_MOST = 30.0
"""MB that a process may take beyond those of a sweep that is left alone."""
Counts = dict[str, float]


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """Mount a tmpfs of a few megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> None:
    """Write until nothing more can be written."""
    with contextlib.suppress(OSError), open(disk / "ballast", "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


class Memory:
    """The resident memory of processes: how many were seen, and what the largest took."""

    def __init__(self) -> None:
        self.born: dict[int, float] = {}
        self.peak = self.longest = 0.0

    def look(self, pids: list[int]) -> None:
        for pid in pids:
            self.longest = max(self.longest, time.monotonic() - self.born.setdefault(pid, time.monotonic()))
            self.peak = max(self.peak, (resident_kb(pid) or 0.0) / 1024)


def disturb(sweep: subprocess.Popen[bytes], disk: Path, rng: np.random.Generator, counts: Counts) -> None:
    """Throw the dice."""
    ballast = disk / "ballast"
    if ballast.exists():
        if rng.random() < 0.1:
            ballast.unlink()
    elif rng.random() < 0.02:
        fill(disk)
        counts["full_disks"] += 1
    if rng.random() < 0.15 and (victims := workers_of(sweep.pid)):
        os.kill(int(rng.choice(victims)), signal.SIGKILL)
        counts["worker_kills"] += 1
    if rng.random() < 0.04 and sweep.poll() is None:
        sweep.kill()
        counts["driver_kills"] += 1


def soak_once(
    study: Path,
    disk: Path,
    runs: int,
    rng: np.random.Generator,
    memory: Memory,
    counts: Counts,
    end: float,
) -> None:
    """Execute the study once, however often it takes; past the end it is let alone."""
    out = disk / "out"
    while len(RunStore(out).finished()) < runs:
        sweep = start(study, out)
        counts["starts"] += 1
        spent = 0.0
        while sweep.poll() is None:
            time.sleep(0.5)
            memory.look(members(sweep.pid))
            if time.monotonic() >= end:
                (disk / "ballast").unlink(missing_ok=True)
            elif (now := processor_seconds(sweep.pid)) > spent + 0.5:
                # By the wall's clock, a busy machine would see workers killed before they have imported.
                disturb(sweep, disk, rng, counts)
                spent = now
        add(counts, wait_for_end(sweep.pid))


@click.command()
@click.option("--minutes", default=30.0, show_default=True)
@click.option("--runs", default=80, show_default=True, help="of the study, a multiple of four")
@click.option("--steady-runs", default=800, show_default=True, help="of the sweep that is left alone")
@click.option("--megabytes", default=24, show_default=True, help="of the disk")
@click.option("--seed", default=0, show_default=True)
def main(minutes: float, runs: int, steady_runs: int, megabytes: int, seed: int) -> None:
    """Sweep on a disk that fills up, while workers and drivers are killed."""
    rng, memory = np.random.default_rng(seed), Memory()
    counts: Counts = dict.fromkeys(("studies", "starts", "worker_kills", "driver_kills", "full_disks"), 0)
    faults: Counts = dict.fromkeys(("lost", "duplicated", "different", "left_over", "hangs"), 0)
    with tempfile.TemporaryDirectory() as folder, small_disk(megabytes) as disk:
        study = Path(folder) / "study.toml"
        study.write_text(STUDY.format(seeds=runs // 4))
        assert start(study, Path(folder) / "undisturbed").wait() == 0  # compiles, and may take long
        digest = RunStore(Path(folder) / "undisturbed").digest()
        alone = steady(steady_runs)
        began = time.monotonic()
        end = began + 60 * minutes
        while time.monotonic() < end:
            soak_once(study, disk, runs, rng, memory, counts, end)
            (disk / "ballast").unlink(missing_ok=True)
            faults["hangs"] += not ended(start(study, disk / "out"))  # finds nothing to do, and tidies up
            add(faults, examine(disk / "out", digest, runs))
            shutil.rmtree(disk / "out")
            counts["studies"] += 1
            click.echo(json.dumps(counts | faults), err=True)
        report = {
            "minutes": round((time.monotonic() - began) / 60, 1),
            "runs": runs * counts["studies"],
            "load": round(os.getloadavg()[2], 1),
            **counts,
            **faults,
            "orphans_gone_within_s": ORPHANS_GONE,
            "processes_watched": len(memory.born),
            "peak_mb": round(memory.peak, 1),
            "longest_life_s": round(memory.longest),
            "left_alone": alone,
        }
    click.echo(json.dumps(report, indent=2))
    if any(faults.values()) or counts["orphans"]:
        raise SystemExit("Something was lost or left behind.")
    if memory.peak > alone["peak_mb"] + MORE_AT_MOST:
        raise SystemExit("Memory grew.")
    if alone["kb_a_run_at_most"] > KEPT_AT_MOST:
        raise SystemExit("Memory grows with every run, or there were too few that were left alone to tell.")


if __name__ == "__main__":
    main()
