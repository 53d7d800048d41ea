"""The paper's long runs at full size, one command each, beside the figures to expect.

    python benchmarks/reproduction.py cartpole200 spaql-ts      # 20 seeds x 2,000 iterations
    python benchmarks/reproduction.py --all                     # every line of the table
    python benchmarks/reproduction.py --all --seeds 2 --iterations 50

Best seen is the best of all evaluations of a run, biased upwards; fresh are 500 new episodes of the kept
agent; solved counts the agents with a mean of at least 195 over 100 fresh episodes. ± is Student's 95 %
interval over agents, except in the expected figures, where it is 1.96 standard errors.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

import spaql
from spaql.agents import agent_types
from spaql.experiments.table import interval
from spaql.stats import mean_ci95


@dataclass(frozen=True)
class Study:
    """One line of the paper's tables, with what an independent prototype and the paper report."""

    problem: str
    algorithm: str
    scaling: float
    rollouts: int
    expected: str


STUDIES = (
    Study("cartpole200", "spaql", 20, 100, "best 189.7 ± 1.2, fresh 183.3 ± 1.5, arms 648 ± 59"),
    Study("cartpole200", "spaql-ts", 20, 100, "best 199.8 ± 0.3, fresh 198.5 ± 0.8, arms 1375 ± 126"),
    Study("cartpole200", "aql", 120, 100, "last 21.0 ± 2.2, arms 32,865 ± 323"),
    Study("pendulum", "spaql", 4, 20, "best -502 ± 44, fresh -701 ± 52, arms 1421 ± 145"),
    Study("pendulum", "spaql-ts", 0.4, 20, "best -562 ± 74, fresh -782 ± 71, arms 1098 ± 86"),
    Study("pendulum", "aql", 20, 20, "last -1188 ± 36, arms 196,259 ± 2,167"),
    Study("pendulum5", "spaql", 4, 20, "best -301 ± 31, fresh -443 ± 35, arms 1282 ± 83"),
    Study("pendulum5", "spaql-ts", 0.4, 20, "best -456 ± 73, fresh -730 ± 87, arms 873 ± 62"),
)


def run(study: Study, seed: int, iterations: int) -> dict[str, float]:
    """Train one agent, and judge it by fresh episodes."""
    agent = agent_types()[study.algorithm](
        study.problem, seed=seed, scaling=study.scaling, rollouts=study.rollouts
    )
    agent.learn(iterations=iterations, progress_bar=False)
    last = agent.history.last()
    fresh = spaql.evaluate(agent, episodes=500, seed=10_000 + seed)
    return {
        "best": last["best_return"],
        "last": last["mean_return"],
        "fresh": fresh.mean,
        "first_hundred": float(fresh.returns[:100].mean()),
        "arms": last["arms"],
        "interactions": last["interactions"],
    }


def measure(study: Study, seeds: int, iterations: int, workers: int) -> dict[str, object]:
    """Run a study on several processes."""
    begin = time.perf_counter()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run, study, seed, iterations) for seed in range(seeds)]
        rows = [future.result() for future in futures]
    column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {
        "problem": study.problem,
        "algorithm": study.algorithm,
        **{name: mean_ci95(column[name]) for name in ("best", "last", "fresh", "arms")},
        "solved": int((column["first_hundred"] >= 195).sum()),
        "interactions": float(column["interactions"].sum()),
        "seconds": time.perf_counter() - begin,
        "expected": study.expected,
    }


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("problem", nargs="?")
    parser.add_argument("algorithm", nargs="?")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    named = (options.problem, options.algorithm)
    chosen = [s for s in STUDIES if options.all or (s.problem, s.algorithm) == named]
    if not chosen:
        parser.error("name a problem and an algorithm, or --all")
    for study in chosen:
        result = measure(study, options.seeds, options.iterations, options.workers)
        if options.json:
            print(json.dumps(result), flush=True)
            continue
        shown = {name: interval(*result[name]) for name in ("best", "last", "fresh", "arms")}
        print(
            f"{study.problem} {study.algorithm} (xi = {study.scaling:g}, N = {study.rollouts}), "
            f"{options.seeds} seeds x {options.iterations:,} iterations in {result['seconds']:.0f} s\n"
            f"  measured: best {shown['best']}, last {shown['last']}, fresh {shown['fresh']}, "
            f"arms {shown['arms']}, solved {result['solved']}\n"
            f"  expected: {study.expected}",
            flush=True,
        )


if __name__ == "__main__":
    main()
