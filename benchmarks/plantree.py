"""What PlanTree reaches for its interactions: `python benchmarks/plantree.py --seeds 6000-6019`.

Trains with the default settings, every interaction counted, and replays each controller from fresh starts in
Gymnasium's own environments. Every run is a line of `--out` as soon as it is done, and is not done again; the
table is made of all lines there. `--env` takes any id, those of `plantree_worlds.py` too. `--noise 0.1
0.01` disturbs what is done by 10 % of half its range and what is seen by 1 %, in training and replay.
`--change` takes one of the ideas away, or changes it, to see what it is worth.
"""

import argparse
import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
from plantree_worlds import Noisy

import spaql
from spaql.algorithms.plantree import build, dynamics, planning
from spaql.formatting import with_interval
from spaql.stats import mean_ci95

ENVIRONMENTS = ("Pendulum-v1", "CartPole-v1", "MountainCar-v0", "Acrobot-v1", "MountainCarContinuous-v0")
BUDGETS = (3_000, 5_000, 10_000, 20_000, 50_000)
EPISODES = 100
LOOK_AHEAD, QUIET = "look-ahead, not written down", "learned without noise"
SETTINGS: dict[str, dict[str, Any]] = {
    "one plant to search in": {"members": 1},
    "one partition": {"partitions": 1},
    "hardly polished": {"effort": 0.02},
    "no own episodes": {"own_share": 0.0},
    "the best of any size": {"tolerance": 0.0},
    "the smallest within 10 %": {"tolerance": 0.1},
    LOOK_AHEAD: {"own_share": 0.0, "effort": 0.001},
    QUIET: {},
}
CONSTANTS: dict[str, tuple[tuple[ModuleType, str, float], ...]] = {
    "one plant to search in": ((build, "_JUDGES", 8),),
    "no price on changes": ((build, "_PRICE", 0.0),),
    "no boxes": ((build, "CAUTIOUS", 1e6), (planning, "CAUTIOUS", 1e6), (planning, "BOLD", 1e6)),
    "narrow boxes to explore": ((planning, "BOLD", dynamics.CAUTIOUS),),
    "narrow rim": ((planning, "_SEARCHING", 0.05),),
}
"""Changes, as settings and as constants of modules. Eight plants to judge in stay eight."""


def make(env: str, noise: tuple[float, float]) -> gymnasium.Env:
    made = gymnasium.make(env)
    return Noisy(made, *noise) if any(noise) else made


def measure(env: str, budget: int, seed: int, noise: tuple[float, float], change: str) -> dict[str, object]:
    for module, name, value in CONSTANTS.get(change, ()):
        setattr(module, name, value)
    world = make(env, noise) if any(noise) and change != QUIET else env
    agent = spaql.PlanTree(world, seed=seed, **SETTINGS.get(change, {}))
    wall, cpu = time.perf_counter(), time.process_time()
    agent.learn(total_timesteps=budget, progress_bar=False)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    policy = LookAhead(agent) if change == LOOK_AHEAD else agent.policy
    returns, step = replay(policy, make(env, noise), seed)
    return {
        "env": shown(env, noise, change),
        "budget": budget,
        "seed": seed,
        "interactions": int(agent.history["interactions"][-1]),
        "mean": float(np.mean(returns)),
        "worst_start": float(np.min(returns)),
        "chattering": step,
        "leaves": 0 if change == LOOK_AHEAD else agent.policy.n_leaves,
        "wall": wall,
        "cpu": cpu,
    }


def shown(env: str, noise: tuple[float, float], change: str) -> str:
    disturbed = f"noise {noise[0]:g} and {noise[1]:g}" if any(noise) else ""
    return ", ".join(part for part in (env, disturbed, change) if part)


class LookAhead:
    """What the plan itself does, without a tree: the best by the learned plant and values, at every step."""

    def __init__(self, agent: spaql.PlanTree) -> None:
        self.code, self.actions = agent._learner.code, agent._learner.code.tried()
        self.plan = agent._learner.final_plan(np.random.default_rng(agent.seed))

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[Any, None]:
        values = self.plan.values(np.asarray(observation, np.float64), optimistic=False)
        return self.code.raw(self.actions[values.argmax()]), None


def replay(policy: spaql.Policy | LookAhead, env: gymnasium.Env, seed: int) -> tuple[list[float], float]:
    """Play fresh episodes: gives their returns, and the mean change of the action from step to step."""
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
    for env in dict.fromkeys(row["env"] for row in rows):
        for budget in sorted({row["budget"] for row in rows}):
            some = [row for row in rows if (row["env"], row["budget"]) == (env, budget)]
            if some:
                means = np.array([row["mean"] for row in some])
                mean, half = mean_ci95(means)
                median = {name: float(np.median([row[name] for row in some])) for name in ("wall", "cpu")}
                cells = (
                    env,
                    f"{budget:,}",
                    str(len(some)),
                    with_interval(mean, half),
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
    parser.add_argument("--env", action="append", help=f"{', '.join(ENVIRONMENTS)} by default")
    parser.add_argument("--budget", action="append", type=int, help=f"{BUDGETS} by default")
    parser.add_argument("--seeds", default="6000-6019", help="first and last; 6000-6019 by default")
    parser.add_argument("--noise", nargs=2, type=float, default=(0.0, 0.0), metavar=("DONE", "SEEN"))
    parser.add_argument("--change", choices=[*(SETTINGS | CONSTANTS)], default="")
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
    for env, budget, seed in [] if options.table else wanted:
        if (shown(env, options.noise, options.change), budget, seed) not in done:
            rows.append(measure(env, budget, seed, options.noise, options.change))
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(json.dumps(rows[-1]), flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
