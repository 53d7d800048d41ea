"""Make the golden files: model files of every kind, and what they do.

    python tests/golden/make.py --version 0.1

Files are made once for a release, kept for ever, and never made again: every later version must load them
and act as they did. What is there already is left alone.
"""

from pathlib import Path

import click
import numpy as np

import spaql
from spaql.controllers import Controller, Policy

HERE = Path(__file__).parent
MODELS = {
    "aql-cartpole200": lambda: spaql.AQL("cartpole200", horizon=20, seed=1, rollouts=3),
    "aql-pendulum5": lambda: spaql.AQL("Pendulum-v1", horizon=12, levels=5, seed=1, rollouts=3),
    "spaql-pendulum": lambda: spaql.SPAQL("pendulum", seed=2, rollouts=3),
    "spaql-mountaincar": lambda: spaql.SPAQL("MountainCar-v0", seed=3, rollouts=3),
    "spaql-ts-cartpole200": lambda: spaql.SPAQLTS("cartpole200", seed=4, rollouts=3),
    "spaql-ts-pendulum5": lambda: spaql.SPAQLTS("pendulum5", seed=5, rollouts=3, metric="infinity"),
    "plantree-cartpole": lambda: spaql.PlanTree("CartPole-v1", seed=6, effort=0.02, leaves=8),
    "plantree-pendulum": lambda: spaql.PlanTree(
        "Pendulum-v1", horizon=50, seed=7, effort=0.02, leaves=8, mirror="off"
    ),
    "treesearch-cartpole": lambda: spaql.TreeSearch("CartPole-v1", seed=8),
    "treesearch-pendulum": lambda: spaql.TreeSearch("Pendulum-v1", horizon=50, seed=9),
    "treesearch-oven": lambda: spaql.TreeSearch("spaql/Oven-v0", seed=10),  # with memory
}


def looks(space, n: int = 200) -> np.ndarray:
    """Draw observations all over a space, beyond its bounds, and on its zero."""
    rng = np.random.default_rng(0)
    wide = np.where(np.abs(space.high) < 1e30, space.high - space.low, 10.0)
    drawn = rng.uniform(-0.75, 0.75, (n, *space.shape)) * wide
    drawn[0] = 0.0
    drawn[1] = np.inf
    drawn[2] = -np.inf
    return drawn.astype(space.dtype)


@click.command()
@click.option("--version", required=True, help="of spaql, the first two numbers")
def main(version: str) -> None:
    folder = HERE / version
    folder.mkdir(exist_ok=True)
    for name, make in MODELS.items():
        if (folder / f"{name}.spaql").exists():
            continue
        agent = make().learn(iterations=12, progress_bar=False)
        agent.save(folder / f"{name}.spaql")
        keep(folder / name, agent)
        if not name.startswith("aql"):
            design = spaql.Design(spaql.controller_of(agent), agent.problem, {"made by": name})
            design.save(folder / f"controller-{name}.spaql")
            keep(folder / f"controller-{name}", design)


def keep(path: Path, model: spaql.Agent | spaql.Design) -> None:
    observations = looks(model.problem.states.space)
    if isinstance(model.policy, Controller) and not model.policy.laws.constant.all():
        observations = observations[np.isfinite(observations).all(axis=1)]  # no law holds at infinity
    steps = np.arange(len(observations)) % model.problem.horizon
    np.savez_compressed(
        path.with_suffix(".npz"),
        observations=observations,
        steps=steps,
        actions=acted(model.policy, observations, steps),
    )


def acted(policy: Policy, observations: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the actions for observations, which are the samples of one episode if the policy remembers."""
    playing = policy.for_episodes(1)
    return np.concatenate(
        [playing.act(*one, None) for one in zip(observations[:, None], steps[:, None], strict=True)]
    )


if __name__ == "__main__":
    main()
