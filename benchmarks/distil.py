"""Networks made readable: `python benchmarks/distil.py`.

Trains an agent of Stable-Baselines3 on each problem, turns it into a tree by `spaql.distil`, and prints both
beside each other. Hyperparameters of the networks are those that rl-zoo3 publishes, in fewer steps where
fewer do. Networks are kept in `--folder`, and not trained again. Every distillation is a line of `--out`, and
is not done again; the table is made of all lines there.

Needs `pip install 'spaql[baselines]' 'gymnasium[mujoco]'`; `--env` chooses some of the problems.
"""

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import spaql
from spaql.formatting import with_interval
from spaql.studies.baselines.networks import make_network
from spaql.studies.baselines.zoo import ZOO

MILLION = 1_000_000


class Task(NamedTuple):
    """How long a network is trained, and how its tree is made."""

    algorithm: str
    trained: int
    steps: int = MILLION
    rounds: int = 5
    episodes: int = 100


TASKS = {
    "CartPole-v1": Task("ppo", 100_000),
    "Acrobot-v1": Task("ppo", 100_000),
    "MountainCar-v0": Task("dqn", 120_000),
    "Pendulum-v1": Task("sac", 6_000, 10 * MILLION, 10, 500),
    "MountainCarContinuous-v0": Task("ppo", 20_000),
    "InvertedPendulum-v5": Task("ppo", 50_000),
    "InvertedDoublePendulum-v5": Task("sac", 30_000, 2 * MILLION, 10),
}
MORE = {
    ("ppo", "MountainCarContinuous-v0"): {
        "normalize": True,
        "n_steps": 8,
        "batch_size": 256,
        "gamma": 0.9999,
        "learning_rate": 7.77e-5,
        "ent_coef": 0.00429,
        "clip_range": 0.1,
        "n_epochs": 10,
        "gae_lambda": 0.9,
        "max_grad_norm": 5,
        "vf_coef": 0.19,
        "use_sde": True,
        "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False},
    },
    ("ppo", "InvertedPendulum-v5"): {
        "normalize": True,
        "n_steps": 32,
        "batch_size": 64,
        "gamma": 0.999,
        "learning_rate": 0.000222425,
        "ent_coef": 1.37976e-07,
        "clip_range": 0.4,
        "n_epochs": 5,
        "gae_lambda": 0.9,
        "max_grad_norm": 0.3,
        "vf_coef": 0.19816,
    },
    ("sac", "InvertedDoublePendulum-v5"): {},
}
"""Hyperparameters that `ZOO` does not have: rl-zoo3's, published for version 3 of MuJoCo's problems, and
Stable-Baselines3's own for SAC."""


def teacher(env: str, task: Task, seed: int, folder: Path) -> tuple[Path, Path | None]:
    """Return the file of a network, which is trained if it is not there, and that of its normalisation."""
    file = folder / f"{task.algorithm}-{env}-{seed}.zip"
    scale = file.with_suffix(".pkl")
    if not file.exists():
        begun = time.process_time()
        settings = {**ZOO, **MORE}[task.algorithm, env]
        model = make_network(task.algorithm, spaql.make_problem(env, measured=False), settings, seed).model
        model.learn(task.trained)
        if (envs := model.get_vec_normalize_env()) is not None:
            envs.save(str(scale))
        model.save(file)
        print(f"{file.name}: {time.process_time() - begun:.0f} CPU seconds", flush=True)
    return file, scale if scale.exists() else None


def measure(env: str, task: Task, seed: int, folder: Path) -> dict[str, object]:
    """Return the figures of a distillation."""
    file, scale = teacher(env, task, seed, folder)
    begun = time.process_time()
    found = spaql.distil(
        file,
        env,
        rounds=task.rounds,
        total_timesteps=task.steps,
        judged_episodes=task.episodes,
        seed=seed,
        vec_normalize=scale,
    )
    found.save(folder / f"{env}-{seed}")
    row = {"env": env, "seed": seed, "algorithm": task.algorithm, "trained": task.trained}
    return row | {"cpu": time.process_time() - begun} | found.as_data()


def table(rows: list[dict]) -> str:
    """Return the table of all distillations."""
    heads = "problem", "network, steps", "its return", "worst", "imitation", "leaves", "tree", "worst"
    heads += "leaves", "of the network's", "steps of spaql", "CPU s"
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    order = list(TASKS)
    for row in sorted(rows, key=lambda row: (order.index(row["env"]), row["seed"])):
        expert, imitation, tree = row["expert"], row["imitation"], row["tree"]
        taken = sum(n for phase, n in row["steps"].items() if phase != "judgement")
        cells = [
            row["env"],
            f"{row['algorithm'].upper()}, {row['trained']:,}",
            with_interval(expert["mean"], expert["ci95"]),
            f"{expert['worst']:.1f}",
            with_interval(imitation["mean"], imitation["ci95"]),
            str(imitation["leaves"]),
            with_interval(tree["mean"], tree["ci95"]),
            f"{tree['worst']:.1f}",
            str(tree["leaves"]),
            f"{row['kept']:.1%}",
            f"{taken:,}",
            f"{row['cpu']:.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run what is asked for and not done yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--env", action="append", choices=list(TASKS))
    parser.add_argument("--seed", type=int, default=9000)
    parser.add_argument("--folder", type=Path, default=Path("distilled"))
    parser.add_argument("--out", type=Path, default=Path("distil.jsonl"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    rows = [json.loads(line) for line in lines]
    for env in given.env or TASKS:
        if any((row["env"], row["seed"]) == (env, given.seed) for row in rows):
            continue
        rows.append(measure(env, TASKS[env], given.seed, given.folder))
        with given.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(table(rows[-1:]).splitlines()[-1], flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
