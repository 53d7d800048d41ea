"""What a mirror is worth to PlanTree, and where one is found: `python benchmarks/symmetry.py`.

Trains with and without `mirror="auto"`, and replays each controller from fresh starts. Every run is a line of
`--out` as soon as it is done, and is not done again; the tables are made of all lines there. `--detect` only
explores, with hardly any search of controllers, and counts the mirrors found in the memory; `--random` counts
those in memories of random actions, each held for up to 20 steps, which is quick; `--noise 0.1 0.01`
disturbs what is done and what is seen, as in `plantree.py`. `--wind 0 0.01 0.03 0.1` trains and replays
Pendulum-v1 in each of these winds, constant torques in Nm, in which it has no mirror.
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path

import gymnasium
import numpy as np
from plantree import ENVIRONMENTS, make, replay
from plantree_worlds import Windy

import spaql
from spaql.algorithms.plantree.encoding import ActionCode
from spaql.algorithms.plantree.replay_memory import Memory
from spaql.algorithms.plantree.symmetry import find_mirror
from spaql.formatting import with_interval
from spaql.policy.mirrored import folded, leaves_to_read
from spaql.stats import mean_ci95

MIRRORS = {
    "CartPole-v1": (-1, -1, -1, -1),
    "Pendulum-v1": (1, -1, -1),
    "Acrobot-v1": (1, -1, 1, -1, -1, -1),
}
"""The signs that the mirror of each symmetric plant has; the action is turned round in all of them."""
HARDLY = {"effort": 0.005, "leaves": 8}


def world(env: str, noise: tuple[float, float], wind: float) -> gymnasium.Env:
    return Windy(make(env, noise), wind) if wind else make(env, noise)


def measure(
    env: str,
    budget: int,
    seed: int,
    mirror: str,
    noise: tuple[float, float],
    wind: float,
    detect: bool,
    runs: Path | None,
) -> dict[str, object]:
    agent = spaql.PlanTree(world(env, noise, wind), seed=seed, mirror=mirror, **(HARDLY if detect else {}))
    cpu = time.process_time()
    agent.learn(total_timesteps=budget, progress_bar=False)
    cpu = time.process_time() - cpu
    found = agent._learner.mirror
    row = {
        "env": env,
        "budget": budget,
        "seed": seed,
        "mirror": mirror,
        "noise": list(noise),
        "wind": wind,
        "detect": detect,
    }
    row |= {"found": "none" if found is None else verdict("" if wind else env, found), "cpu": cpu}
    if not detect:
        returns, _ = replay(agent.policy, world(env, noise, wind), seed)
        row |= {"mean": float(np.mean(returns)), "worst": min(returns)}
        row |= {"leaves": leaves_to_read(agent.policy), "folded": folded(agent.policy) is not None}
    if runs is not None:
        agent.save(runs / f"{env}-{budget}-{seed}")
    return row


def count_in_random_memories(
    envs: list[str], budget: int, seeds: range, noise: tuple[float, float]
) -> dict[str, dict[str, int]]:
    counts = {env: {"right": 0, "wrong": 0, "none": 0} for env in envs}
    for env in envs:
        for seed in seeds:
            found = find_mirror(*random_memory(env, budget, seed, noise))
            counts[env]["none" if found is None else verdict(env, found)] += 1
        print(env, counts[env], flush=True)
    return counts


def random_memory(env: str, steps: int, seed: int, noise: tuple[float, float]) -> tuple[Memory, ActionCode]:
    world, rng = make(env, noise), np.random.default_rng(seed)
    code = ActionCode(world.action_space)
    tried, memory, over, held = code.tried(), Memory(world.observation_space.shape[0], code.numbers), True, 0
    for _ in range(steps):
        if over:
            state = world.reset(seed=int(rng.integers(2**31)))[0]
            memory.begin()
        if held == 0:
            held, action = int(rng.integers(1, 21)), tried[rng.integers(len(tried))]
        held -= 1
        after, reward, ended, truncated, _ = world.step(code.raw(action))
        memory.add(state, action, float(reward), after, ended=ended)
        state, over = after, ended or truncated
    return memory, code


def verdict(env, mirror) -> str:
    turned = mirror.action_signs == (-1,) or (
        not mirror.action_signs and mirror.action_order == tuple(range(len(mirror.action_order)))[::-1]
    )
    return "right" if turned and mirror.signs == MIRRORS.get(env) else "wrong"


def tables(rows: list[dict]) -> str:
    heads = (
        "environment",
        "noise",
        "wind",
        "steps",
        "mirror",
        "seeds",
        "found (wrong)",
        "mirrored controllers",
    )
    heads += "mean", "worst seed", "worst episode", "leaves", "cpu"
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    names = "env", "noise", "wind", "budget", "mirror", "detect"
    groups: dict[str, list[dict]] = {}
    for row in sorted(rows, key=lambda row: [row[name] for name in names]):
        groups.setdefault(json.dumps([row[name] for name in names]), []).append(row)
    for key, some in groups.items():
        env, noise, wind, budget, mirror, detect = json.loads(key)
        counts = {name: sum(row["found"] == name for row in some) for name in ("right", "wrong")}
        cells = [env, f"{noise[0]:g}, {noise[1]:g}" if any(noise) else "", f"{wind:g}", f"{budget:,}", mirror]
        cells += [str(len(some)), f"{counts['right']} ({counts['wrong']})" if mirror == "auto" else ""]
        if detect:
            cells += [""] * 5
        else:
            returns = np.array([row["mean"] for row in some])
            cells += [str(sum(row["folded"] for row in some))]
            cells += [with_interval(*mean_ci95(returns)) if len(some) > 1 else f"{returns[0]:.1f}"]
            cells += [f"{returns.min():.1f}", f"{min(row['worst'] for row in some):.0f}"]
            cells += [f"{np.mean([row['leaves'] for row in some]):.1f}"]
        cells.append(f"{np.median([row['cpu'] for row in some]):.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--env", action="append")
    parser.add_argument("--budget", type=int, action="append")
    parser.add_argument("--seeds", default="9000-9004")
    parser.add_argument("--noise", type=float, nargs=2, default=(0.0, 0.0))
    parser.add_argument("--wind", type=float, nargs="+", default=(0.0,), help="of Pendulum-v1, in Nm")
    parser.add_argument("--mirror", choices=("auto", "off"), action="append", help="both by default")
    parser.add_argument("--detect", action="store_true", help="only count the mirrors that are found")
    parser.add_argument("--out", type=Path, default=Path("symmetry.jsonl"))
    parser.add_argument("--runs", type=Path, help="folder in which to save the controllers")
    parser.add_argument("--random", action="store_true", help="count the mirrors in random memories")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    if given.random:
        seeds, budget = range(int(first), int(last or first) + 1), (given.budget or [3_000])[0]
        count_in_random_memories(given.env or list(ENVIRONMENTS), budget, seeds, tuple(given.noise))
        return
    rows = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    names = ("env", "budget", "seed", "mirror", "noise", "wind", "detect")
    done = {json.dumps([row[name] for name in names]) for row in rows}
    budgets = given.budget or ((3_000,) if given.detect else (3_000, 5_000, 10_000))
    mirrors = ("auto",) if given.detect else given.mirror or ("auto", "off")
    seeds, envs = range(int(first), int(last or first) + 1), given.env or ENVIRONMENTS
    for seed, budget, env, wind, mirror in product(seeds, budgets, envs, given.wind, mirrors):
        noise = tuple(given.noise)
        if json.dumps([env, budget, seed, mirror, list(noise), wind, given.detect]) in done:
            continue
        rows.append(measure(env, budget, seed, mirror, noise, wind, given.detect, given.runs))
        with given.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(json.dumps(rows[-1]), flush=True)
    print(tables(rows))


if __name__ == "__main__":
    main()
