"""Memory and look-up time of a partition as it grows: `python benchmarks/partition_size.py`.

A partition of CartPole's shape (4 state dimensions, 2 actions) is split at random points until it has
10^3, 10^5 and 10^7 balls. Timed is the greedy choice for random states, which searches all relevant balls.
"""

import argparse
import json
import time

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.jit import njit
from spaql.kernels.partition.balls import Balls, coordinate, locate, new_found, room_for, search, split
from spaql.kernels.partition.equations import greedy
from spaql.partition import Partition

DIMS = 4
LOOKUPS = 200_000


@njit
def grow(balls: Balls, target: int, rng: np.random.Generator) -> None:
    state, action = np.empty(DIMS, np.int64), np.empty(1, np.int64)
    low, size = np.empty(1, np.int64), np.empty(1, np.int64)
    while balls.counts[0] < target:
        for j in range(DIMS):
            state[j] = coordinate(2.0 * rng.random() - 1.0)
        action[0] = rng.integers(0, 2)
        ball, _ = locate(balls, 0, state, action, low, size)
        split(balls, ball, size, DIMS)


@njit
def look_up(balls: Balls, states: NDArray[np.int64]) -> int:
    found = new_found(room_for(balls, 0), 1)
    total = 0
    for i in range(states.shape[0]):
        count = search(balls, 0, states[i], found)
        total += found.ball[greedy(balls, found, count)]
    return total


def measure(targets: list[int], seed: int) -> list[dict[str, float]]:
    rng = np.random.default_rng(seed)
    partition = Partition(DIMS, [2], q=200.0)
    rows = []
    for target in targets:
        partition.reserve(target - partition.n_balls + partition.children_at_most)
        grow(partition.balls, target, rng)
        partition.balls.q[: partition.n_balls] = rng.random(partition.n_balls)
        states = rng.integers(0, 2**32, (LOOKUPS, DIMS))
        look_up(partition.balls, states[:10])
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            look_up(partition.balls, states)
            times.append((time.perf_counter() - begin) / LOOKUPS)
        rows.append(
            {
                "balls": partition.n_balls,
                "bytes_per_ball": partition.nbytes / partition.n_balls,
                "lookup_ns": 1e9 * float(np.median(times)),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = measure([10**3, 10**5, 10**7], options.seed)
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{'balls':>12} {'bytes/ball':>11} {'look-up, ns':>12}")
    for row in rows:
        print(f"{row['balls']:>12,} {row['bytes_per_ball']:>11.1f} {row['lookup_ns']:>12.0f}")


if __name__ == "__main__":
    main()
