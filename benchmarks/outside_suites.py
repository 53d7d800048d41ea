"""Our learners beside networks of Stable-Baselines3 on MuJoCo and pc-gym, at the same interactions.

    pip install "spaql[mujoco,baselines]" pcgym
    python benchmarks/outside_suites.py --out outside.jsonl                    # 10,000 interactions
    python benchmarks/outside_suites.py --problems cstr --algos plantree,ppo --seeds 9110

Controllers are judged in 20 fresh episodes of MuJoCo's plants, networks without exploration. An episode of
pc-gym's has one start and one sequence of set-points, so one is enough. Its oracle is a predictive controller
of do-mpc with the plant's equations, whose actions are replayed in the same environment: as it is, and told
of set-points in time. What is in the file of --out already is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from distil import MORE

import spaql
from spaql.studies.baselines.networks import NETWORKS, make_network
from spaql.tables import markdown

MUJOCO = (
    "InvertedPendulum-v5",
    "InvertedDoublePendulum-v5",
    "Swimmer-v5",
    "Reacher-v5",
    "Hopper-v5",
)
LEARNERS = {"plantree": spaql.PlanTree, "treesearch": spaql.TreeSearch}
ORACLES = ("oracle", "oracle in time")
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("ppo", "InvertedPendulum-v5"): MORE["ppo", "InvertedPendulum-v5"],
    ("ppo", "InvertedDoublePendulum-v5"): {
        "normalize": True,
        "batch_size": 128,  # 512, which is more than the 128 steps of a batch
        "n_steps": 128,
        "gamma": 0.98,
        "learning_rate": 0.000155454,
        "ent_coef": 1.05057e-06,
        "clip_range": 0.4,
        "n_epochs": 10,
        "gae_lambda": 0.8,
        "max_grad_norm": 0.5,
        "vf_coef": 0.695929,
    },
    ("ppo", "Swimmer-v5"): {"normalize": True, "gamma": 0.9999},
    ("ppo", "Reacher-v5"): {
        "normalize": True,
        "batch_size": 32,
        "n_steps": 512,
        "gamma": 0.9,
        "learning_rate": 0.000104019,
        "ent_coef": 7.52585e-08,
        "clip_range": 0.3,
        "n_epochs": 5,
        "gae_lambda": 1.0,
        "max_grad_norm": 0.9,
        "vf_coef": 0.950368,
    },
    ("ppo", "Hopper-v5"): {
        "normalize": True,
        "batch_size": 32,
        "n_steps": 512,
        "gamma": 0.999,
        "learning_rate": 9.80828e-05,
        "ent_coef": 0.00229519,
        "clip_range": 0.2,
        "n_epochs": 5,
        "gae_lambda": 0.99,
        "max_grad_norm": 0.7,
        "vf_coef": 0.835671,
        "policy_kwargs": {"log_std_init": -2, "ortho_init": False, "net_arch": [256, 256]},
    },
    ("sac", "Swimmer-v5"): {"gamma": 0.9999},
}
"""What rl-zoo3 publishes for versions 2 and 3 of MuJoCo's problems, but for SAC's 10,000 steps of random
actions, which would be all that it has here. All else has Stable-Baselines3's own settings."""


@dataclass(frozen=True)
class Process:
    """A task of pc-gym: its plant, and what is to follow which set-points."""

    model: str
    states: tuple[str, ...]
    actions: dict[str, tuple[float, float]]
    start: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Ranges of the states; a set-point has that of its state, so that their difference is an error."""
    setpoints: dict[str, tuple[float, float]]
    """In the first and in the second half of an episode."""
    weights: dict[str, float]
    """Of the squared errors."""
    steps: int
    time: float

    @property
    def parameters(self) -> dict[str, Any]:
        """What pc-gym makes an environment of."""
        low, high = np.array(list(self.actions.values())).T
        half, followed = self.steps // 2, [self.states.index(name) for name in self.setpoints]
        return {
            "model": self.model,
            "N": self.steps,
            "tsim": self.time,
            "SP": {name: [a] * half + [b] * half for name, (a, b) in self.setpoints.items()},
            "x0": np.array(self.start),
            "a_space": {"low": low, "high": high},
            "o_space": {
                end: np.array([*ends, *(ends[i] for i in followed)])
                for end, ends in (("low", self.low), ("high", self.high))
            },
            "r_scale": self.weights,
        }


PROCESSES = {
    "pcgym/cstr-v0": Process(
        model="cstr",
        states=("Ca", "T"),
        actions={"Tc": (295.0, 302.0)},
        start=(0.8, 330.0, 0.8),
        low=(0.7, 300.0),
        high=(1.0, 350.0),
        setpoints={"Ca": (0.85, 0.9)},
        weights={"Ca": 1e3},
        steps=100,
        time=25.0,
    ),
    "pcgym/four_tank-v0": Process(
        model="four_tank",
        states=("h1", "h2", "h3", "h4"),
        actions={"v1": (0.1, 10.0), "v2": (0.1, 10.0)},
        start=(0.141, 0.112, 0.072, 0.42, 0.5, 0.2),
        low=(0.0,) * 4,
        high=(0.6,) * 4,
        setpoints={"h3": (0.5, 0.1), "h4": (0.2, 0.3)},
        weights={"h3": 1e3, "h4": 1e3},
        steps=60,
        time=1000.0,
    ),
    "pcgym/crystallization-v0": Process(
        model="crystallization",
        states=("Mu0", "Mu1", "Mu2", "Mu3", "Conc", "CV", "Ln"),
        actions={"Tc": (10.0, 40.0)},
        start=(1478.01, 22995.8, 1800863.0, 248516168.0, 0.158615, 2.00833, 15.5586, 1.0, 15.0),
        low=(0.0,) * 7,
        high=(5e5, 8e6, 3e8, 2e10, 0.3, 3.0, 25.0),
        setpoints={"CV": (1.0, 1.0), "Ln": (15.0, 15.0)},
        weights={"CV": 1.0, "Ln": 0.01},  # those of their ranges, 2 and 20
        steps=30,
        time=30.0,
    ),
}


class ProcessEnv(gymnasium.Env[Any, Any]):
    """A task of pc-gym, whose episodes end by their time limit, with numbers of the type that it declares.

    A step that pc-gym's solver gives up ends the episode too, and has the last reward for all that is left.
    """

    def __init__(self, name: str) -> None:
        import pcgym

        self.plant, self.steps = pcgym.make_env(PROCESSES[name].parameters), PROCESSES[name].steps - 1
        wide = np.full(self.plant.observation_space.shape, 3.0, np.float32)  # states pass the ends of ±1
        self.observation_space = gymnasium.spaces.Box(-wide, wide)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, self.plant.action_space.shape)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; there is one start."""
        super().reset(seed=seed)
        seen, _ = self.plant.reset()
        self.left, self.last = self.steps, (self._cut(seen), 0.0)
        return self.last[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step."""
        try:
            seen, reward, ended, _, _ = self.plant.step(np.asarray(action, np.float64))
        except RuntimeError:  # of CVODES: too much work
            if self.left == self.steps:
                raise
            return self.last[0], self.left * self.last[1], True, False, {}
        self.left, self.last = self.left - 1, (self._cut(seen), float(reward))
        return *self.last, False, bool(ended), {}

    def _cut(self, seen: Any) -> Any:
        return np.clip(seen, self.observation_space.low, self.observation_space.high).astype(np.float32)


for name, process in PROCESSES.items():
    gymnasium.register(name, ProcessEnv, max_episode_steps=process.steps - 1, kwargs={"name": name})


def make_problem(name: str) -> spaql.Problem:
    """Return the problem, with the names and set-points that pc-gym knows."""
    if name in MUJOCO:
        return spaql.make_problem(name, measured=False)
    process = PROCESSES[name]
    goals = {state: f"{state} set-point" for state in process.setpoints}
    return spaql.make_problem(
        name,
        measured=False,
        observation_names=[*process.states, *goals.values()],
        action_names=list(process.actions),
        setpoints=goals,
        sample_time=process.time / process.steps,
    )


def oracle(name: str, *, in_time: bool) -> float:
    """Return what the actions of pc-gym's oracle return in the environment.

    The set-point that it follows in a step is the one that is observed before it, and two samples older than
    the one that the step is judged by. `in_time` moves the set-points that it is told by these two.
    """
    import pcgym
    import pcgym.oracle

    class InNumbers(pcgym.oracle.oracle):  # type: ignore[misc, name-defined]
        """Time is a number: NumPy 2.4 makes none of do-mpc's arrays."""

        def setup_mpc(self) -> Any:
            mpc, simulator = super().setup_mpc()
            sample = self.env.dt
            for one in (mpc, simulator):
                # a little more than the whole samples, of which the oracle takes the floor
                one.p_fun = lambda t, told=one.p_fun: told(
                    (round(float(np.ravel(t)[0]) / sample) + 1e-6) * sample
                )
            return mpc, simulator

    process = PROCESSES[name]
    parameters = process.parameters
    if in_time:
        parameters["SP"] = {state: [*goals[2:], *goals[:2]] for state, goals in parameters["SP"].items()}
    weights = np.diag([process.weights.get(state, 0.0) for state in process.states])
    _, actions = InNumbers(pcgym.make_env, parameters, {"N": 20, "Q": weights}).mpc()
    low, high = (parameters["a_space"][end] for end in ("low", "high"))
    env, total = gymnasium.make(name), 0.0
    env.reset(seed=0)
    for action in actions.T[: process.steps - 1]:
        given = np.clip(2.0 * (action - low) / (high - low) - 1.0, -1.0, 1.0)
        total += float(env.step(given.astype(np.float32))[1])
    return total


def measure(name: str, algo: str, seed: int, steps: int) -> dict[str, Any]:
    """Return the figures of a training, or of an oracle."""
    cpu = time.process_time()
    found = {"problem": name, "algo": algo, "seed": seed, "steps": steps}
    if algo in ORACLES:
        total = oracle(name, in_time=algo != ORACLES[0])
        return found | {
            "taken": 0,
            "mean": total,
            "worst": total,
            "size": "",
            "cpu": time.process_time() - cpu,
        }
    problem = make_problem(name)
    if algo in LEARNERS:
        agent = LEARNERS[algo](problem, seed=seed).learn(total_timesteps=steps, progress_bar=False)
        policy, taken = agent.policy, agent.training_steps
        size = f"{policy.n_leaves} leaves" if policy.n_leaves > 1 else "1 leaf"
    else:
        network = make_network(algo, problem, SETTINGS.get((algo, name), {}), seed)
        network.model.learn(steps)
        policy, taken = network.policy, network.model.num_timesteps
        size = f"{network.size:,} numbers"
    cpu = time.process_time() - cpu
    judged = spaql.evaluate(policy, problem, episodes=20 if name in MUJOCO else 1, seed=10**6 + seed)
    return found | {
        "taken": int(taken),
        "mean": float(judged.mean),
        "worst": float(judged.returns.min()),
        "size": size,
        "cpu": cpu,
    }


def rows_of(found: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return a row for each problem, algorithm and budget."""
    rows = []
    keys = dict.fromkeys((one["problem"], one["steps"], one["algo"]) for one in found)
    for name, steps, algo in keys:
        seeds = [one for one in found if (one["problem"], one["steps"], one["algo"]) == (name, steps, algo)]
        means = [one["mean"] for one in sorted(seeds, key=lambda one: one["seed"])]
        rows.append(
            {
                "problem": name.removesuffix("-v0"),
                "algorithm": algo,
                "interactions": f"{max(one['taken'] for one in seeds):,}" if algo not in ORACLES else "",
                "return": f"{np.mean(means):.4g}",
                "of each seed": ", ".join(f"{x:.4g}" for x in means) if algo not in ORACLES else "",
                "worst episode": f"{min(one['worst'] for one in seeds):.4g}" if name in MUJOCO else "",
                "size": ", ".join(dict.fromkeys(one["size"] for one in seeds)),
                "CPU s": f"{np.mean([one['cpu'] for one in seeds]):.0f}",
            }
        )
    return rows


def main() -> None:
    """Run what is asked for and not done yet, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", default="", help="parts of names, separated by commas; all by default")
    parser.add_argument(
        "--algos",
        default="plantree,treesearch,ppo,sac,oracle,oracle in time",
        help=f"separated by commas: {', '.join((*LEARNERS, *NETWORKS, *ORACLES))}",
    )
    parser.add_argument("--seeds", default="9110-9112", help="one seed, or a range")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="a file for what was measured, a line of JSON each")
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    lines = asked.out.read_text().splitlines() if asked.out and asked.out.exists() else []
    found = [json.loads(line) for line in lines]
    order = [*MUJOCO, *PROCESSES]
    wanted = [name for name in order if any(part in name for part in asked.problems.split(","))]
    if not wanted:
        parser.error(f"no problem has {asked.problems} in its name: {', '.join(order)}")
    for algo in asked.algos.split(","):
        for name in wanted:
            for seed in range(int(first), int(last or first) + 1):
                key = (name, algo, seed, asked.steps)
                done = any(
                    tuple(one[k] for k in ("problem", "algo", "seed", "steps")) == key for one in found
                )
                if done or (algo in ORACLES and (name in MUJOCO or seed != int(first))):
                    continue
                found.append(measure(*key))
                print(found[-1], flush=True)
                if asked.out:
                    with asked.out.open("a") as file:
                        file.write(json.dumps(found[-1]) + "\n")
    found.sort(key=lambda one: (order.index(one["problem"]), one["steps"]))
    print(markdown(rows_of(found)))


if __name__ == "__main__":
    main()
