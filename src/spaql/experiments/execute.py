"""Executing a run: a pure function of it, apart from the store it is written to."""

from __future__ import annotations

import time
from dataclasses import dataclass

from spaql.experiments.run import Run
from spaql.experiments.store import RunStore
from spaql.experiments.trainers import trainer_of
from spaql.rollouts import fresh_episodes


@dataclass(frozen=True)
class Outcome:
    """What became of a run: the steps it took, or why it failed."""

    run: Run
    interactions: int = 0
    error: str | None = None


def execute(run: Run, *, root: str, checkpoint_every: int) -> Outcome:
    """Execute a run and leave its folder in the store under `root`.

    A run that was interrupted goes on from its checkpoint; one that is finished is left alone.
    """
    store = RunStore(root)
    if not store.is_finished(run):
        began = time.perf_counter()
        trained = trainer_of(run.algorithm).train(run, store.checkpoint(run), checkpoint_every)
        fresh = fresh_episodes(trained.policy, trained.problem, run.fresh_episodes, run.agent_seed + 1)
        result = {
            "fresh_return": fresh.mean,
            "fresh_ci95": fresh.ci95,
            **{name: value for name, value in trained.history.last().items() if name != "iteration"},
        }
        store.finish(run, trained.save_run, result, {"seconds": time.perf_counter() - began})
    return Outcome(run, int(store.result(run.id)["result"]["interactions"]))
