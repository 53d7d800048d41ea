"""Executing a run: a pure function of it, apart from the store it is written to."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from pathlib import Path

from spaql.baselines import BASELINES, Baseline, train_baseline
from spaql.errors import ArchiveError
from spaql.experiments.run import Run
from spaql.experiments.store import RunStore
from spaql.problems import check_environment
from spaql.training import Agent, agent_type, evaluate, load
from spaql.training.run_folder import save_run


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
        if run.algorithm in BASELINES:
            assert run.iterations is not None  # `study.check` refuses others
            trained: Agent | Baseline = train_baseline(
                run.algorithm, run.problem, iterations=run.iterations, seed=run.agent_seed, **run.settings
            )
        else:
            trained = _train_agent(run, store.checkpoint(run), checkpoint_every)
        fresh = evaluate(trained, episodes=run.fresh_episodes, seed=run.agent_seed + 1)
        result = {
            "fresh_return": fresh.mean,
            "fresh_ci95": fresh.ci95,
            **{name: value for name, value in trained.history.last().items() if name != "iteration"},
        }
        save = trained.save_run if isinstance(trained, Baseline) else functools.partial(save_run, trained)
        store.finish(run, save, result, {"seconds": time.perf_counter() - began})
    return Outcome(run, int(store.result(run.id)["result"]["interactions"]))


def _train_agent(run: Run, checkpoint: Path, checkpoint_every: int) -> Agent:
    """Train an agent, from its checkpoint on if there is one; a damaged one is as good as none."""
    make = agent_type(run.algorithm)
    check_environment(run.problem)  # imports its module, without which a checkpoint has no compiled dynamics
    how = {name: run.settings[name] for name in ("parallel", "step_timeout") if name in run.settings}
    try:
        agent = load(checkpoint, **how)
    except ArchiveError:
        agent = make(run.problem, seed=run.agent_seed, **run.settings)
    iterations = None if run.iterations is None else run.iterations - agent.iterations
    steps = None if run.total_timesteps is None else run.total_timesteps - agent.training_steps
    if (iterations or steps or 0) > 0:
        agent.learn(
            iterations,
            total_timesteps=steps,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            progress_bar=False,
        )
    return agent
