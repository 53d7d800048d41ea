"""What figures read from a store of runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.experiments import Run, RunStore
from spaql.experiments.store import read_history

Floats = NDArray[np.float64]


def check_finished(store: RunStore, runs: Sequence[Run]) -> None:
    """Refuse to draw what is not there."""
    if missing := store.missing(runs):
        raise SettingError(
            f"{len(missing):,} of {len(runs):,} runs are not finished in {store.root}, {missing[0].id} for "
            "one: sweep them first."
        )


def fresh_returns(store: RunStore, runs: Sequence[Run]) -> Floats:
    """Give the mean return of fresh episodes of each run."""
    return np.array([store.result(run.id)["result"]["fresh_return"] for run in runs])


def histories(store: RunStore, runs: Sequence[Run]) -> dict[str, Floats]:
    """Give the columns of the runs' histories, each with a row for a run and a column for an iteration."""
    tables = [read_history(store.folder(run)) for run in runs]
    return {name: np.stack([table[name] for table in tables]) for name in tables[0]}
