"""Searches, logs and trees of growing size, and the dispatch of tasks to more workers: parts of `scale.py`.

All times are CPU seconds, which depend less on how busy the machine is than time on the clock does.
"""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import PendulumEnv

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from sweeps import command

import spaql
from random_trees import random_tree
from spaql.agents.agent_file import MODEL_FILE
from spaql.agents.fitting import FIT_FILE
from spaql.export import c as export_c
from spaql.interpret import dot, minimised, simplified
from spaql.policy import Choices, text
from spaql.problems.log import read_log
from spaql.rollouts import Candidates, EpisodeRunner
from spaql.rollouts.candidates import _PARTS, EnvironmentCandidates
from spaql.workers import Workers

Row = dict[str, Any]
WORKERS = (16, 64, 256)
"""Workers for which the speed-up that the sizes of batches allow is computed."""
DISPATCHED = 1 / 30
"""Time of the driver for a task over that of an episode: 0.74 ms (`dispatch`), 22 ms (`workers_search`)."""


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of this process and of those that it waited for."""

    def used() -> float:
        both = (getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in both)

    began = used()
    work()
    return used() - began


class Plain(PendulumEnv):
    """Gymnasium's Pendulum as any environment of a user's: not recognised, so that it is not compiled."""


gymnasium.register("benchmark/Plain-v0", Plain, max_episode_steps=200)


def speed_up(batches: list[tuple[int, int]], workers: int, dispatched: float = 0.0) -> float:
    """Return the speed-up for batches of candidates × starts, if all episodes take the same time.

    Tasks are those of `EnvironmentCandidates`: a candidate, and a part of the starts. The driver dispatches
    them one after the other, each in a share of the time of an episode.
    """
    taken = 0.0
    for candidates, starts in batches:
        across = min(starts, max(1, _PARTS * workers // candidates))
        tasks = candidates * across
        taken += max(math.ceil(tasks / workers) * math.ceil(starts / across), dispatched * tasks)
    return sum(math.prod(batch) for batch in batches) / taken


def search(env: str, steps: int) -> Row:
    """Search with TreeSearch; `between` is the share of CPU time outside of the episodes."""
    batches: list[tuple[int, int]] = []
    playing = 0.0

    def play(runner: Any, candidates: Candidates, starts: Any, *rest: Any) -> Any:
        nonlocal playing
        began = time.process_time()
        found = real(runner, candidates, starts, *rest)
        playing += time.process_time() - began
        batches.append((len(candidates.numbers), len(starts)))
        return found

    real = EpisodeRunner.play_candidates
    with mock.patch.object(EpisodeRunner, "play_candidates", play):
        began = time.process_time()
        agent = spaql.TreeSearch(env, seed=0).learn(steps, progress_bar=False)
        seconds = time.process_time() - began
    sizes = [math.prod(batch) for batch in batches]
    return {
        "env": env,
        "steps": agent.training_steps,
        "cpu_seconds": seconds,
        "us_per_step": 1e6 * seconds / agent.training_steps,
        "between": 1 - playing / seconds,
        "batches": len(batches),
        "median_episodes": float(np.median(sizes)),
        "most_episodes": max(sizes),
        **{f"speed_up_{workers}": speed_up(batches, workers) for workers in WORKERS},
        **{f"dispatched_{workers}": speed_up(batches, workers, DISPATCHED) for workers in WORKERS},
    }


def workers_search(steps: int) -> Row:
    """Search in a Gymnasium environment in worker processes, one for every core."""
    tasks = 0

    def count(*given: Any) -> Any:
        nonlocal tasks
        for part in real(*given):
            tasks += 1
            yield part

    real = EnvironmentCandidates._parts
    with mock.patch.object(EnvironmentCandidates, "_parts", count):
        own = time.process_time()
        agent = spaql.TreeSearch("benchmark/Plain-v0", seed=0, parallel=True)
        seconds = cpu_seconds(lambda: agent.learn(steps, progress_bar=False))
        own = time.process_time() - own
    return {
        "env": "benchmark/Plain-v0",
        "steps": agent.training_steps,
        "tasks": tasks,
        "driver_cpu_seconds": own,
        "workers_cpu_seconds": seconds - own,
    }


def dispatch(workers: int, tasks: int) -> Row:
    """Give tasks that do nothing to workers, each with a candidate of 60 numbers and 10 starts."""
    items = [(np.zeros((1, 12, 1, 5)), np.zeros((10, 4))) for _ in range(tasks)]
    with closing(Workers(workers)) as pool:
        list(pool.map(operator.itemgetter(0), iter(items[: 4 * workers])))  # start them
        began = time.process_time()
        list(pool.map(operator.itemgetter(0), iter(items)))
        return {"workers": workers, "driver_ms_per_task": 1e3 * (time.process_time() - began) / tasks}


COLUMNS = ["run", "cos", "sin", "speed", "torque"]
COST = "atan2(sin, cos)**2 + 0.1 * speed**2 + 0.001 * torque**2"


def pendulum_rows(rows: int) -> dict[str, Any]:
    """Return the log of a Pendulum under the controller of `logs.py`, all episodes of 200 rows at once."""
    rng, episodes = np.random.default_rng(0), max(2, rows // 200)
    angle, speed = rng.uniform(-np.pi, np.pi, episodes), rng.uniform(-1, 1, episodes)
    found = np.empty((episodes, 200, len(COLUMNS)))
    for i in range(200):
        near, energy = np.arctan2(np.sin(angle), np.cos(angle)), speed**2 / 6 + 5 * (np.cos(angle) - 1)
        torque = np.where(abs(near) < 0.6, -8 * near - speed, 1.4 * np.sign(-speed * energy + 1e-9))
        torque = np.clip(torque + rng.normal(0, 0.8, episodes), -2, 2)
        found[:, i] = np.column_stack([np.arange(episodes), np.cos(angle), np.sin(angle), speed, torque])
        speed = np.clip(speed + 0.05 * (15 * np.sin(angle) + 3 * torque), -8, 8)
        angle = angle + 0.05 * speed
    return dict(zip(COLUMNS, found.reshape(-1, len(COLUMNS)).T, strict=True))


def log(rows: int, effort: float) -> Row:
    """Fit a controller to a log by the command line; and only read it."""
    from pyarrow import parquet, table

    columns = pendulum_rows(rows)
    with tempfile.TemporaryDirectory() as folder:
        path, same = Path(folder) / "log.csv", Path(folder) / "log.parquet"
        numbers = np.column_stack(list(columns.values()))
        form = ["%d", *["%.9g"] * 4]
        np.savetxt(path, numbers, form, delimiter=",", header=",".join(COLUMNS), comments="")
        parquet.write_table(table(columns), same)
        read = [
            cpu_seconds(
                lambda: read_log(one, observations=COLUMNS[1:4], actions=COLUMNS[4:], episode="run")  # noqa: B023
            )
            for one in (path, same)
        ]
        options = ["--observations", ",".join(COLUMNS[1:4]), "--action", "torque", "--action-range", "-2,2"]
        options += [
            "--episode",
            "run",
            "--horizon",
            "200",
            "--cost",
            COST,
            "--effort",
            str(effort),
            "--anyway",
        ]
        fitted = command("fit", str(path), *options, "--out", str(Path(folder) / "run"), "--quiet")
        model = Path(folder) / "run" / MODEL_FILE
        predicted = json.loads(model.with_name(FIT_FILE).read_text(encoding="utf-8"))["predicted"]
        return {
            "rows": len(numbers),
            "csv_bytes_per_row": path.stat().st_size / len(numbers),
            "model_bytes_per_row": model.stat().st_size / len(numbers),
            "fit_cpu_seconds": fitted["cpu_seconds"],
            "fit_peak_mb": fitted["mb"],
            "csv_cpu_seconds": read[0],
            "parquet_cpu_seconds": read[1],
            "predicted": predicted["mean"],
            "half_width": predicted["half_width"],
        }


def big_tree(leaves: int) -> tuple[spaql.RuleTree, spaql.Problem]:
    """Return a random tree for CartPole, and CartPole."""
    problem = spaql.make_problem("CartPole-v1")
    tree = random_tree(np.random.default_rng(0), 4, leaves, fresh=1.0)
    same = dataclasses.replace(
        tree,
        leaf=np.where(tree.leaf < 0, -1, tree.leaf % 2),
        leaves=Choices(np.arange(2)),
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
    )
    return same, problem


def tree_size(leaves: int, points: int) -> Row:
    """Predict, save, load, print, graph, simplify and export a tree of so many leaves."""
    tree, problem = big_tree(leaves)
    rng = np.random.default_rng(1)
    seen = rng.choice(tree.threshold[tree.feature >= 0], (points, 4))  # in all parts of the tree
    tree.act(seen[:1])
    found: Row = {"leaves": tree.n_leaves, "depth": tree.depth}
    with tempfile.TemporaryDirectory() as folder:
        model, code = Path(folder) / "model.spaql", Path(folder) / "code" / "controller.c"
        code.parent.mkdir()
        found["predict_us"] = 1e3 * cpu_seconds(lambda: [tree.predict(x) for x in seen[:1000]])
        found["batch_us"] = 1e6 * cpu_seconds(lambda: tree.act(seen)) / points
        found["save_seconds"] = cpu_seconds(lambda: spaql.Controller(tree, problem).save(model))
        found["load_seconds"] = cpu_seconds(lambda: spaql.load(model))
        found["file_kb"] = model.stat().st_size / 1e3
        found["text_seconds"] = cpu_seconds(lambda: (Path(folder) / "text").write_text(text(tree)))
        found["text_kb"] = (Path(folder) / "text").stat().st_size / 1e3
        found["dot_seconds"] = cpu_seconds(lambda: dot(tree))
        found["simplified_seconds"] = cpu_seconds(lambda: simplified(tree, seen[:2000]))
        found["c_seconds"] = cpu_seconds(lambda: export_c(tree, code))
        found["c_kb"] = code.stat().st_size / 1e3
    return found


def minimised_size(leaves: int) -> Row:
    """Find a smaller tree that is equal everywhere, as `spaql show` does for a run, and write C as rules."""
    tree, _ = big_tree(leaves)
    found: Row = {"leaves": leaves}
    found["minimised_seconds"] = cpu_seconds(lambda: found.update(fewer=minimised(tree).n_leaves))
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "controller.c"
        found["c_rules_seconds"] = cpu_seconds(lambda: export_c(tree, code, form="rules"))
        found["c_rules_kb"] = code.stat().st_size / 1e3
    return found
