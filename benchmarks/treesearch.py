"""TreeSearch over seeds: returns from fresh starts, the worst start, sizes and cost.

    python benchmarks/treesearch.py CartPole-v1 1000000 --seeds 7000-7019
    python benchmarks/treesearch.py wide-cartpole 1000000 --seeds 7000-7019 --episodes 10000
    python benchmarks/treesearch.py LunarLander-v3 2000000 --seeds 7000-7004 --parallel
    python benchmarks/treesearch.py LunarLanderContinuous-v3 2000000 --seeds 7000-7004

One default setting for every problem. `wide-cartpole` begins in a box ten times as wide as Gymnasium's.
"""

import argparse
import json
import math
import time
from pathlib import Path

import gymnasium
import numpy as np
import plantree_worlds  # noqa: F401 (registers CartPoleSwingUp-v0)
from limits import limit

import spaql
from spaql.evaluation import start_states
from spaql.policy import FeatureController, RandomPolicy
from spaql.problems.classic import find_dynamics
from spaql.stats import mean_ci95

CARTPOLE = find_dynamics("CartPole-v1")
assert CARTPOLE is not None


def start_wide(rng):
    """|x| < 1.2, |angle| < 0.12, and speeds below 0.5."""
    return (
        rng.uniform(-1.2, 1.2),
        rng.uniform(-0.5, 0.5),
        rng.uniform(-0.12, 0.12),
        rng.uniform(-0.5, 0.5),
    )


WIDE = spaql.Dynamics(
    id="wide-cartpole",
    start=start_wide,
    step=CARTPOLE.step,
    observe=CARTPOLE.observe,
    observations=CARTPOLE.observations,
    actions=CARTPOLE.actions,
    horizon=500,
)


def one_seed(env: str, steps: int, seed: int, episodes: int, parallel: bool, settings: dict) -> dict:
    """Search, and judge what was found from fresh starts."""
    wall, cpu = time.perf_counter(), time.process_time()
    agent = spaql.TreeSearch(env, seed=seed, parallel=parallel, **settings)
    agent.learn(steps, progress_bar=False)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    fresh = spaql.evaluate(agent, episodes=episodes, seed=10**6 + seed)
    tree = agent.policy
    if isinstance(tree, FeatureController):
        tree = tree.tree
    return {
        "env": env,
        "steps": steps,
        "seed": seed,
        "taken": agent.training_steps,
        "mean": fresh.mean,
        "worst_start": float(fresh.returns.min()),
        "failing": int((fresh.returns < fresh.returns.max() - 1e-9).sum())
        if "artpole" in env.lower()
        else -1,
        "leaves": tree.n_leaves,
        "numbers": tree.n_numbers,
        "cpu": cpu,
        "wall": wall,
        "rules": str(agent.policy),
    }


def row_of(found: list[dict]) -> str:
    """Return the line of a table."""

    def most(name: str) -> str:
        values = [one[name] for one in found]
        return f"{np.mean(values):.1f} (most {max(values)})"

    means = np.array([one["mean"] for one in found])
    mean, half = mean_ci95(means)
    spread = "" if math.isnan(half) else f" ± {half:.2f}"
    failing = f", {sum(one['failing'] for one in found)} failing starts" if found[0]["failing"] >= 0 else ""
    return (
        f"{found[0]['env']} at {found[0]['steps']:,}: {mean:.2f}{spread} over {len(found)} seeds, worst seed "
        f"{means.min():.2f}, worst start {min(one['worst_start'] for one in found):.1f}{failing}; leaves "
        f"{most('leaves')}, numbers {most('numbers')}; "
        f"CPU {np.mean([one['cpu'] for one in found]):.1f} s, "
        f"wall {np.mean([one['wall'] for one in found]):.1f} s"
    )


def gap_text(found: list[dict], episodes: int) -> str:
    """Return how far below the highest possible returns from the same starts the seeds are."""
    problem = spaql.make_problem(found[0]["env"])
    policy = RandomPolicy(problem.states, problem.actions)
    starts = [start_states(policy, problem, episodes=episodes, seed=10**6 + one["seed"]) for one in found]
    best = limit(problem, np.concatenate(starts)).returns.reshape(len(found), episodes).mean(axis=1)
    gaps = best - np.array([one["mean"] for one in found])
    mean, half = mean_ci95(gaps)
    return f"limit {best.mean():.2f}, gap {mean:.2f} ± {half:.2f}, largest {gaps.max():.2f}"


def main() -> None:
    """Run the seeds, and print a line for each and one for all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("env")
    parser.add_argument("steps", type=int)
    parser.add_argument("--seeds", default="7000-7004")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--limit", action="store_true", help="also print the gap to the highest returns")
    parser.add_argument("--settings", default="{}", help="of TreeSearch, as JSON")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    settings, found = json.loads(given.settings), []
    if given.env in gymnasium.registry and not given.parallel:  # compile before anything is timed
        one_seed(given.env, 2_000, 0, 1, False, settings)
    first, last = map(int, given.seeds.split("-"))
    for seed in range(first, last + 1):
        one = one_seed(given.env, given.steps, seed, given.episodes, given.parallel, settings)
        found.append(one)
        print({name: value for name, value in one.items() if name != "rules"}, flush=True)
    print(row_of(found))
    if given.limit:
        print(gap_text(found, given.episodes))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
