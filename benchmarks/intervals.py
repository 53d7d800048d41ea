"""How often 95 % intervals of a mean hold the true mean: `python benchmarks/intervals.py`.

Draws studies of n runs each from a normal and from a skewed distribution (exponential, whose mean is 1), and
counts those whose interval holds the true mean: for 1.96 standard errors, which the paper takes; for
Student's interval, `spaql.stats.mean_ci95`; and for the bootstrap, `spaql.stats.bootstrap_ci95`.
"""

import argparse
from collections.abc import Callable

import numpy as np

from spaql.stats import bootstrap_ci95, mean_ci95, standard_error
from spaql.tables import markdown

RUNS = (3, 5, 10, 20, 100)
DRAWS: dict[str, tuple[Callable[..., np.ndarray], float]] = {
    "normal": (lambda rng, n: rng.normal(0.0, 1.0, n), 0.0),
    "skewed (exponential)": (lambda rng, n: rng.exponential(1.0, n), 1.0),
}


def normal(runs: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    half = 1.96 * standard_error(runs)
    return runs.mean() - half, runs.mean() + half


def student(runs: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    mean, half = mean_ci95(runs)
    return mean - half, mean + half


def bootstrap(runs: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    return bootstrap_ci95(np.mean, runs, seed=rng, resamples=500)


INTERVALS = {"1.96 standard errors": normal, "Student's": student, "bootstrap": bootstrap}


def coverage(interval: str, data: str, n: int, studies: int, seed: int = 0) -> float:
    """Return the share of the studies whose interval holds the true mean."""
    draw, truth = DRAWS[data]
    rng, draws = (np.random.default_rng(one) for one in np.random.SeedSequence(seed).spawn(2))
    hits = 0
    for _ in range(studies):
        low, high = INTERVALS[interval](draw(rng, n), draws)
        hits += low <= truth <= high
    return hits / studies


def main() -> None:
    """Print the table of coverages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--studies", type=int, default=10_000)
    options = parser.parse_args()
    rows = [
        {
            "data": data,
            "runs": str(n),
            **{name: f"{100 * coverage(name, data, n, options.studies):.1f} %" for name in INTERVALS},
        }
        for data in DRAWS
        for n in RUNS
    ]
    print(markdown(rows))


if __name__ == "__main__":
    main()
