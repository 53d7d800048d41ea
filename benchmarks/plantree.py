"""What PlanTree reaches for its interactions: `python benchmarks/plantree.py --seeds 1000-1019`.

Trains with the default settings, every interaction counted, and replays each controller from fresh starts in
Gymnasium's own environments. Every run is a line of `--out` as soon as it is done, and is not done again; the
table is made of all lines there.
"""

import argparse
import json
import time
from pathlib import Path

import gymnasium
import numpy as np

import spaql
from spaql.stats import mean_ci95

ENVIRONMENTS = ("Pendulum-v1", "CartPole-v1", "MountainCar-v0", "Acrobot-v1", "MountainCarContinuous-v0")
BUDGETS = (3_000, 5_000, 10_000, 20_000, 50_000)
EPISODES = 100


def measure(env: str, budget: int, seed: int) -> dict[str, object]:
    agent = spaql.PlanTree(env, seed=seed)
    wall, cpu = time.perf_counter(), time.process_time()
    agent.learn(total_timesteps=budget, progress_bar=False)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    returns, change = replay(agent.policy, env, seed)
    return {
        "env": env,
        "budget": budget,
        "seed": seed,
        "interactions": int(agent.history["interactions"][-1]),
        "mean": float(np.mean(returns)),
        "worst_start": float(np.min(returns)),
        "chattering": change,
        "leaves": agent.policy.tree.n_leaves,
        "wall": wall,
        "cpu": cpu,
    }


def replay(policy: spaql.Policy, env_id: str, seed: int) -> tuple[list[float], float]:
    """Play fresh episodes: gives their returns, and the mean change of the action from step to step."""
    env = gymnasium.make(env_id)
    returns, changes = [], []
    for episode in range(EPISODES):
        observation, _ = env.reset(seed=10_000_000 + EPISODES * seed + episode)
        total, before, over = 0.0, None, False
        while not over:
            action, _ = policy.predict(observation, deterministic=True)
            if before is not None:
                changes.append(float(np.abs(np.subtract(action, before)).mean()))
            observation, reward, terminated, truncated, _ = env.step(action)
            total, before, over = total + float(reward), action, terminated or truncated
        returns.append(total)
    env.close()
    return returns, float(np.mean(changes))


def table(rows: list[dict]) -> str:
    head = (
        "environment",
        "steps",
        "seeds",
        "return",
        "worst seed",
        "worst start",
        "change",
        "leaves",
        "s",
        "cpu s",
    )
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for env in ENVIRONMENTS:
        for budget in sorted({row["budget"] for row in rows}):
            some = [row for row in rows if (row["env"], row["budget"]) == (env, budget)]
            if some:
                means = np.array([row["mean"] for row in some])
                mean, half = mean_ci95(means) if len(some) > 1 else (means[0], float("nan"))
                median = {name: float(np.median([row[name] for row in some])) for name in ("wall", "cpu")}
                cells = (
                    env,
                    f"{budget:,}",
                    str(len(some)),
                    f"{mean:.1f} ± {half:.1f}",
                    f"{means.min():.1f}",
                    f"{np.mean([row['worst_start'] for row in some]):.0f}",
                    f"{np.mean([row['chattering'] for row in some]):.3f}",
                    f"{np.mean([row['leaves'] for row in some]):.1f}",
                    f"{median['wall']:.0f}",
                    f"{median['cpu']:.0f}",
                )
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", action="append", choices=ENVIRONMENTS, help="all by default")
    parser.add_argument("--budget", action="append", type=int, help=f"{BUDGETS} by default")
    parser.add_argument("--seeds", default="1000-1019", help="first and last, such as 1000-1019")
    parser.add_argument("--out", type=Path, default=Path("plantree.jsonl"))
    parser.add_argument(
        "--table", action="store_true", help="print the table of what is there, and run nothing"
    )
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(row["env"], row["budget"], row["seed"]) for row in rows}
    first, last = map(int, options.seeds.split("-"))
    wanted = [
        (env, budget, seed)
        for seed in range(first, last + 1)
        for budget in options.budget or BUDGETS
        for env in options.env or ENVIRONMENTS
    ]
    for run in [] if options.table else wanted:
        if run not in done:
            rows.append(measure(*run))
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(json.dumps(rows[-1]), flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
