"""Kill sweeps at random moments, fill their disk, and see that nothing is lost.

    python benchmarks/chaos.py --kills 1000 --at-once 4
    python benchmarks/chaos.py --kills 25 --disk 24          # a disk of so many MB; root, to mount it
    python benchmarks/chaos.py --kills 0 --steady-runs 800   # the memory of a sweep that is left alone

A sweep is killed -9 repeatedly, workers and driver in turn, until nothing is left to do; with --disk, its
disk is filled to the last byte for a while now and then. Then all runs must be finished once, with the bytes
of an undisturbed sweep, and nothing left in the working folder. Whether one hangs is judged by its processor
time, so that a busy machine makes no difference.

With --steady-runs the resident memory of driver and workers is written down beside the number of finished
runs. A process grows while it imports, and while it meets each kernel for the first time, so what counts is
what every run adds after the first ones: what is kept of a run, were it only its history, is thousands of
bytes. Linux only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from spaql.plugins.sweeps.store import RunStore
from spaql.stats import mean_ci95
from studies import parser

STUDY = """
problems = ["cartpole200"]
algorithms = ["spaql", "spaql-ts"]
seeds = {seeds}
iterations = 200
fresh_episodes = 10
rollouts = 10
[grid]
scaling = [0.4, 20]
"""
SPINS_AFTER = 200.0
"""Seconds on the processor: thirty times those of a sweep from beginning to end."""
STANDS_AFTER = 300.0
"""Seconds on the wall in which it has not had half a second on the processor."""
ORPHANS_GONE = 300.0
"""Seconds within which workers are gone after their driver. One that is importing notices only then."""
KILLS_OF_A_SWEEP = 25
FIRST = 120
"""Runs of a sweep in which its processes come to know every kernel."""
BLOCK = 40
"""Runs over which memory is averaged."""
HELPER_MB = 50
"""Below this it is Python's own helper, which counts semaphores."""
KEPT_AT_MOST = 4.0
"""kB a run. The history of a run of 200 iterations is 13, its partitions are more than a hundred."""
Sweep = subprocess.Popen[bytes]


def start(study: Path, out: Path) -> Sweep:
    command = [sys.executable, "-m", "spaql", "study", "run", str(study), "--out", str(out), "--workers", "2"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(
        [*command, "--checkpoint-every", "20", "--quiet"], start_new_session=True, **quiet
    )


def ended(sweep: Sweep) -> bool:
    """Wait for a sweep; says whether it ended well.

    One that hangs either takes no processor any more, or takes it for ever. The clock on the wall says
    nothing of a sweep that is given none.
    """
    spent = 0.0
    since = time.monotonic()
    while sweep.poll() is None:
        time.sleep(0.05)
        now = sum(map(ticks, members(sweep.pid))) / os.sysconf("SC_CLK_TCK")
        if now > spent + 0.5:
            spent = now
            since = time.monotonic()
        if spent > SPINS_AFTER or time.monotonic() - since > STANDS_AFTER:
            os.killpg(sweep.pid, signal.SIGKILL)
            sweep.wait()
            return False
    return sweep.returncode == 0


def fields(pid: int | str, file: str = "stat") -> list[str]:
    """Give what the system says of a process, and nothing if it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{file}").read_text().rpartition(")")[2].split()
    return []


def ticks(pid: int) -> int:
    """Give the processor time of a process, and of what it waited for."""
    return sum(map(int, fields(pid)[11:15]))


def members(session: int) -> list[int]:
    """Give the processes of a session that live."""
    pids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    told = {int(pid): fields(pid) for pid in pids}
    return [pid for pid, words in told.items() if words and int(words[3]) == session and words[0] != "Z"]


def workers_of(driver: int) -> list[int]:
    return [pid for pid in members(driver) if "--multiprocessing-fork" in str(fields(pid, "cmdline"))]


def orphans(session: int) -> int:
    """Wait for a session's processes to be gone; gives how many are not."""
    began = time.monotonic()
    while (left := members(session)) and time.monotonic() < began + ORPHANS_GONE:
        time.sleep(0.02)
    return len(left)


def await_moment(sweep: Sweep, out: Path, finished: int, rng: np.random.Generator) -> None:
    """Wait until so many runs are finished, and a little more: the load of the machine does not matter."""
    while len(RunStore(out).finished()) < finished and sweep.poll() is None:
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.2 if finished else 3.0))


def fill(disk: Path, rng: np.random.Generator) -> None:
    """Write until nothing more can be written, and make room again."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    time.sleep(rng.uniform(0, 5))
    ballast.unlink(missing_ok=True)


def storm(
    study: Path, out: Path, kills: int, runs: int, small: bool, rng: np.random.Generator
) -> Counter[str]:
    """Kill workers, and at last the driver, of one start after another; then let a last one finish."""
    found: Counter[str] = Counter(kills=0)
    store = RunStore(out)
    while found["kills"] < kills and len(store.finished()) < runs:
        sweep = start(study, out)
        for _ in range(int(rng.integers(1, 6))):
            await_moment(sweep, out, len(store.finished()) + int(rng.integers(4)), rng)
            if small and rng.random() < 0.3:
                fill(out.parent, rng)
                found["full disks"] += 1
            if (victims := workers_of(sweep.pid)) and sweep.poll() is None:
                os.kill(int(rng.choice(victims)), signal.SIGKILL)
                found["kills"] += 1
        if sweep.poll() is None:
            sweep.kill()
            found.update(("kills", "kills of drivers"))
        sweep.wait()
        found["orphans"] += orphans(sweep.pid)
    before = len(store.finished())
    found["hangs"] += not ended(start(study, out))
    summary = json.loads((out / "summary.json").read_text())
    found["repeated"] += summary["finished_before"] != before
    found["repeated"] += summary["finished_before"] + summary["finished"] != summary["runs"]
    return found


def examine(out: Path, digest: str, runs: int) -> Counter[str]:
    finished = RunStore(out).finished()
    return Counter(
        {
            "sweeps": 1,
            "lost": runs - len(finished),
            "duplicated": len(finished) - len(set(finished)),
            "different": RunStore(out).digest() != digest,
            "left over": sum(path.is_file() for path in (out / ".work").rglob("*")),
        }
    )


@contextlib.contextmanager
def room(megabytes: int) -> Iterator[Path]:
    """Give a folder, on a disk of a few megabytes if any are named."""
    with tempfile.TemporaryDirectory() as folder:
        if not megabytes:
            yield Path(folder)
            return
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def storms(kills: int, at_once: int, runs: int, megabytes: int, rng: np.random.Generator) -> Counter[str]:
    """Kill in some sweeps at once, and in others, until there were so many kills."""
    total: Counter[str] = Counter(kills=0)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(at_once) as pool:
        study = Path(folder) / "study.toml"
        study.write_text(STUDY.format(seeds=runs // 4))
        assert ended(start(study, Path(folder) / "undisturbed"))
        digest = RunStore(Path(folder) / "undisturbed").digest()

        def one(rng: np.random.Generator) -> Counter[str]:
            some = min(KILLS_OF_A_SWEEP, kills)
            with room(megabytes) as disk:
                found = storm(study, disk / "out", some, runs, megabytes > 0, rng)
                found.update(examine(disk / "out", digest, runs))
                return found

        while total["kills"] < kills:
            for found in pool.map(one, rng.spawn(at_once)):
                total.update(found)
            print(json.dumps(total), file=sys.stderr)
    return total


def watch(sweep: Sweep, store: RunStore) -> dict[int, list[tuple[int, float]]]:
    """Write down, until a sweep ends, the memory of each of its processes in kB at so many finished runs."""
    seen: dict[int, list[tuple[int, float]]] = {}
    while sweep.poll() is None:
        time.sleep(0.1)
        finished = len(store.finished())
        for pid in members(sweep.pid):
            if (told := fields(pid, "statm")) and int(told[1]):
                kb = int(told[1]) * os.sysconf("SC_PAGESIZE") / 1024
                seen.setdefault(pid, []).append((finished, kb))
    return seen


def kept_a_run(points: list[tuple[int, float]]) -> tuple[float, float] | None:
    """Give the kB that a process keeps of a run, and half the width of the interval (95 %).

    What is added from one block of runs to the next is averaged. None if there are too few of them.
    """
    later = np.array([point for point in points if point[0] >= FIRST], np.float64).reshape(-1, 2)
    block = (later[:, 0] - FIRST) // BLOCK
    if len(np.unique(block)) < 4:
        return None
    added = np.diff([later[block == i].mean(axis=0) for i in np.unique(block)], axis=0)
    estimate, half = mean_ci95(added[:, 1] / added[:, 0])
    return round(estimate, 3), round(half, 3)


def steady(runs: int) -> dict[str, Any]:
    """Leave a sweep alone, and give what its processes keep of a run."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        out = Path(folder) / "out"
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
    return parts


def main() -> None:
    """Kill, look, and print what was found."""
    options = parser(__doc__)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--at-once", type=int, default=1, help="sweeps at the same time")
    options.add_argument("--runs", type=int, default=40, help="of a sweep, a multiple of four")
    options.add_argument("--disk", type=int, default=0, help="MB of a disk that is filled now and then")
    options.add_argument("--steady-runs", type=int, default=0, help="of a sweep that is left alone")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    alone = steady(given.steady_runs) if given.steady_runs else {}
    rng = np.random.default_rng(given.seed)
    report = storms(given.kills, given.at_once, given.runs, given.disk, rng)
    print(json.dumps({**report, "left alone": alone}, indent=2))
    if any(part["kb_a_run"] + part["plus_minus"] > KEPT_AT_MOST for part in alone.values()):
        raise SystemExit("Memory grows with every run, or there were too few that were left alone to tell.")
    faults = ("orphans", "hangs", "repeated", "lost", "duplicated", "different", "left over")
    if any(report[fault] for fault in faults):
        raise SystemExit("Something was lost, repeated, or left behind.")


if __name__ == "__main__":
    main()
