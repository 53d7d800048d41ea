"""The data that the paper's claims are judged by, among them returns after equal numbers of samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spaql.plugins.paper.study import PROBLEMS, SCALINGS, VARIANTS
from spaql.plugins.paper.tables import Line
from spaql.plugins.sweeps.store import RunStore, read_history

Floats = NDArray[np.float64]
Scaling = Mapping[tuple[str, str, float], Floats]
"""Fresh returns of the short runs, by problem, algorithm and xi."""

BATCH = 4_000
"""Samples of a batch of TRPO, after each of which returns are compared."""
EARLY = 10
"""Batches that count as the first ones: up to 40,000 samples, where TRPO catches up in the paper."""
_BATCHES = 100


@dataclass(frozen=True)
class Early:
    """The agents of one algorithm on one problem; rows are agents, columns are after 1, 2, ... batches.

    A return is the best evaluation so far of SPAQL and SPAQL-TS, the last one of AQL and TRPO.
    """

    by_samples: Floats
    """By training steps, as the paper counts."""
    by_all_steps: Floats
    """By all steps that the algorithm uses: SPAQL's evaluations select the agent, and are counted; those of
    AQL and TRPO only measure, and are not."""
    samples: Floats
    """All training steps of each agent."""
    all_steps: Floats
    late_gain: Floats
    """The gain in the second half of the iterations, as a share of the whole gain."""


@dataclass(frozen=True)
class Study:
    """All runs of the paper's studies, under one set of rules."""

    short: Scaling
    lines: Mapping[tuple[str, str], Line]
    early: Mapping[tuple[str, str], Early] = field(default_factory=dict)

    @property
    def has_trpo(self) -> bool:
        """Whether TRPO was run on both problems."""
        return all((problem, "trpo") in table for problem in PROBLEMS for table in (self.lines, self.early))

    def measures(self, problem: str, algorithm: str) -> tuple[Floats, Floats]:
        """Return the agents' returns as the paper measures, and in fresh episodes; equal for random."""
        line = self.lines[problem, algorithm]
        return line.fresh if line.reported is None else line.reported, line.fresh

    def arms(self, problem: str, algorithm: str) -> Floats:
        """Return the number of arms of each agent."""
        arms = self.lines[problem, algorithm].arms
        assert arms is not None
        return arms

    def by_xi(self, problem: str, algorithm: str) -> Floats:
        """Return the mean return for every xi above 0."""
        return np.array([self.short[problem, algorithm, xi].mean() for xi in SCALINGS if xi > 0])

    def sample(self, name: str) -> Floats:
        """Return fresh returns of the random policy, or of short runs: with an xi, or with all above 0."""
        problem, algorithm, *xi = name.split("/")
        if algorithm == "random":
            return self.lines[problem, "random"].fresh
        chosen = map(float, xi) if xi else (xi for xi in SCALINGS if xi > 0)
        return np.concatenate([self.short[problem, algorithm, value] for value in chosen])


def early_returns(long: RunStore) -> dict[tuple[str, str], Early]:
    """Return the agents of the long runs, by problem and algorithm."""
    found: dict[tuple[str, str], list[Path]] = {}
    for run_id in long.finished():
        run = long.result(run_id)["run"]
        found.setdefault((run["problem"], run["algorithm"]), []).append(long.root / run_id)
    return {key: _read(key[1], folders) for key, folders in found.items()}


def _read(algorithm: str, folders: list[Path]) -> Early:
    columns: dict[str, list[Floats | float]] = {name: [] for name in Early.__dataclass_fields__}
    counts = BATCH * np.arange(1, _BATCHES + 1)
    for folder in folders:
        history = read_history(folder)
        keeps = algorithm in VARIANTS
        returns = history["best_return" if keeps else "mean_return"]
        samples = history["training_steps"]
        steps = history["interactions"] if keeps else samples
        first = returns[0]
        middle = returns[len(returns) // 2]
        last = returns[-1]
        columns["by_samples"].append(_at(counts, samples, returns))
        columns["by_all_steps"].append(_at(counts, steps, returns))
        columns["samples"].append(samples[-1])
        columns["all_steps"].append(steps[-1])
        columns["late_gain"].append((last - middle) / (last - first) if last != first else 0.0)
    return Early(**{name: np.array(values) for name, values in columns.items()})


def _at(counts: NDArray[np.int64], steps: Floats, returns: Floats) -> Floats:
    """Return the last return after at most each count of steps, or the first one if there is none."""
    return returns[np.maximum(np.searchsorted(steps, counts, side="right") - 1, 0)]
