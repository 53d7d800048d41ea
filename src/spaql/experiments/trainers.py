"""How the algorithm of a run is trained: an agent, or what an installed package offers under its name."""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol

from spaql.agents import Agent, History, agent_type, check_settings, load
from spaql.agents.run_folder import save_run
from spaql.errors import ArchiveError
from spaql.experiments.run import Run
from spaql.policy import Policy
from spaql.problems import Problem, check_environment

GROUP = "spaql.trainers"
"""The entry points by which a package offers trainers, each under the name of its algorithm."""


class Trained(Protocol):
    """What training leaves."""

    @property
    def policy(self) -> Policy:
        """What was learned."""

    @property
    def problem(self) -> Problem:
        """Where."""

    @property
    def history(self) -> History:
        """What happened in every iteration."""

    def save_run(self, folder: Path) -> None:
        """Write the files of the run."""


class Trainer(Protocol):
    """Trains the runs of an algorithm."""

    def check(self, run: Run) -> None:
        """Refuse a run whose settings it does not take, with a `SettingError`."""

    def train(self, run: Run, checkpoint: Path, checkpoint_every: int) -> Trained:
        """Train; a run that was interrupted may go on from its checkpoint."""


def trainer_of(algorithm: str) -> Trainer:
    """Return what trains an algorithm."""
    offered = _offered()
    if algorithm in offered:
        trainer: Trainer = offered[algorithm].load()
        return trainer
    return _AgentTrainer()


@functools.cache
def _offered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


class _TrainedAgent:
    """An agent that has been trained."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.policy, self.problem, self.history = agent.policy, agent.problem, agent.history

    def save_run(self, folder: Path) -> None:
        save_run(self._agent, folder)


class _AgentTrainer:
    """Trains agents."""

    def check(self, run: Run) -> None:
        check_settings(run.algorithm, run.settings)

    def train(self, run: Run, checkpoint: Path, checkpoint_every: int) -> Trained:
        """Train an agent, from its checkpoint on if there is one; a damaged one is as good as none."""
        make = agent_type(run.algorithm)
        check_environment(
            run.problem
        )  # imports its module, without which a checkpoint has no compiled dynamics
        how = {name: run.settings[name] for name in ("parallel", "step_timeout") if name in run.settings}
        try:
            agent = load(checkpoint, **how)
        except ArchiveError:
            agent = make(run.problem, seed=run.agent_seed, **run.settings)
        iterations = None if run.iterations is None else run.iterations - agent.iterations
        steps = None if run.total_timesteps is None else run.total_timesteps - agent.training_steps
        if (iterations or steps or 0) > 0:
            agent.learn(
                steps,
                iterations=iterations,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                progress_bar=False,
            )
        return _TrainedAgent(agent)
