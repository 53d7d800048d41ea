"""Kill sweeps at random moments, and see that nothing is lost.

    python benchmarks/chaos.py --drivers 100 --workers 100
    python benchmarks/chaos.py --drivers 0 --workers 0 --storm 1000

A trial of the first kind kills -9 the driver, waits for its workers to be gone, and starts the sweep again;
one of the second kind kills -9 a worker, and the sweep must go on by itself. In a storm a sweep is killed
again and again, workers and driver by turns, until nothing is left to do. After each, all runs must be
finished once, with the bytes of an undisturbed sweep, and nothing left in the workshop. Linux only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
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
HANGS_AFTER = 120.0
STARTS_WITHIN = 3.0


def start(study: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "spaql", "sweep", str(study), "--out", str(out), "--workers", "2"]
    return subprocess.Popen(
        [*command, "--checkpoint-every", "20", "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def ended(sweep: subprocess.Popen[bytes]) -> bool:
    """Wait for a sweep; says whether it ended well and in time."""
    try:
        return sweep.wait(HANGS_AFTER) == 0
    except subprocess.TimeoutExpired:
        os.killpg(sweep.pid, signal.SIGKILL)
        sweep.wait()
        return False


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


def wait_for_end(session: int) -> int:
    """Wait for a session's processes to be gone; gives how many are not."""
    deadline = time.monotonic() + 60  # a busy machine takes its time
    while members(session) and time.monotonic() < deadline:
        time.sleep(0.01)
    return len(members(session))


def await_moment(sweep: subprocess.Popen[bytes], out: Path, finished: int, rng: np.random.Generator) -> None:
    """Wait until so many runs are finished, and a little more: the load of the machine does not matter."""
    while len(RunStore(out).finished()) < finished and sweep.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 0.2 if finished else STARTS_WITHIN))


def kill_driver(study: Path, out: Path, finished: int, rng: np.random.Generator) -> dict[str, int]:
    sweep = start(study, out)
    await_moment(sweep, out, finished, rng)
    sweep.kill()
    sweep.wait()
    orphans = wait_for_end(sweep.pid)
    before = len(RunStore(out).finished())
    hung = not ended(start(study, out))
    # A start that finds every run done says so; one that repeats a run finishes more than are missing.
    summary = json.loads((out / "summary.json").read_text())
    repeated = abs(summary["finished_before"] - before) + abs(
        summary["finished_before"] + summary["finished"] - summary["runs"]
    )
    return {"orphans": orphans, "hangs": hung, "repeated": repeated, "in_vain": before == summary["runs"]}


def kill_worker(study: Path, out: Path, finished: int, rng: np.random.Generator) -> dict[str, int]:
    sweep = start(study, out)
    await_moment(sweep, out, finished, rng)
    victims = workers_of(sweep.pid)
    if victims:
        os.kill(int(rng.choice(victims)), signal.SIGKILL)
    hung = not ended(sweep)
    summary = json.loads((out / "summary.json").read_text())
    repeated = abs(summary["finished"] - summary["runs"])
    return {"orphans": 0, "hangs": hung, "repeated": repeated, "in_vain": not victims}


def storm(study: Path, out: Path, kills: int, rng: np.random.Generator) -> dict[str, int]:
    """Kill workers, and at last the driver, of one start after another; then let a last one finish."""
    found = {"kills": 0, "driver_kills": 0, "orphans": 0, "hangs": 0, "gone_on": 0}
    while found["kills"] < kills:
        sweep, done = start(study, out), len(RunStore(out).finished())
        for _ in range(int(rng.integers(1, 4))):
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
        found["orphans"] += wait_for_end(sweep.pid)
        found["gone_on"] += len(RunStore(out).finished()) > done
        if over and len(RunStore(out).finished()) == json.loads((out / "summary.json").read_text())["runs"]:
            break
    found["hangs"] += not ended(start(study, out))
    return found


def examine(out: Path, digest: str, runs: int) -> dict[str, int]:
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
@click.option("--storm", "storms", default=0, help="kills in sweeps that are killed again and again")
@click.option("--runs", default=40, help="runs of a sweep, a multiple of four")
@click.option("--seed", default=0)
def main(drivers: int, workers: int, storms: int, runs: int, seed: int) -> None:
    """Kill sweeps at random moments, and see that nothing is lost."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        study.write_text(STUDY.format(seeds=runs // 4))
        ended(start(study, Path(folder) / "warm"))
        began = time.perf_counter()
        assert ended(start(study, Path(folder) / "undisturbed"))
        seconds = time.perf_counter() - began
        digest = RunStore(Path(folder) / "undisturbed").digest()
        report: dict[str, dict[str, float]] = {}
        for kind, trials in (("driver", drivers), ("worker", workers)):
            total: dict[str, float] = {"kills": 0}
            while total["kills"] < trials:
                out = Path(tempfile.mkdtemp(dir=folder))
                kill = kill_driver if kind == "driver" else kill_worker
                found = kill(study, out, int(rng.integers(runs)), rng)
                for name, count in (found | examine(out, digest, runs)).items():
                    total[name] = total.get(name, 0) + int(count)
                total["kills"] += not found["in_vain"]  # else all was done before
                shutil.rmtree(out)
            report[kind] = total
        total = {"kills": 0, "sweeps": 0}
        while total["kills"] < storms:
            out = Path(tempfile.mkdtemp(dir=folder))
            found = storm(study, out, min(25, storms - int(total["kills"])), rng)
            for name, count in (found | examine(out, digest, runs)).items():
                total[name] = total.get(name, 0) + int(count)
            total["sweeps"] += 1
            shutil.rmtree(out)
            click.echo(json.dumps(total), err=True)
        report["storm"] = total
    click.echo(json.dumps({"runs": runs, "undisturbed_seconds": round(seconds, 2), **report}, indent=2))
    faults = ("orphans", "hangs", "repeated", "lost", "duplicated", "different", "left_over")
    if any(total.get(fault) for total in report.values() for fault in faults):
        raise SystemExit("Something was lost, repeated, or left behind.")


if __name__ == "__main__":
    main()
