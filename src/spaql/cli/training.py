"""A run of `spaql train`: the request, and the training of a single try."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spaql.agents import Agent, PlanTree, TreeSearch
from spaql.agents.run_folder import CHECKPOINT_FILE, resumed, save_run
from spaql.agents.training_loop import Budget
from spaql.agents.tries import TRIES_FILE
from spaql.cli.interrupt import StopOnInterrupt
from spaql.cli.report import Report, say
from spaql.cli.training_report import FRESH_EPISODES, training_report
from spaql.errors import BadEnvironmentError, SettingError
from spaql.evaluation import evaluate, plain_controllers


@dataclass(frozen=True, kw_only=True)
class Training:
    """What to train, for how long, and where to save and show it."""

    agent: Agent
    """The agent before the training."""
    algo: str
    """The name of its algorithm, or MODULE:NAME for the user's own."""
    budget: Budget
    folder: Path
    resume: bool
    same_seed: bool
    """Whether a resumed run must have the seed of `agent`, because one was given."""
    verified: bool
    quiet: bool


def train_once(training: Training) -> Report:
    """Train, or continue a training, save the run and evaluate it in fresh episodes."""
    agent = training.agent
    folder = training.folder
    if training.resume:
        agent = _resumed(training)
    with StopOnInterrupt() as interrupt, _kept(agent, folder):
        _learn(agent, training, interrupt)
        save_run(agent, folder)
        interrupt.saved()
        if not training.quiet and not interrupt.pressed:
            say(f"Evaluating in {FRESH_EPISODES} new episodes ...", err=True)
        if interrupt.pressed:
            say(
                f"Interrupted: the progress so far is saved in {folder}; continue with --resume.\n"
                "Evaluating it now: press Ctrl-C again to skip this.",
                err=True,
            )
        fresh = evaluate(agent, episodes=FRESH_EPISODES, seed=agent.seed + 1)
        if interrupt.pressed:
            save_run(agent, folder)  # with the policy, if the evaluation computed it
    others = None
    if isinstance(agent, PlanTree | TreeSearch) and not interrupt.pressed:
        others = plain_controllers(agent, seed=agent.seed + 1)
    return training_report(
        agent,
        folder,
        fresh,
        others,
        algo=training.algo,
        interrupted=interrupt.pressed,
        verified=training.verified,
    )


def _resumed(training: Training) -> Agent:
    """Return the agent of the run folder; print a message if it has spent the budget."""
    folder = training.folder
    if (folder / TRIES_FILE).exists():
        raise SettingError(f"{folder} is a run with several tries: give --tries to resume them.")
    agent = resumed(training.agent, folder, same_seed=training.same_seed)
    if not any(training.budget.left(agent)):
        by_steps = training.budget.iterations is None
        done = agent.training_steps if by_steps else agent.iterations
        what = "training steps" if by_steps else "iterations"
        option = "--steps" if by_steps else "--iterations"
        advice = f"to continue, give a larger {option}."
        say(f"{folder} already has {done:,} {what}, and nothing was added: {advice}", err=True)
    return agent


def _learn(agent: Agent, training: Training, interrupt: StopOnInterrupt) -> None:
    """Train until the budget is spent, or Ctrl-C is pressed."""
    total_timesteps, iterations = training.budget.left(agent)
    if iterations or total_timesteps:
        agent.learn(
            total_timesteps,
            iterations=iterations,
            callback=interrupt,
            checkpoint=training.folder / CHECKPOINT_FILE,
            checkpoint_every=training.budget.checkpoint_every,
            progress_bar=not training.quiet,
        )


@contextmanager
def _kept(agent: Agent, folder: Path) -> Iterator[None]:
    """Save what was learned before an environment failed."""
    try:
        yield
    except BadEnvironmentError as error:
        if not len(agent.history):
            raise
        save_run(agent, folder)
        raise BadEnvironmentError(
            f"{error} The result of the {agent.training_steps:,} steps before is saved in {folder}."
        ) from error
