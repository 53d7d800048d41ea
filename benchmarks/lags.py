"""PlanTree with lags where actions are late or speeds are hidden.

    python benchmarks/lags.py --seeds 8000-8002
    python benchmarks/lags.py --seeds 8000 --cases "2 steps late" --lags off

Pendulum-v1 whose actions act one or two steps later, and of which the speed is not observed; 20,000 steps,
and 100 fresh episodes (seed 1,000,000 + its own seed).
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box

import spaql
from spaql.problems.disturbed_env import DisturbedEnv
from spaql.tables import markdown


def positions(env: gymnasium.Env) -> gymnasium.Env:
    """Return a pendulum of which the speed is not observed."""
    low, high = (end[:2] for end in (env.observation_space.low, env.observation_space.high))
    return gymnasium.wrappers.TransformObservation(
        env, lambda seen: seen[:2], Box(low, high, dtype=np.float32)
    )


CASES = {
    "1 step late": lambda env: DisturbedEnv(env, delay=1),
    "2 steps late": lambda env: DisturbedEnv(env, delay=2),
    "positions only": positions,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="8000-8002", help="one seed, or a range")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--lags", choices=["auto", "off"], default="auto")
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    rows = []
    for case in asked.cases.split(","):
        for seed in range(int(first), int(last or first) + 1):
            cpu = time.process_time()
            env = CASES[case](gymnasium.make("Pendulum-v1"))
            agent = spaql.PlanTree(env, seed=seed, lags=asked.lags, mirror="off", horizon=200)
            agent.learn(asked.steps)
            fresh = spaql.evaluate(agent, episodes=100, seed=10**6 + seed)
            rows.append(
                {
                    "Pendulum-v1": case,
                    "seed": str(seed),
                    "lags": ", ".join(agent.lags or []) or "none",
                    "return": f"{fresh.mean:.1f}",
                    "worst episode": f"{fresh.returns.min():.0f}",
                    "leaves": str(agent.policy.n_leaves),
                    "CPU s": f"{time.process_time() - cpu:.0f}",
                }
            )
            print(rows[-1], flush=True)
    print(markdown(rows))


if __name__ == "__main__":
    main()
