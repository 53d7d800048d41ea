"""What the same seeds learn, as digests: equal for every supported Python and NumPy.

    python benchmarks/same_bytes.py [--budget 3000] [--effort 0.1]

`.ci/versions` runs it with the oldest and the newest NumPy for each Python, and compares what it prints.
"""

import argparse
import hashlib
import platform
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import spaql
from spaql.evaluation import size_curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=3000)
    parser.add_argument("--effort", type=float, default=0.1)
    args = parser.parse_args()
    print(f"Python {platform.python_version()}, NumPy {np.__version__}", file=sys.stderr)
    for env in ("Pendulum-v1", "CartPole-v1"):
        agent = spaql.PlanTree(env, seed=2, effort=args.effort)
        digest(f"plantree {env}", agent.learn(total_timesteps=args.budget, progress_bar=False))
    for env in ("Pendulum-v1", "CartPole-v1"):
        agent = spaql.TreeSearch(env, seed=2)
        digest(f"treesearch {env}", agent.learn(total_timesteps=50 * args.budget, progress_bar=False))
    agent = spaql.SPAQLTS("cartpole200", seed=1)
    digest("spaql-ts cartpole200", agent.learn(iterations=60, progress_bar=False))
    text = "\n".join(spaql.controllers.text(one.tree, digits=17) for one in size_curve(agent, episodes=20))
    print("simplified trees", hashlib.sha256(text.encode()).hexdigest())


def digest(name: str, agent: spaql.Agent) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "agent.spaql"
        agent.save(path)
        print(name, hashlib.sha256(path.read_bytes()).hexdigest(), flush=True)


if __name__ == "__main__":
    main()
