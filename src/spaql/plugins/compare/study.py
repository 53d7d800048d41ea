"""The comparison, as data: which algorithms, where, for how many interactions, and from which seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from spaql.errors import SettingError
from spaql.plugins.compare.baselines import CLASSICAL, NETWORKS, ZOO
from spaql.plugins.sweeps.run import Run

PROBLEMS = ("Pendulum-v1", "CartPole-v1", "MountainCar-v0", "Acrobot-v1", "MountainCarContinuous-v0")
ALGORITHMS = ("plantree", "spaql", "spaql-ts", "classical", *NETWORKS)

_BOX = ("Pendulum-v1", "MountainCarContinuous-v0")
_REFERENCES: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "MountainCar-v0": (0.5, 0.0),
        "MountainCarContinuous-v0": (0.45, 0.0),
        "Acrobot-v1": (-1.0, 0.0, 1.0, 0.0, 0.0, 0.0),
    }
)
"""The reference of SPAQL-TS on problems that have none: the goal, at rest."""

_ORDER = ("sac", "td3", "dqn", "ppo", "qr-dqn", "trpo", "ars", "tqc")
"""Of the networks: the most informative first."""


@dataclass(frozen=True)
class ComparisonSize:
    """How large the comparison is."""

    seeds: int
    """Of the algorithms that learn in seconds."""
    network_seeds: int
    plantree: tuple[int, ...]
    """Budgets of PlanTree, which needs its budget in advance: a run for each."""
    spaql: int
    """Interactions of SPAQL and SPAQL-TS, evaluations included."""
    box: int
    """Interactions of networks where actions are a Box."""
    listed: int
    """Interactions of networks where actions are discrete."""
    evaluate_at: tuple[int, ...]
    """Interactions at which a policy is evaluated while it learns."""
    episodes: int
    """Episodes of such an evaluation."""


FULL = ComparisonSize(
    seeds=20,
    network_seeds=5,
    plantree=(3_000, 5_000, 10_000, 20_000, 50_000),
    spaql=1_000_000,
    box=20_000,
    listed=50_000,
    evaluate_at=tuple(1_000 * k for k in (1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 100, 200, 500)),
    episodes=100,
)
QUICK = ComparisonSize(
    seeds=2,
    network_seeds=1,
    plantree=(600,),
    spaql=20_000,
    box=400,
    listed=800,
    evaluate_at=(100, 200, 400, 5_000, 10_000),
    episodes=20,
)


def compare_runs(
    size: ComparisonSize,
    *,
    only: Sequence[str] = (),
    budgets: Sequence[int] = (),
    first_seed: int = 6000,
    seeds: int | None = None,
) -> list[Run]:
    """Return the runs of the comparison: all those of the first seed, then the next seeds.

    Parameters
    ----------
    size
        How large it is.
    only
        Names of algorithms and of problems to be kept; all by default.
    budgets
        Of PlanTree; those of the size by default.
    first_seed, seeds
        The seeds are counted from the first; as many as the size has by default.

    Examples
    --------
    >>> [run.id for run in compare_runs(FULL, only=["sac"], seeds=1)]  # doctest: +NORMALIZE_WHITESPACE
    ['Pendulum-v1/sac/total_interactions=20000/seed=6000',
     'MountainCarContinuous-v0/sac/total_interactions=20000/seed=6000']
    """
    check_names(only)
    algorithms = [name for name in ALGORITHMS if name in only] or list(ALGORITHMS)
    problems = [name for name in PROBLEMS if name in only] or list(PROBLEMS)
    runs = [
        run
        for number in range(seeds or max(size.seeds, size.network_seeds))
        for run in _runs_of_seed(size, first_seed + number, budgets or size.plantree)
        if seeds is not None or number < _seeds(size, run.algorithm)
    ]
    return [run for run in runs if run.algorithm in algorithms and run.problem in problems]


def check_names(only: Iterable[str]) -> None:
    """Refuse a name that is neither an algorithm nor a problem of the comparison."""
    if unknown := set(only) - set(ALGORITHMS) - set(PROBLEMS):
        raise SettingError(
            f"The comparison has no {', '.join(sorted(unknown))}: its algorithms are "
            f"{', '.join(ALGORITHMS)}, its problems {', '.join(PROBLEMS)}."
        )


def _seeds(size: ComparisonSize, algorithm: str) -> int:
    return size.network_seeds if algorithm in NETWORKS else size.seeds


def _runs_of_seed(size: ComparisonSize, seed: int, budgets: Sequence[int]) -> Iterator[Run]:
    for problem in PROBLEMS:
        for budget in budgets:
            yield _run(size, problem, "plantree", seed, budget, {})
        for algorithm in ("spaql", "spaql-ts"):
            yield _run(size, problem, algorithm, seed, size.spaql, _spaql_settings(problem, algorithm))
        if problem in CLASSICAL:
            yield _run(size, problem, "classical", seed, 0, {})
    for together in (PROBLEMS[:2], PROBLEMS[2:]):
        for algorithm in _ORDER:
            for problem in together:
                if (algorithm, problem) in ZOO:
                    budget = size.box if problem in _BOX else size.listed
                    yield _run(size, problem, algorithm, seed, budget, ZOO[algorithm, problem])


def _run(
    size: ComparisonSize, problem: str, algorithm: str, seed: int, budget: int, settings: Mapping[str, Any]
) -> Run:
    points = () if algorithm == "plantree" else tuple(steps for steps in size.evaluate_at if steps < budget)
    return Run(
        problem=problem,
        algorithm=algorithm,
        total_interactions=budget,
        seed=seed,
        settings=settings,
        named=("total_interactions",),
        fresh_episodes=size.episodes,
        evaluate_at=(*points, budget),
    )


def _spaql_settings(problem: str, algorithm: str) -> dict[str, Any]:
    """Return the paper's settings on its problems, and the defaults elsewhere."""
    settings: dict[str, Any] = {"rollouts": 20}
    if problem == "Pendulum-v1":
        settings["scaling"] = {"spaql": 4, "spaql-ts": 0.4}[algorithm]
    if algorithm == "spaql-ts" and problem in _REFERENCES:
        settings["reference"] = list(_REFERENCES[problem])
    return settings
