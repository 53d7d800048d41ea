"""Make the golden files: model files of every kind, and what they do.

    python tests/golden/make.py --version 0.1

Files are made once for a release, kept for ever, and never made again: every later version must load them
and act as they did.
"""

from pathlib import Path

import click
import numpy as np

import spaql

HERE = Path(__file__).parent
MODELS = {
    "aql-cartpole200": lambda: spaql.AQL("cartpole200", horizon=20, seed=1, rollouts=3),
    "aql-pendulum5": lambda: spaql.AQL("Pendulum-v1", horizon=12, levels=5, seed=1, rollouts=3),
    "spaql-pendulum": lambda: spaql.SPAQL("pendulum", seed=2, rollouts=3),
    "spaql-mountaincar": lambda: spaql.SPAQL("MountainCar-v0", seed=3, rollouts=3),
    "spaql-ts-cartpole200": lambda: spaql.SPAQLTS("cartpole200", seed=4, rollouts=3),
    "spaql-ts-pendulum5": lambda: spaql.SPAQLTS("pendulum5", seed=5, rollouts=3, metric="infinity"),
}


def looks(space, n: int = 200) -> np.ndarray:
    """Draw observations all over a space, beyond its bounds, and on its zero."""
    rng = np.random.default_rng(0)
    wide = np.where(np.abs(space.high) < 1e30, space.high - space.low, 10.0)
    drawn = rng.uniform(-0.75, 0.75, (n, *space.shape)) * wide
    drawn[0] = 0.0
    drawn[1], drawn[2] = np.inf, -np.inf
    return drawn.astype(space.dtype)


@click.command()
@click.option("--version", required=True, help="of spaql, the first two numbers")
def main(version: str) -> None:
    folder = HERE / version
    folder.mkdir(exist_ok=False)
    for name, make in MODELS.items():
        agent = make().learn(12, progress_bar=False)
        agent.save(folder / f"{name}.spaql")
        keep(folder / name, agent)
        if not name.startswith("aql"):
            controller = spaql.Controller(spaql.rule_tree(agent), agent.problem, {"made by": name})
            controller.save(folder / f"controller-{name}.spaql")
            keep(folder / f"controller-{name}", controller)


def keep(path: Path, model: spaql.Agent | spaql.Controller) -> None:
    observations = looks(model.problem.states.space)
    steps = np.arange(len(observations)) % model.problem.horizon
    np.savez_compressed(
        path.with_suffix(".npz"),
        observations=observations,
        steps=steps,
        actions=model.policy.act(observations, steps, None),
    )


if __name__ == "__main__":
    main()
