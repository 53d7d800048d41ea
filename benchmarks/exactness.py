"""Is the rule tree the policy? `python benchmarks/exactness.py`.

Agents of full size are trained, and their minimised rule trees held against `policy.predict` at random
points, at the centre of every cell of the partition, and on every side of every cell: at the boundary and
at the floats just below and above it. Of AQL, the tree of every time step is.
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import spaql
from spaql.kernels.partition.lookup import threshold
from spaql.policy import PartitionPolicy

Floats = NDArray[np.float64]
AGENTS: dict[str, Callable[[], spaql.Agent]] = {
    "CartPole, SPAQL-TS": lambda: spaql.SPAQLTS("cartpole200", scaling=20, rollouts=100, seed=0),
    "Pendulum-5, SPAQL": lambda: spaql.SPAQL("pendulum5", scaling=2, rollouts=20, seed=0),
    "CartPole, AQL": lambda: spaql.AQL("cartpole200", scaling=0.1, rollouts=20, seed=0),
    "Pendulum, AQL": lambda: spaql.AQL("pendulum", scaling=1, rollouts=20, seed=0),
}


def boundaries(policy: PartitionPolicy, standard: Floats) -> Floats:
    """Give the smallest raw numbers that are mapped to dyadic numbers of the cube, or beyond them.

    The ends of the cube are not cut: they become infinite.
    """
    raw = np.empty_like(standard)
    for j in range(standard.shape[1]):
        values, where = np.unique(standard[:, j], return_inverse=True)
        for i, x in enumerate(values.tolist()):
            odd, size = ((x + 1.0) / 2.0).as_integer_ratio()
            inside = -1.0 < x < 1.0
            place = size // 2 - 1 + odd // 2  # boundaries are numbered as a heap
            values[i] = threshold(policy.states.state_map, j, place) if inside else x * np.inf
        raw[:, j] = values[where]
    return raw


def points(policy: PartitionPolicy, tree: int, n: int, rng: np.random.Generator) -> Floats:
    """Give random points, centres, and boundaries with their neighbours."""
    state_map = policy.states.state_map
    standard = rng.uniform(-1.0, 1.0, (n, policy.states.dims))
    random = policy.states.restore(standard)
    leaves = policy.partition.leaves(tree)
    low, high = boundaries(policy, leaves.state_low), boundaries(policy, leaves.state_high)
    ends = [
        np.where(np.isfinite(x), x, state_map.center + s * 3 * state_map.scale)
        for x, s in ((low, -1), (high, 1))
    ]
    centres = (ends[0] + ends[1]) / 2
    found = [random, centres]
    for bound in (low, high):
        for j in range(policy.states.dims):
            cut = np.isfinite(bound[:, j])
            for at in (
                np.nextafter(bound[cut, j], -np.inf),
                bound[cut, j],
                np.nextafter(bound[cut, j], np.inf),
            ):
                side = centres[cut].copy()
                side[:, j] = at
                found.append(side)
    return np.concatenate(found)


def measure(name: str, agent: spaql.Agent, n: int, seed: int) -> dict[str, object]:
    policy = agent.policy
    assert isinstance(policy, PartitionPolicy)
    rng, trees = np.random.default_rng(seed), policy.partition.trees
    checked = differ = leaves = 0
    begin, building = time.perf_counter(), 0.0
    for tree in range(trees):
        before = time.perf_counter()
        rules = spaql.rule_tree(policy, tree if policy.time_variant else None)
        building += time.perf_counter() - before
        batch = points(policy, tree, -(-n // trees), rng)
        state = (np.full(len(batch), tree),) if policy.time_variant else None
        wanted = policy.predict(batch, state, deterministic=True)[0]
        differ += int((rules.act(batch) != wanted).reshape(len(batch), -1).any(axis=1).sum())
        checked += len(batch)
        leaves += rules.n_leaves
    return {
        "agent": name,
        "arms": policy.partition.arms,
        "trees": trees,
        "leaves": leaves,
        "points": checked,
        "disagreements": differ,
        "building_s": round(building, 1),
        "all_s": round(time.perf_counter() - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name, make in AGENTS.items():
        agent = make().learn(iterations=options.iterations, progress_bar=False)
        print(json.dumps(measure(name, agent, options.points, options.seed)), flush=True)


if __name__ == "__main__":
    main()
