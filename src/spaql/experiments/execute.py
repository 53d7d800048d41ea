"""Executing a run: a pure function of it, apart from the store it is written to."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from spaql.errors import ArchiveError
from spaql.experiments.run import Run
from spaql.experiments.store import RunStore
from spaql.training import Agent, agent_type, evaluate, load

ATTEMPTS = 3
"""How often a run is tried before it counts as failed."""


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
        make = agent_type(run.algorithm)
        agent = _resumed(run, store) or make(run.problem, seed=run.agent_seed, **run.settings)
        if (missing := run.iterations - agent.iterations) > 0:
            agent.learn(
                missing,
                checkpoint=store.checkpoint(run),
                checkpoint_every=checkpoint_every,
                progress_bar=False,
            )
        fresh = evaluate(agent, episodes=run.fresh_episodes, seed=run.agent_seed + 1)
        result = {
            "fresh_return": fresh.mean,
            "fresh_ci95": fresh.ci95,
            **{name: value for name, value in agent.history.last().items() if name != "iteration"},
        }
        store.finish(run, agent, result, time.perf_counter() - began)
    return Outcome(run, int(store.result(run.id)["result"]["interactions"]))


def _resumed(run: Run, store: RunStore) -> Agent | None:
    """Load the checkpoint of a run; one that is damaged is as good as none."""
    with contextlib.suppress(ArchiveError):
        return load(store.checkpoint(run), parallel=bool(run.settings.get("parallel")))
    return None
