"""What sweeps cost: `python benchmarks/sweeps.py` (`--json` for one object, `--ray` for Ray as well).

Overhead: 2,000 runs of 10 ms through each executor, with leases and store, over the bare pool or bare Ray
tasks with the same function, taken in turns. Speed-up: two workers over one, on compute-bound runs.
Store: a summary, and the scan of a sweep that finds nothing missing, over a store of many finished runs.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import click

import spaql
from spaql.experiments import Run, RunStore
from spaql.experiments.execute import Outcome
from spaql.experiments.sweeps import _outcomes
from spaql.workers import RayWorkers, Workers

WORKERS = 2


def ten_milliseconds(run: Run, root: str) -> Outcome:
    """Compute for 10 ms, then leave a folder behind, as a run does."""
    end = time.perf_counter() + 0.010
    while time.perf_counter() < end:
        pass
    os.makedirs(os.path.join(root, run.id))
    return Outcome(run)


def synthetic(n: int) -> list[Run]:
    return spaql.grid(["cartpole200"], ["spaql"], seeds=n)


def through(pool: Workers | RayWorkers, runs: list[Run]) -> float:
    """Give the seconds of a sweep with leases and store."""
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(folder)
        task = functools.partial(ten_milliseconds, root=folder)
        with store.driver() as driver:
            began = time.perf_counter()
            count = sum(outcome.error is None for outcome in _outcomes(pool, task, store, driver, runs))
            assert count == len(runs)
            return time.perf_counter() - began


def bare_pool(pool: ProcessPoolExecutor, runs: list[Run]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        list(pool.map(functools.partial(ten_milliseconds, root=folder), runs))
        return time.perf_counter() - began


def bare_ray(ray: Any, runs: list[Run]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        task = ray.remote(num_cpus=1)(ten_milliseconds)
        began = time.perf_counter()
        ray.get([task.remote(run, folder) for run in runs])
        return time.perf_counter() - began


def compare(ours: Any, bare: Any, n: int, rounds: int) -> dict[str, float]:
    ours(synthetic(50)), bare(synthetic(50))  # start the processes
    runs = synthetic(n)
    pairs = [(ours(runs), bare(runs)) for _ in range(rounds)]
    return {
        "overhead_ms_per_run": statistics.median(a * WORKERS / n - 0.010 for a, _ in pairs) * 1e3,
        "over_bare": statistics.median(a / b for a, b in pairs),
    }


def overhead(n: int, rounds: int, with_ray: bool) -> dict[str, dict[str, float]]:
    found = {}
    with (
        closing(Workers(WORKERS)) as executor,
        ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        found["local"] = compare(
            functools.partial(through, executor), functools.partial(bare_pool, pool), n, rounds
        )
    if with_ray:
        import ray

        with closing(RayWorkers("local")) as executor:
            found["ray"] = compare(
                functools.partial(through, executor), functools.partial(bare_ray, ray), n, rounds
            )
    return found


def count_up(_: int) -> int:
    return sum(range(10_000_000))


def speed_up(rounds: int) -> dict[str, float]:
    """Give the throughput of two workers over that of one: of sweeps, and of the machine itself.

    The start-up of the workers counts. The cores of a shared machine are not always whole ones: pure
    counting in a bare pool, in turns with the sweeps, shows what they are worth.
    """
    runs = spaql.grid(["cartpole200"], ["spaql-ts"], seeds=24, iterations=1000, settings={"rollouts": 100})
    pairs = []
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(count_up, range(2)))
        for _ in range(rounds):
            seconds, counting = [], []
            for workers in (1, 2):
                began = time.perf_counter()
                for _ in range(20 // workers):
                    list(pool.map(count_up, range(workers)))
                counting.append(time.perf_counter() - began)
                with tempfile.TemporaryDirectory() as folder:
                    seconds.append(spaql.sweep(runs, folder, workers=workers, progress_bar=False).seconds)
            pairs.append((seconds[0] / seconds[1], counting[0] / counting[1]))
    sweeps, bare = (statistics.median(side) for side in zip(*pairs, strict=True))
    return {"sweep": sweeps, "bare_counting": bare}


def store_size(n: int) -> dict[str, float]:
    """Measure the commands over a store of n finished runs: copies of a real one under their own ids."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        study.write_text(
            f'problems = ["cartpole200"]\nalgorithms = ["spaql"]\nseeds = {n // 10}\niterations = 2\n'
            f"[grid]\nscaling = {list(range(1, 11))}\n"
        )
        runs = spaql.read_study(study)
        store = RunStore(Path(folder) / "store")
        spaql.sweep(runs[:1], store.root, workers=1, progress_bar=False)
        first = store.folder(runs[0])
        files = {path.name: path.read_bytes() for path in first.iterdir()}
        result = json.loads(files["result.json"])
        for run in runs[1:]:
            target = store.folder(run)
            target.mkdir(parents=True)
            result["run"] = run.as_data()
            files["result.json"] = json.dumps(result, indent=2).encode()
            for name, content in files.items():
                (target / name).write_bytes(content)
        commands = {
            "results": command("results", str(store.root), "--csv", str(Path(folder) / "runs.csv")),
            "resume": command("sweep", str(study), "--out", str(store.root), "--quiet"),
        }
        rows = {f"{name}_{what}": x for name, used in commands.items() for what, x in used.items()}
        return {"runs": n, **rows}


def command(*arguments: str) -> dict[str, float]:
    """Run a command of spaql: its seconds, its CPU seconds, and its peak memory in MB."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "spaql", *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "cpu_seconds": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}


@click.command()
@click.option("--runs", default=2000, help="runs of 10 ms")
@click.option("--rounds", default=3, help="repetitions, of which the median counts")
@click.option("--store", default=100_000, help="finished runs of the store")
@click.option("--ray", "with_ray", is_flag=True, help="measure Ray too, on a local cluster")
@click.option("--json", "as_json", is_flag=True)
def main(runs: int, rounds: int, store: int, with_ray: bool, as_json: bool) -> None:
    """Measure what sweeps cost."""
    found = {
        "overhead": overhead(runs, rounds, with_ray),
        "two_workers_over_one": speed_up(rounds),
        "store": store_size(store),
    }
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, figures in found["overhead"].items():
        click.echo(
            f"{name:6} {figures['overhead_ms_per_run']:.2f} ms overhead a run, "
            f"{figures['over_bare']:.3f} times the bare executor's time"
        )
    ratios = found["two_workers_over_one"]
    click.echo(f"two workers over one: {ratios['sweep']:.2f} (bare counting: {ratios['bare_counting']:.2f})")
    size = found["store"]
    click.echo(
        f"a store of {size['runs']:,} runs: results in {size['results_seconds']:.1f} s, "
        f"nothing missing found in {size['resume_seconds']:.1f} s"
    )


if __name__ == "__main__":
    main()
