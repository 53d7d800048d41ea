"""What PlanTree and TreeSearch reach: returns from fresh starts, the worst of them, sizes and cost.

    python benchmarks/learners.py --algo PlanTree --steps 10000 --seeds 6000-6019
    python benchmarks/learners.py --env CartPole-v1 --steps 1000000 --seeds 7000-7019 --episodes 1000
    python benchmarks/learners.py --env wide-cartpole --steps 1000000 --seeds 7000-7019 --episodes 10000
    python benchmarks/learners.py --algo PlanTree --env Pendulum-v1 --settings '{"mirror": "off"}'

`--env` and `--steps` may be repeated. `wide-cartpole` begins in a box ten times as wide as Gymnasium's.
--noise 0.1 0.01 disturbs what is done by 10 % of half its range and what is seen by 1 %, --delay holds
actions back by samples, and --see hides all but the first observations; all in training and in the fresh
episodes.
"""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

import spaql
from spaql.controllers.mirrored import folded, leaves_to_read
from spaql.problems import find_dynamics
from spaql.problems.environment import DisturbedEnv
from studies import Row, column, groups, parser, run, show, spread

ENVIRONMENTS = ("Pendulum-v1", "CartPole-v1", "MountainCar-v0", "Acrobot-v1", "MountainCarContinuous-v0")
CARTPOLE = find_dynamics("CartPole-v1")
assert CARTPOLE is not None


def start_wide(rng):
    """|x| < 1.2, |angle| < 0.12, and speeds below 0.5."""
    x = rng.uniform(-1.2, 1.2)
    v = rng.uniform(-0.5, 0.5)
    return x, v, rng.uniform(-0.12, 0.12), rng.uniform(-0.5, 0.5)


spaql.Dynamics(
    id="wide-cartpole",
    start=start_wide,
    step=CARTPOLE.step,
    observe=CARTPOLE.observe,
    observations=CARTPOLE.observations,
    actions=CARTPOLE.actions,
    horizon=500,
)


class Noisy(gymnasium.Wrapper):
    """Gaussian noise on what is done and seen, as shares of half the range; a range without end counts as 4.

    A listed action has no neighbours: it is replaced by a random one, in a share of the steps.
    """

    def __init__(self, env: gymnasium.Env, done: float, seen: float) -> None:
        super().__init__(env)
        low = env.observation_space.low
        high = env.observation_space.high
        self._seen = seen * np.where(np.isfinite(high - low) & (high - low < 1e6), high - low, 4.0) / 2
        self._done = done

    def reset(self, **options: Any) -> Any:
        observation, info = self.env.reset(**options)
        return self._blurred(observation), info

    def step(self, action: Any) -> Any:
        rng = self.env.unwrapped.np_random
        space = self.env.action_space
        if isinstance(space, Discrete):
            action = int(rng.integers(space.n)) if rng.random() < self._done else action
        else:
            noise = rng.normal(size=space.shape) * self._done * (space.high - space.low) / 2
            action = np.clip(action + noise, space.low, space.high).astype(space.dtype)
        observation, *rest = self.env.step(action)
        return self._blurred(observation), *rest

    def _blurred(self, observation: Any) -> Any:
        space = self.env.observation_space
        noise = self.env.unwrapped.np_random.normal(size=space.shape) * self._seen
        return np.clip(observation + noise, space.low, space.high).astype(space.dtype)


def world(case: Row) -> str | gymnasium.Env:
    """Return the id of an environment, or the environment with what disturbs it."""
    if not (any(case["noise"]) or case["delay"] or case["see"]):
        return case["env"]
    env = gymnasium.make(case["env"])
    if any(case["noise"]):
        env = Noisy(env, *case["noise"])
    if case["delay"]:
        env = DisturbedEnv(env, delay=case["delay"])
    if n := case["see"]:
        space = Box(env.observation_space.low[:n], env.observation_space.high[:n], dtype=np.float32)
        env = gymnasium.wrappers.TransformObservation(env, lambda seen: seen[:n], space)
    return env


def one_seed(case: Row) -> Row:
    """Train, and judge what was found from fresh starts."""
    wall = time.perf_counter()
    cpu = time.process_time()
    horizon = {"horizon": 200} if case["delay"] or case["see"] else {}
    options = horizon | json.loads(case["settings"])
    agent = getattr(spaql, case["algo"])(world(case), seed=case["seed"], **options)
    agent.learn(total_timesteps=case["steps"], progress_bar=False)
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    fresh = spaql.evaluate(agent, episodes=case["episodes"], seed=10**6 + case["seed"])
    return {
        "taken": agent.training_steps,
        "mean": fresh.mean,
        "worst": float(fresh.returns.min()),
        "below": int((fresh.returns < fresh.returns.max() - 1e-9).sum()),
        "leaves": leaves_to_read(agent.policy),
        "numbers": agent.policy.n_numbers,
        "mirrored": folded(agent.policy) is not None,
        "lags": ", ".join(getattr(agent, "lags", None) or []),
        "cpu": cpu,
        "wall": wall,
        "rules": str(agent.policy),
    }


def line(found: list[Row]) -> Row:
    """Return the line of a table."""

    def most(name: str) -> str:
        return f"{column(found, name).mean():.1f} ({max(one[name] for one in found)})"

    one = found[0]
    disturbed = [f"{name} {one[name]}" for name in ("delay", "see") if one[name]]
    disturbed += [f"noise {one['noise']}"] if any(one["noise"]) else []
    cells = {"problem": ", ".join([one["env"], *disturbed]), "steps": one["steps"], "seeds": len(found)}
    cells |= spread(column(found, "mean"))
    worst = column(found, "worst")
    cells |= {"worst start": float(worst.min()), "mean worst start": float(worst.mean())}
    cells |= {"below the best": sum(x["below"] for x in found)}
    cells |= {"leaves (most)": most("leaves"), "numbers (most)": most("numbers")}
    cells |= {"mirrored": sum(x["mirrored"] for x in found), "lags": one["lags"]}
    return cells | {name: float(column(found, name).mean()) for name in ("cpu", "wall")}


def main() -> None:
    """Run the seeds, and print a line for each environment and number of steps."""
    options = parser(__doc__, seeds="7000-7004")
    options.add_argument("--algo", choices=("TreeSearch", "PlanTree"), default="TreeSearch")
    options.add_argument("--env", action="append", help="any id; Gymnasium's classic problems by default")
    options.add_argument("--steps", action="append", type=int, help="10000 by default")
    options.add_argument("--episodes", type=int, default=100, help="fresh ones of each seed")
    options.add_argument("--settings", default="{}", help="of the algorithm, as JSON")
    options.add_argument("--noise", nargs=2, type=float, default=(0.0, 0.0), metavar=("DONE", "SEEN"))
    options.add_argument("--delay", type=int, default=0)
    options.add_argument("--see", type=int, default=0)
    given = options.parse_args()
    names = ("algo", "episodes", "settings", "delay", "see")
    same = {name: getattr(given, name) for name in names} | {"noise": list(given.noise)}
    wanted = itertools.product(given.env or ENVIRONMENTS, given.steps or [10_000], given.seeds)
    cases = [{"env": env, "steps": steps, "seed": seed} | same for env, steps, seed in wanted]
    found = groups(run(one_seed, cases, given), "env", "steps").values()
    show([line(some) for some in found])


if __name__ == "__main__":
    main()
