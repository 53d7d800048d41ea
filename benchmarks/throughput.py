"""How fast training is beside the bare simulators: `python benchmarks/throughput.py [--json]`.

(a) compiled_over_bare: time of an environment step in a full SPAQL-TS run (the paper's settings, training,
    evaluation and all Python between them) over the time of a step of the bare compiled dynamics with random
    actions, which draws an action, makes the step and observes. Partitions have 1,000 arms or more.
(b) gymnasium_over_vector: the same for the Gymnasium path over bare stepping of Gymnasium's vector
    environment. Steps of environments whose episode has ended are steps made, in both.
(c) steps_per_second: our compiled path on one core beside Gymnasium's vector environments and, where it is
    installed, EnvPool, bare, on two.
(d) lookup_ns: a look-up in the flattened policy of a partition of so many balls.
(e) search_over_bare: time of a step in a whole search of TreeSearch over that of a step of the bare dynamics.
(f) startup_seconds: `spaql train CartPole-v1 --algo spaql --iterations 1`, with an empty and a warm cache.

All ratios are medians of interleaved measurements of processor time in one process of one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import spaql
from spaql.kernels.jit import njit
from spaql.kernels.partition.lookup import Flat, find_leaf, flatten
from spaql.partition import Partition
from spaql.problems.dynamics import _compiled

ROUNDS = 15


def bare_loop(problem: spaql.Problem) -> Callable[[np.random.Generator, int], int]:
    """The bare dynamics under random actions: give it a number of episodes, it gives the steps made."""
    dynamics = problem.dynamics
    assert dynamics is not None
    start, step, observe = (_compiled(f) for f in (dynamics.start, dynamics.step, dynamics.observe))
    horizon, seen = problem.horizon, problem.states.dims
    actions = problem.actions
    discrete = actions.action_map.levels == 1
    n = actions.sizes[0]
    low, high = float(actions.action_map.low[0]), float(actions.action_map.high[0])

    def bare(rng: np.random.Generator, episodes: int) -> int:
        observation, action = np.empty(seen), np.empty(1)
        steps, total = 0, 0.0
        for _ in range(episodes):
            state = start(rng)
            for _ in range(horizon):
                if discrete:
                    state, reward, terminated = step(state, int(rng.random() * n))
                else:
                    action[0] = np.float64(np.float32(low + (high - low) * rng.random()))
                    state, reward, terminated = step(state, action)
                for j, x in enumerate(observe(state)):
                    observation[j] = np.float64(np.float32(x))
                    total += observation[j]  # or the compiler would leave it out
                total += reward
                steps += 1
                if terminated:
                    break
        return steps if total < np.inf else 0

    return njit(bare, depends_on=problem.name)  # or the cache would give one problem's loop for another's


@njit
def look_up(flat: Flat, raw: NDArray[np.float64], leaves: NDArray[np.int64]) -> None:
    """Find the leaf of every row."""
    for i in range(raw.shape[0]):
        leaves[i] = find_leaf(flat, 0, raw[i], 4)


def timed(work: Callable[[], int]) -> float:
    """Nanoseconds a step."""
    begin = time.process_time()
    steps = work()
    return 1e9 * (time.process_time() - begin) / steps


def interleaved(first: Callable[[], int], second: Callable[[], int]) -> tuple[float, float]:
    """Median nanoseconds a step of both, measured by turns."""
    first(), second()
    rows = np.array([(timed(first), timed(second)) for _ in range(ROUNDS)])
    a, b = np.median(rows, axis=0)
    return float(a), float(b)


def trainer(agent: spaql.Agent, iterations: int) -> Callable[[], int]:
    """Work that trains on, and counts all environment steps."""

    def work() -> int:
        before = agent.history.last()["interactions"]
        agent.learn(iterations=iterations, progress_bar=False)
        return int(agent.history.last()["interactions"] - before)

    return work


def grown(problem: str, scaling: float, rollouts: int, **options: Any) -> spaql.Agent:
    """An agent of the paper's settings with at least 1,000 arms."""
    agent = spaql.SPAQLTS(problem, scaling=scaling, rollouts=rollouts, seed=0, **options)
    agent.learn(iterations=100, progress_bar=False)
    while agent.policy.partition.arms < 1_000:
        agent.learn(iterations=100, progress_bar=False)
    return agent


def compiled_over_bare() -> tuple[dict[str, float], dict[str, float]]:
    """(a), and the steps a second behind it."""
    ratios, speeds = {}, {}
    for problem, scaling, rollouts in (("cartpole200", 20.0, 100), ("pendulum", 0.4, 20)):
        agent = grown(problem, scaling, rollouts)
        bare, rng = bare_loop(agent.problem), np.random.default_rng(0)
        episodes = 5_000 if problem == "cartpole200" else 500
        ours, theirs = interleaved(trainer(agent, 50), lambda: bare(rng, episodes))  # noqa: B023
        ratios[problem] = ours / theirs
        speeds[f"spaql-ts {problem}, one core"] = 1e9 / ours
        speeds[f"bare compiled {problem}, one core"] = 1e9 / theirs
    return ratios, speeds


def search_over_bare() -> dict[str, float]:
    """(e): a search of two million steps, from the first random tree to the last digit."""
    ratios = {}
    for env in ("CartPole-v1", "MountainCar-v0", "Acrobot-v1", "Pendulum-v1"):
        problem = spaql.make_problem(env)
        bare, rng = bare_loop(problem), np.random.default_rng(0)

        def search() -> int:
            agent = spaql.TreeSearch(problem, seed=0).learn(2_000_000, progress_bar=False)  # noqa: B023
            return int(agent.training_steps)

        ours, theirs = interleaved(search, lambda: bare(rng, 2_000))  # noqa: B023
        ratios[env] = ours / theirs
    return ratios


def vector_loop(n: int, steps: int) -> Callable[[], int]:
    """Gymnasium's own vector CartPole under random actions."""
    env = gymnasium.make_vec("CartPole-v1", n, max_episode_steps=200)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 2, (steps, n))

    def work() -> int:
        for row in actions:
            env.step(row)
        return n * steps

    return work


def gymnasium_trainer(agent: spaql.Agent, iterations: int) -> Callable[[], int]:
    """Work that trains on, and counts the steps made, those after the end of an episode included."""
    made = 0
    make_vector = spaql.Problem.make_vector

    def make_counting(problem: spaql.Problem, n: int) -> Any:
        env = make_vector(problem, n)
        step = env.step

        def counting(actions: Any) -> Any:
            nonlocal made
            made += n
            return step(actions)

        env.step = counting
        return env

    def work() -> int:
        nonlocal made
        made, begin = 0, len(agent.history)
        spaql.Problem.make_vector = make_counting
        agent.learn(iterations=iterations, progress_bar=False)
        spaql.Problem.make_vector = make_vector
        return made + int(np.diff(agent.history["training_steps"][begin - 1 :]).sum())

    return work


def gymnasium_over_vector() -> tuple[dict[str, float], dict[str, float]]:
    """(b), and the steps a second behind it."""
    ratios, speeds = {}, {}
    for n in (20, 100):
        agent = grown("cartpole200", 20.0, n, compiled=False)
        ours, theirs = interleaved(gymnasium_trainer(agent, 5), vector_loop(n, 1_000))
        ratios[str(n)] = ours / theirs
        speeds[f"spaql-ts on Gymnasium, N = {n}"] = 1e9 / ours
        speeds[f"bare Gymnasium vector, N = {n}"] = 1e9 / theirs
    return ratios, speeds


def envpool_speed(n: int = 100) -> dict[str, float]:
    """(c): bare EnvPool with two threads, where it is installed."""
    try:
        import envpool
    except ImportError:
        return {}
    env = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=n, num_threads=2)
    env.reset()
    actions = np.random.default_rng(0).integers(0, 2, (2_000, n))

    def work() -> int:
        for row in actions:
            env.step(row)
        return actions.size

    work()
    return {f"bare EnvPool, N = {n}, two cores": 1e9 / float(np.median([timed(work) for _ in range(5)]))}


def lookup_ns() -> dict[str, float]:
    """(d): random states in a partition of CartPole's shape that was split at random points."""
    sys.path.insert(0, str(Path(__file__).parent))
    from partition_size import DIMS, grow

    rng = np.random.default_rng(0)
    states = spaql.make_problem("cartpole200").states
    partition = Partition(DIMS, [2])
    times = {}
    for target in (10**3, 10**4, 10**5, 10**6, 10**7):
        partition.reserve(target - partition.n_balls + partition.children_at_most)
        grow(partition.balls, target, rng)
        partition.balls.q[: partition.n_balls] = rng.random(partition.n_balls)
        flat = flatten(partition.balls, 1, states.state_map, states.thresholds)
        raw = np.stack([states.restore(p) for p in rng.uniform(-1, 1, (100_000, DIMS))])
        leaves = np.empty(len(raw), np.int64)

        def work() -> int:
            look_up(flat, raw, leaves)  # noqa: B023
            return len(raw)  # noqa: B023

        work()
        times[str(partition.n_balls)] = float(np.median([timed(work) for _ in range(5)]))
    return times


def startup_seconds() -> dict[str, float]:
    """(f), as a user's shell sees it."""
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env["NUMBA_CACHE_DIR"] = folder
        times = []
        for i in range(4):
            begin = time.perf_counter()
            words = [
                "train",
                "CartPole-v1",
                "--algo",
                "spaql",
                "--iterations",
                "1",
                "--quiet",
                "--out",
                f"{folder}/run{i}",
            ]
            subprocess.run([sys.executable, "-m", "spaql", *words], env=env, check=True, capture_output=True)
            times.append(time.perf_counter() - begin)
    return {"cold": times[0], "warm": float(np.median(times[1:]))}


def main() -> None:
    """Measure everything, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    compiled, speeds = compiled_over_bare()
    vector, vector_speeds = gymnasium_over_vector()
    result = {
        "compiled_over_bare": compiled,
        "gymnasium_over_vector": vector,
        "steps_per_second": speeds | vector_speeds | envpool_speed(),
        "lookup_ns": lookup_ns(),
        "search_over_bare": search_over_bare(),
        "startup_seconds": startup_seconds(),
    }
    if options.json:
        print(json.dumps(result))
        return
    for title, rows in result.items():
        print(title)
        for name, value in rows.items():
            print(f"  {name:<42} {value:>14,.2f}" if value < 1_000 else f"  {name:<42} {value:>14,.0f}")


if __name__ == "__main__":
    main()
