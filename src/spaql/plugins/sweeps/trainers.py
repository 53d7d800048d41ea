"""Trainers of the algorithms of runs: of agents, and those that installed packages register."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spaql.agents import Agent, agent_type, check_settings
from spaql.agents.agent_file import load
from spaql.agents.run_folder import save_run
from spaql.controllers import Policy
from spaql.entry_points import find_declared, load_declared
from spaql.errors import ArchiveError, SettingError
from spaql.plugins.sweeps.curve import LearningCurve
from spaql.plugins.sweeps.run import Run
from spaql.problems import Problem, check_environment

GROUP = "spaql.trainers"
"""The entry points by which a package registers trainers, each under the name of its algorithm."""


@dataclass(frozen=True)
class Trained:
    """The result of training."""

    policy: Policy
    problem: Problem
    result: Mapping[str, float]
    """The measured numbers: `interactions` at least."""
    size: float | None
    """Of the policy (see `spaql.plugins.sweeps.curve.CurvePoint`)."""
    save: Callable[[Path], None]
    """Writes its files into a run folder."""


class Trainer(Protocol):
    """Trains the runs of an algorithm."""

    def check(self, run: Run) -> None:
        """Refuse a run with settings or a budget that it does not support, with a `SettingError`."""

    def train(self, run: Run, curve: LearningCurve, checkpoint: Path, checkpoint_every: int) -> Trained:
        """Train, and evaluate the policy whenever a point of the curve is due.

        An interrupted run without such points may continue from its checkpoint.
        """


@functools.cache
def trainer_of(algorithm: str) -> Trainer:
    """Return the trainer of an algorithm."""
    entry = find_declared(GROUP, algorithm)
    if entry is None:
        return _AgentTrainer()
    trainer: Trainer = load_declared(entry)
    return trainer


class _AgentTrainer:
    """Trains agents."""

    def check(self, run: Run) -> None:
        check_settings(run.algorithm, run.settings)
        if run.total_interactions == 0:
            raise SettingError(f"{run.algorithm} learns from interactions: give it one at least.")

    def train(self, run: Run, curve: LearningCurve, checkpoint: Path, checkpoint_every: int) -> Trained:
        """Train an agent, from its checkpoint if there is one; a damaged one is ignored."""
        agent = _begun(run, checkpoint)

        def proceed(agent: Agent, row: dict[str, float]) -> bool:
            taken = int(row["interactions"])
            if curve.due(taken):
                policy = agent.policy
                curve.evaluate(taken, policy, agent.problem, policy.size[0])
            return run.total_interactions is None or taken < run.total_interactions

        iterations, steps = _left(run, agent)
        if (iterations or steps or 0) > 0:
            agent.learn(
                iterations=iterations,
                total_timesteps=steps,
                callback=proceed,
                # A checkpoint does not hold the points of the curve.
                checkpoint=None if run.evaluate_at else checkpoint,
                checkpoint_every=checkpoint_every,
                progress_bar=False,
            )
        last = agent.history.last()
        result = {name: last[name] for name in last if name != "iteration" and math.isfinite(last[name])}
        policy = agent.policy
        save = functools.partial(save_run, agent)
        return Trained(policy, agent.problem, result, policy.size[0], save)


def _begun(run: Run, checkpoint: Path) -> Agent:
    """Return the agent of a run, from its checkpoint or new."""
    make = agent_type(run.algorithm)
    check_environment(run.problem)  # imports its module, without which a checkpoint has no compiled dynamics
    try:
        agent: Agent = load(checkpoint, parallel=run.settings.get("parallel", False))
    except ArchiveError:
        return make(run.problem, seed=run.agent_seed, **run.settings)
    return agent


def _left(run: Run, agent: Agent) -> tuple[int | None, int | None]:
    """Return the remaining iterations or training steps; interactions bound the training steps."""
    if run.iterations is not None:
        return run.iterations - agent.iterations, None
    if run.total_timesteps is not None:
        return None, run.total_timesteps - agent.training_steps
    assert run.total_interactions is not None
    taken = agent.history.last()["interactions"] if len(agent.history) else 0
    return None, run.total_interactions - int(taken)
