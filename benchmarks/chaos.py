"""Kill sweeps at random moments, and see that nothing is lost.

    python benchmarks/chaos.py --drivers 100 --workers 100
    python benchmarks/chaos.py --drivers 0 --workers 0 --storm 1000 --at-once 3

A trial of the first kind kills -9 the driver, waits for its workers to be gone, and starts the sweep again;
one of the second kind kills -9 a worker, and the sweep must continue by itself. In a storm a sweep is killed
repeatedly, workers and driver in turn, until nothing is left to do. After each, all runs must be finished
once, with the bytes of an undisturbed sweep, and nothing left in the working folder. Whether one hangs is
judged by its processor time, so that a busy machine makes no difference. Linux only.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import click
import numpy as np

from spaql.experiments import RunStore

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
STARTS_WITHIN = 3.0
KILLS_OF_A_SWEEP = 25
Counts = dict[str, float]


def start(study: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "spaql", "sweep", str(study), "--out", str(out), "--workers", "2"]
    return subprocess.Popen(
        [*command, "--checkpoint-every", "20", "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def ended(sweep: subprocess.Popen[bytes]) -> bool:
    """Wait for a sweep; says whether it ended well.

    One that hangs either takes no processor any more, or takes it for ever. The clock on the wall says
    nothing of a sweep that is given none.
    """
    spent, since = 0.0, time.monotonic()
    while sweep.poll() is None:
        time.sleep(0.05)
        now = processor_seconds(sweep.pid)
        if now > spent + 0.5:
            spent, since = now, time.monotonic()
        if spent > SPINS_AFTER or time.monotonic() - since > STANDS_AFTER:
            os.killpg(sweep.pid, signal.SIGKILL)
            sweep.wait()
            return False
    return sweep.returncode == 0


def processor_seconds(session: int) -> float:
    """Give the processor time of a session's processes that live, and of what they waited for."""
    ticks = 0
    for pid in members(session):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def members(session: int) -> list[int]:
    """Give the processes of a session that live."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def workers_of(driver: int) -> list[int]:
    return [pid for pid in members(driver) if pid != driver and b"spawn_main" in command_line(pid)]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_for_end(session: int) -> dict[str, float]:
    """Wait for a session's processes to be gone; gives how many are not, and how long it took."""
    began = time.monotonic()
    while (left := members(session)) and time.monotonic() < began + ORPHANS_GONE:
        time.sleep(0.02)
    return {"orphans": len(left), "longest_orphan_s": round(time.monotonic() - began, 1)}


def await_moment(sweep: subprocess.Popen[bytes], out: Path, finished: int, rng: np.random.Generator) -> None:
    """Wait until so many runs are finished, and a little more: the load of the machine does not matter."""
    while len(RunStore(out).finished()) < finished and sweep.poll() is None:
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.2 if finished else STARTS_WITHIN))


def kill_driver(study: Path, out: Path, finished: int, rng: np.random.Generator) -> Counts:
    sweep = start(study, out)
    await_moment(sweep, out, finished, rng)
    sweep.kill()
    sweep.wait()
    left = wait_for_end(sweep.pid)
    before = len(RunStore(out).finished())
    hung = not ended(start(study, out))
    # A start that finds every run done says so; one that repeats a run finishes more than are missing.
    summary = json.loads((out / "summary.json").read_text())
    repeated = abs(summary["finished_before"] - before) + abs(
        summary["finished_before"] + summary["finished"] - summary["runs"]
    )
    return left | {"hangs": hung, "repeated": repeated, "in_vain": before == summary["runs"]}


def kill_worker(study: Path, out: Path, finished: int, rng: np.random.Generator) -> Counts:
    sweep = start(study, out)
    await_moment(sweep, out, finished, rng)
    victims = workers_of(sweep.pid)
    if victims:
        os.kill(int(rng.choice(victims)), signal.SIGKILL)
    hung = not ended(sweep)
    summary = json.loads((out / "summary.json").read_text())
    repeated = abs(summary["finished"] - summary["runs"])
    return {"hangs": hung, "repeated": repeated, "in_vain": not victims}


def storm(study: Path, out: Path, kills: int, rng: np.random.Generator) -> Counts:
    """Kill workers, and at last the driver, of one start after another; then let a last one finish."""
    found: Counts = {"kills": 0, "driver_kills": 0, "hangs": 0, "gone_on": 0}
    while found["kills"] < kills:
        sweep, done = start(study, out), len(RunStore(out).finished())
        for _ in range(int(rng.integers(1, 6))):
            await_moment(sweep, out, len(RunStore(out).finished()) + int(rng.integers(4)), rng)
            victims = workers_of(sweep.pid)
            if victims and sweep.poll() is None:
                os.kill(int(rng.choice(victims)), signal.SIGKILL)
                found["kills"] += 1
        over = sweep.poll() is not None
        if not over:
            sweep.kill()
            found["kills"] += 1
            found["driver_kills"] += 1
        sweep.wait()
        add(found, wait_for_end(sweep.pid))
        found["gone_on"] += len(RunStore(out).finished()) > done
        if over and len(RunStore(out).finished()) == json.loads((out / "summary.json").read_text())["runs"]:
            break
    found["hangs"] += not ended(start(study, out))
    return found


def storms(
    study: Path, folder: Path, kills: int, at_once: int, undisturbed: RunStore, rng: np.random.Generator
) -> Counts:
    """Kill in one sweep after another, a few of them at once, until there were so many kills."""
    total: Counts = {"kills": 0, "sweeps": 0}
    digest, runs = undisturbed.digest(), len(undisturbed.finished())

    def one(some: int, rng: np.random.Generator) -> Counts:
        out = Path(tempfile.mkdtemp(dir=folder))
        found = storm(study, out, some, rng) | examine(out, digest, runs)
        shutil.rmtree(out)
        return found

    with ThreadPoolExecutor(at_once) as pool:
        under_way: set[Future[Counts]] = set()
        while under_way or total["kills"] < kills:
            while len(under_way) < at_once:
                some = int(kills - total["kills"]) - KILLS_OF_A_SWEEP * len(under_way)
                if some <= 0:
                    break
                under_way.add(pool.submit(one, min(KILLS_OF_A_SWEEP, some), rng.spawn(1)[0]))
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for sweep in done:
                add(total, sweep.result() | {"sweeps": 1})
            click.echo(json.dumps(total), err=True)
    return total


def add(total: Counts, found: Counts) -> None:
    """Add counts up; of what is longest, the longest is kept."""
    for name, count in found.items():
        before = total.get(name, 0)
        total[name] = max(before, count) if name.startswith("longest") else before + int(count)


def examine(out: Path, digest: str, runs: int) -> Counts:
    store = RunStore(out)
    finished = store.finished()
    left = [path for path in (out / ".work").rglob("*") if path.is_file()]
    return {
        "lost": runs - len(finished),
        "duplicated": len(finished) - len(set(finished)),
        "different": store.digest() != digest,
        "left_over": len(left),
    }


@click.command()
@click.option("--drivers", default=100, help="kills of a driver")
@click.option("--workers", default=100, help="kills of a worker")
@click.option("--storm", "in_storms", default=0, help="kills in sweeps that are killed again and again")
@click.option("--at-once", default=1, help="sweeps of a storm at the same time")
@click.option("--runs", default=40, help="runs of a sweep, a multiple of four")
@click.option("--seed", default=0)
def main(drivers: int, workers: int, in_storms: int, at_once: int, runs: int, seed: int) -> None:
    """Kill sweeps at random moments, and see that nothing is lost."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = folder / "study.toml"
        study.write_text(STUDY.format(seeds=runs // 4))
        ended(start(study, folder / "warm"))
        began = time.perf_counter()
        assert ended(start(study, folder / "undisturbed"))
        seconds = time.perf_counter() - began
        undisturbed = RunStore(folder / "undisturbed")
        report: dict[str, Counts] = {}
        for kind, trials in (("driver", drivers), ("worker", workers)):
            total: Counts = {"kills": 0}
            while total["kills"] < trials:
                out = Path(tempfile.mkdtemp(dir=folder))
                kill = kill_driver if kind == "driver" else kill_worker
                found = kill(study, out, int(rng.integers(runs)), rng)
                add(total, found | examine(out, undisturbed.digest(), runs))
                total["kills"] += not found["in_vain"]  # else all was done before
                shutil.rmtree(out)
            report[kind] = total
        report["storm"] = storms(study, folder, in_storms, at_once, undisturbed, rng)
    times = {"undisturbed_seconds": round(seconds, 2), "seconds": round(time.perf_counter() - began)}
    loads = dict(zip(("load_1", "load_5", "load_15"), os.getloadavg(), strict=True))
    click.echo(json.dumps({"runs": runs, **times, **loads, **report}, indent=2))
    faults = ("orphans", "hangs", "repeated", "lost", "duplicated", "different", "left_over")
    if any(total.get(fault) for total in report.values() for fault in faults):
        raise SystemExit("Something was lost, repeated, or left behind.")


if __name__ == "__main__":
    main()
