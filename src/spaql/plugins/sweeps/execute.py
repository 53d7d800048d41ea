"""Execution of a run: a pure function of it, apart from the store it is written to."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaql.archive import write_atomically
from spaql.plugins.sweeps.curve import CURVE, LearningCurve
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.trainers import trainer_of
from spaql.simulate import fresh_episodes


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: its interactions, or why it failed."""

    run: Run
    interactions: int = 0
    error: str | None = None


def execute(run: Run, *, root: str, checkpoint_every: int) -> Outcome:
    """Execute a run and write its folder to the store under `root`.

    An interrupted run continues from its checkpoint, or starts again if it has a learning curve; a finished
    one is not changed.
    """
    store = RunStore(root)
    if not store.is_finished(run):
        began = time.perf_counter()
        curve = LearningCurve(run)
        trained = trainer_of(run.algorithm).train(run, curve, store.checkpoint(run), checkpoint_every)
        if run.evaluate_at:
            taken = int(trained.result["interactions"])
            curve.evaluate(taken, trained.policy, trained.problem, trained.size)
        fresh = fresh_episodes(trained.policy, trained.problem, run.fresh_episodes, run.agent_seed + 1)
        result = {"fresh_return": fresh.mean, "fresh_ci95": fresh.ci95, **trained.result}
        timing: dict[str, Any] = {"seconds": time.perf_counter() - began}
        if run.evaluate_at:
            timing |= {"wall": curve.wall, "cpu": curve.cpu}

        def save(folder: Path) -> None:
            trained.save(folder)
            if run.evaluate_at:
                write_atomically(folder / CURVE, curve.to_csv().encode())

        store.finish(run, save, result, timing)
    return Outcome(run, int(store.result(run.id)["result"]["interactions"]))
