"""The studies of "Control with adaptive Q-learning" (Araújo, Figueiredo, Ayala Botto, 2020), as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.controllers import RandomPolicy
from spaql.evaluation import evaluate
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.study import grid
from spaql.problems import Problem, make_problem
from spaql.spaces import StandardActions
from spaql.stats import mean_ci95

SCALINGS = (0, 0.4, 4, 10, 20, 30, 40, 50, 60, 70, 80, 120, 160)
"""The values of xi that the paper tries."""

PROBLEMS = ("pendulum", "cartpole200")
"""Those on which TRPO was run as well."""
ALGORITHMS = ("aql", "spaql", "spaql-ts")
VARIANTS = ("spaql", "spaql-ts")
"""The algorithms that select an agent by evaluations: the paper shows the best one of each."""

CHOSEN: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "pendulum": {"aql": 20, "spaql": 4, "spaql-ts": 0.4},
        "pendulum5": {"aql": 20, "spaql": 4, "spaql-ts": 0.4},
        "cartpole200": {"aql": 120, "spaql": 20, "spaql-ts": 20},
    }
)
"""The xi that the paper selects."""

SOLVED = 195.0
"""The mean return from which CartPole counts as solved."""


@dataclass(frozen=True)
class Size:
    """The size of the studies, and the rule set of the algorithms."""

    seeds: int
    scaling_iterations: int
    iterations: int
    trpo_batches: int
    fresh_episodes: int
    rules: str = "authors"
    """Of AQL, SPAQL and SPAQL-TS where the paper's text and its authors' code differ."""

    def settings(self, **others: Any) -> dict[str, Any]:
        """Return the settings of a run: the rules are named where they are not the default."""
        return others if self.rules == "authors" else {**others, "rules": self.rules}


FULL = Size(seeds=20, scaling_iterations=100, iterations=2000, trpo_batches=100, fresh_episodes=500)
QUICK = Size(seeds=3, scaling_iterations=10, iterations=50, trpo_batches=2, fresh_episodes=50)


def scaling_runs(size: Size) -> list[Run]:
    """Return the runs that compare values of xi."""
    return grid(
        ["pendulum", "pendulum-scaled", "cartpole200"],
        ALGORITHMS,
        seeds=size.seeds,
        iterations=size.scaling_iterations,
        fresh_episodes=size.fresh_episodes,
        settings=size.settings(rollouts=20),
        scaling=SCALINGS,
    )


def long_runs(size: Size) -> list[Run]:
    """Return the long runs, with the xi that the paper chose for each."""
    return [
        Run(
            problem=problem,
            algorithm=algorithm,
            iterations=size.iterations,
            seed=seed,
            settings=size.settings(scaling=scaling, rollouts=rollouts(problem)),
            named=("scaling",),
            fresh_episodes=size.fresh_episodes,
        )
        for problem, chosen in CHOSEN.items()
        for algorithm, scaling in chosen.items()
        for seed in range(size.seeds)
    ]


def trpo_runs(size: Size) -> list[Run]:
    """Return the runs of TRPO, in batches of 4,000 samples."""
    return [
        Run(
            problem=problem,
            algorithm="trpo",
            iterations=size.trpo_batches,
            seed=seed,
            settings={"rollouts": rollouts(problem)},
            named=(),
            fresh_episodes=size.fresh_episodes,
        )
        for problem in PROBLEMS
        for seed in range(size.seeds)
    ]


def rollouts(problem: str) -> int:
    """Return the number of episodes of an evaluation in the long runs (N)."""
    return 100 if problem == "cartpole200" else 20


@cache
def random_returns(problem: str, size: Size) -> NDArray[np.float64]:
    """Return the mean returns of random policies, one for each seed."""
    made = make_problem(problem)
    return _returns(RandomPolicy(made.states, made.actions), made, size)


def published_random_returns(size: Size) -> NDArray[np.float64]:
    """Return the mean returns of the paper's Random on Pendulum: torques drawn from [0, 2] Nm only."""
    made = make_problem("pendulum")
    upper_half = StandardActions.of(Box(0.0, 2.0, (1,), np.float32))
    return _returns(RandomPolicy(made.states, upper_half), made, size)


def _returns(policy: RandomPolicy, problem: Problem, size: Size) -> NDArray[np.float64]:
    means = [
        evaluate(policy, problem, episodes=size.fresh_episodes, seed=seed).mean for seed in range(size.seeds)
    ]
    return np.array(means)


def random_baseline(problem: str, size: Size) -> tuple[float, float]:
    """Return the mean return of random policies, and the half-width of its 95 % interval."""
    return mean_ci95(random_returns(problem, size))
