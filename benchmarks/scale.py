"""What grows with runs, steps, rows, leaves and dimensions: `python benchmarks/scale.py`.

docs/scale.md tells what follows from it. `--json` prints one object, `--only search --only log` measures
some parts alone, and `--small` makes everything small, to see that it works. What the executors cost is
measured by `python benchmarks/sweeps.py --ray`.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import click
import gymnasium
import numba
import numpy as np
from gymnasium.envs.classic_control import PendulumEnv
from partition_size import measure as partition_sizes
from scale_sizes import dispatch, log, minimised_size, search, tree_size, workers_search
from sweeps import store_size

import spaql
from spaql.experiments import RunStore
from spaql.experiments.execute import execute

Rows = list[dict[str, Any]]
DRIVER = 0.004
"""Seconds a run on Ray: the most that sweeps.py found."""
FILE_SERVER = 5_000
"""File operations a second: an assumption, to be replaced by what yours does."""


def a_run(iterations: int, seeds: int) -> dict[str, Any]:
    """Execute SPAQL-TS on CartPole, N = 100, as a worker of a sweep does: from the claim to the release."""
    settings = {"scaling": 20, "rollouts": 100}
    runs = spaql.grid(
        ["cartpole200"], ["spaql-ts"], seeds=seeds + 1, iterations=iterations, settings=settings
    )
    named: list[str] = []
    times = []
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync", side_effect=os.fsync) as flush:

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if (event == "open" or event.startswith("os.")) and folder in str(arguments):
                named.append(event)

        sys.addaudithook(hook)
        store = RunStore(folder)
        with store.driver() as driver:
            for run in runs:  # the first warms up
                named.clear(), flush.reset_mock()
                began = np.array([time.perf_counter(), time.process_time()])
                assert store.claim(driver, run)
                execute(run, root=folder, checkpoint_every=500)
                store.release(driver, run)
                times.append([time.perf_counter(), time.process_time()] - began)
        files = list(store.folder(runs[-1]).iterdir())
        seconds, cpu_seconds = np.median(times[1:], axis=0)
        return {
            "iterations": iterations,
            "seconds": float(seconds),
            "cpu_seconds": float(cpu_seconds),
            "files": len(files),
            "bytes": sum(file.stat().st_size for file in files),
            "disk_bytes": sum(path.stat().st_blocks * 512 for path in [*files, files[0].parent]),
            "file_operations": len(named),
            "flushes": flush.call_count,
        }


def estimate(run: dict[str, Any], runs: int, nodes: int, cores: int) -> dict[str, float]:
    """Say what a study of such runs takes: the longest of three times, which overlap."""
    operations = run["file_operations"] + run["flushes"]
    return {
        "runs": runs,
        "cores": nodes * cores,
        "core_hours": runs * run["cpu_seconds"] / 3600,
        "compute_seconds": runs * run["cpu_seconds"] / (nodes * cores),
        "driver_seconds": runs * DRIVER,
        "file_seconds": runs * operations / FILE_SERVER,
        "store_gb": runs * run["disk_bytes"] / 1e9,
        "inodes": runs * (run["files"] + 1),
    }


def saved(agent: spaql.Agent) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        agent.save(path := Path(folder) / "model.spaql")
        return path.read_bytes()


def training(lengths: list[int]) -> Rows:
    """Train SPAQL-TS on CartPole, N = 100, for longer and longer."""
    rows = []
    for iterations in lengths:
        agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=100, seed=0)
        began = time.perf_counter()
        agent.learn(iterations=iterations, progress_bar=False)
        rows.append(
            {
                "iterations": iterations,
                "seconds": time.perf_counter() - began,
                "interactions": int(agent.history.last()["interactions"]),
                "arms": agent.policy.partition.arms,
                "history_bytes": len(agent.history.to_csv()),
                "model_bytes": len(saved(agent)),
            }
        )
    return rows


@numba.njit
def pair(rng: Any) -> tuple[float, float]:
    return rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0)


@numba.njit
def pushed(x: float, up: int) -> float:
    return min(max(x + 0.1 * (2.0 * up - 1.0), -1.0), 1.0)


@numba.njit
def pair_pushed(state: Any, action: int) -> tuple[float, float]:
    """Actions 0 and 1 push the first number down and up, 2 and 3 the second, and others none."""
    x, y = state
    return pushed(x, action) if 0 <= action < 2 else x, pushed(y, action - 2) if 2 <= action < 4 else y


def double(start: Any, push: Any, n: int) -> tuple[Any, Any]:
    """Put two plants of n numbers side by side."""

    @numba.njit
    def start_both(rng: Any) -> Any:
        return start(rng) + start(rng)

    @numba.njit
    def push_both(state: Any, action: int) -> Any:
        return push(state[:n], action) + push(state[n:], action - 2 * n)

    return start_both, push_both


def one_matters(state: Any, action: int) -> Any:
    x = pushed(state[0], action)
    return (x,) + state[1:], 1.0 - abs(x - 0.3), False  # noqa: RUF005


def all_matter(push: Any) -> Callable[..., Any]:
    def step(state: Any, action: int) -> Any:
        after = push(state, action)
        off = 0.0
        for x in after:
            off += abs(x)
        return after, 1.0 - off / len(after), False

    return step


def dimensions(most: int, iterations: int, seeds: int) -> Rows:
    """Train SPAQL on plants of 2, 4, ... dimensions, and judge by fresh episodes of 100 steps."""
    plants, start, push, n = [], pair, pair_pushed, 2
    while n <= most:
        plants.append(("one matters", n, 2, start, one_matters))
        plants.append(("all matter", n, 2 * n, start, all_matter(push)))
        (start, push), n = double(start, push, n), 2 * n
    rows = []
    for task, dims, actions, start, step in sorted(plants, key=lambda plant: plant[0], reverse=True):
        plant = spaql.Dynamics(
            id=f"benchmark/{task.replace(' ', '')}{dims}-v0",
            start=start,
            step=step,
            observations={f"x{i}": (-1.0, 1.0) for i in range(dims)},
            actions=[f"action {i}" for i in range(actions)],
            horizon=100,
        )
        agents = [spaql.SPAQL(plant, scaling=1, seed=seed) for seed in range(seeds)]
        agents[0].learn(iterations=1, progress_bar=False)  # compiles
        problem = agents[0].problem
        random = spaql.RandomPolicy(problem.states, problem.actions)
        for length in (iterations, 10 * iterations):
            missing = sum(length - agent.iterations for agent in agents)
            began = time.perf_counter()
            for agent in agents:
                agent.learn(iterations=length - agent.iterations, progress_bar=False)
            seconds = time.perf_counter() - began
            rows.append(
                {
                    "task": task,
                    "dimensions": dims,
                    "children_per_split": agents[0].policy.partition.children_at_most,
                    "iterations": length,
                    "ms_per_iteration": 1e3 * seconds / missing,
                    "arms": statistics.fmean(agent.policy.partition.arms for agent in agents),
                    "return": statistics.fmean(spaql.evaluate(agent, episodes=500).mean for agent in agents),
                    "random_return": spaql.evaluate(random, problem, episodes=2_000).mean,
                }
            )
    return rows


class Waiting(PendulumEnv):
    """A simulator that waits for something else, a millisecond a step."""

    def step(self, action: Any) -> Any:
        time.sleep(0.001)
        return super().step(action)


class Computing(PendulumEnv):
    """A simulator that computes for a millisecond a step."""

    def step(self, action: Any) -> Any:
        end = time.thread_time() + 0.001
        while time.thread_time() < end:
            pass
        return super().step(action)


gymnasium.register("benchmark/Waiting-v0", Waiting, max_episode_steps=50)
gymnasium.register("benchmark/Computing-v0", Computing, max_episode_steps=50)


def rollouts(simulator: str, iterations: int) -> dict[str, Any]:
    """Train with and without processes of their own for the 20 episodes of an evaluation."""
    seconds, files = [], []
    for parallel in (False, True):
        agent = spaql.SPAQL(f"benchmark/{simulator}-v0", parallel=parallel, rollouts=20, scaling=1, seed=0)
        times: list[float] = []
        agent.learn(
            iterations=iterations,
            callback=lambda *_: times.append(time.perf_counter()),  # noqa: B023
            progress_bar=False,
        )
        seconds.append(float(np.median(np.diff(times))))
        files.append(saved(agent))
    return {
        "simulator": simulator.lower(),
        "seconds_per_iteration": seconds[0],
        "parallel_seconds_per_iteration": seconds[1],
        "speed_up": seconds[0] / seconds[1],
        "same_bytes": files[0] == files[1],
    }


def exponents(rows: Rows) -> dict[str, float]:
    """Return by which power each number grows with the size, the first number of a row.

    It is that of the increase over the first row, so that a cost that is the same at every size, such as a
    start, does not count.
    """
    named = [{name: x for name, x in row.items() if not isinstance(x, str)} for row in rows]
    size, *others = named[0]
    if len(rows) < 3 or not named[0][size] < named[-2][size] < named[-1][size]:
        return {}
    grown = {name: [row[name] - named[0][name] for row in named[-2:]] for name in (size, *others)}
    ratio = np.log(grown[size][1] / grown[size][0])
    return {
        name: float(np.log(grown[name][1] / grown[name][0]) / ratio)
        for name in others
        if min(grown[name]) > 0
    }


@click.command()
@click.option("--small", is_flag=True, help="everything small, to see that it works")
@click.option("--only", multiple=True, help="a part, such as store, search, log or tree; may be repeated")
@click.option("--json", "as_json", is_flag=True)
def main(small: bool, only: tuple[str, ...], as_json: bool) -> None:
    """Measure what grows."""
    shrink, seeds = (100, 2) if small else (1, 5)
    runs = functools.cache(lambda: [a_run(n, seeds) for n in (2, 2_000 // shrink)])

    def searches(env: str, sizes: tuple[int, ...]) -> Rows:
        search(env, 2_000)  # compiles
        return [search(env, n // shrink) for n in sizes]

    def workers() -> Rows:
        workers_search(100)  # compiles
        return [workers_search(n // shrink) for n in (10**4, 3 * 10**4, 10**5)]

    def logs() -> Rows:
        effort = 0.01 if small else 0.2
        log(1_000, 0.01)  # compiles
        return [log(n // shrink, effort) for n in (10**4, 10**5, 10**6)]

    def trees() -> Rows:
        tree_size(100, 1_000)  # compiles
        return [tree_size(n // shrink, 10**5 // shrink) for n in (10**3, 10**4, 10**5)]

    def minimised() -> Rows:
        minimised_size(100)  # compiles
        return [minimised_size(n // shrink) for n in (1_000, 2_000, 4_000, 10_000)]

    parts: dict[str, Callable[[], Rows]] = {
        "run": runs,
        "study": lambda: [estimate(runs()[-1], 10**6, nodes=100, cores=cores) for cores in (4, 32)],
        "steps": lambda: training([n // shrink for n in (100, 1_000, 10_000)]),
        "balls": lambda: partition_sizes([n // shrink for n in (10**3, 10**5, 10**7)], 0),
        "dimensions": lambda: dimensions(4 if small else 8, 20 if small else 200, seeds),
        "rollouts": lambda: [rollouts(name, 3 if small else 20) for name in ("Waiting", "Computing")],
        "search": lambda: searches("Pendulum-v1", (10**5, 10**6, 10**7, 10**8)),
        "search CartPole": lambda: searches("CartPole-v1", (10**5, 10**6, 10**7)),
        "workers": workers,
        "dispatch": lambda: [dispatch(n, 4_000 // shrink) for n in ((1, 2) if small else (4, 16, 64))],
        "log": logs,
        "tree": trees,
        "minimised": minimised,
        "store": lambda: [store_size(n // shrink) for n in (1_000, 10_000, 100_000)],
    }
    if unknown := set(only) - set(parts):
        raise click.UsageError(f"There is no part {sorted(unknown)[0]!r}: there are {', '.join(parts)}.")
    found = {}
    for title, part in parts.items():
        if only and title not in only:
            continue
        found[title] = rows = part()
        if not as_json:
            click.echo(f"{title}\n  " + "  ".join(rows[0]))
            for row in rows:
                cells = {k: f"{v:,.3f}" if isinstance(v, float) else str(v) for k, v in row.items()}
                click.echo("  " + "  ".join(f"{cell:>{len(name)}}" for name, cell in cells.items()))
            if grown := exponents(rows):
                click.echo("  exponents: " + ", ".join(f"{k} {power:.2f}" for k, power in grown.items()))
    if as_json:
        click.echo(json.dumps(found))


if __name__ == "__main__":
    main()
