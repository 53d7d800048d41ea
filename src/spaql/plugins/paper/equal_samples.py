"""Returns of the agents of the long runs after equal numbers of samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spaql.plugins.paper.study import VARIANTS
from spaql.plugins.sweeps.store import RunStore, read_history

Floats = NDArray[np.float64]

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
