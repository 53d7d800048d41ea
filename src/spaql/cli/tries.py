"""`spaql train --tries`: train several seeds, select one, and evaluate it in other episodes."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spaql.agents import Agent, Tries, Try
from spaql.agents.run_folder import save_run
from spaql.agents.tries import (
    TRIES_FOLDER,
    begin_table,
    check_tries,
    root_seed,
    shown_try,
    train_tries,
)
from spaql.cli.group import INTERRUPTED
from spaql.cli.interrupt import StopOnInterrupt
from spaql.cli.report import Report, say
from spaql.cli.training import Training
from spaql.cli.training_report import FRESH_EPISODES, verdict_text
from spaql.errors import SettingError, SpaqlError
from spaql.evaluation import evaluate
from spaql.formatting import counted, number, places, with_interval
from spaql.simulate import Evaluation
from spaql.workers import cores


def train_several(training: Training, tries: int, workers: int | None) -> Report:
    """Train the tries of a run folder, save the selected one in it, and return its evaluation."""
    agent = training.agent
    folder = training.folder
    workers = min(tries, cores()) if workers is None else workers
    check_tries(agent, tries, workers)
    if training.resume:
        seed = root_seed(folder)
        if training.same_seed and seed != agent.seed:
            raise SettingError(f"The tries in {folder} were started with seed {seed}, not {agent.seed}.")
        agent.seed = seed
    else:
        begin_table(folder, agent.seed, tries)
    finished = 0

    def report(index: int, result: Try) -> None:
        nonlocal finished
        finished += 1
        if not training.quiet:
            say(shown_try(index, tries, result), err=True)

    try:
        tried = _trained(training, tries, workers, report)
    except KeyboardInterrupt:
        say(
            f"Interrupted: {finished} of {tries} tries in {folder} are finished, and none is selected; "
            "continue with --resume.",
            err=True,
        )
        raise click.exceptions.Exit(INTERRUPTED) from None
    except SpaqlError as error:
        raise type(error)(" ".join([str(error), *getattr(error, "__notes__", ())])) from error
    save_run(agent, folder)
    fresh = evaluate(agent, episodes=FRESH_EPISODES, seed=agent.seed + 1)
    data = _data(agent, folder, tried, fresh)
    text = _text(data, tried, fresh)
    if training.verified:
        import spaql

        text += verdict_text(data, spaql.verify(agent), folder)
    return Report(data, text)


def _trained(
    training: Training,
    tries: int,
    workers: int,
    report: Callable[[int, Try], None],
) -> Tries:
    """Train the tries; in this process, Ctrl-C waits for the end of an iteration, or of a proof."""
    train = functools.partial(
        train_tries,
        training.agent,
        training.budget,
        training.folder / TRIES_FOLDER,
        tries=tries,
        workers=workers,
        finished=report,
    )
    if workers > 1:
        return train()
    with StopOnInterrupt() as interrupt:

        def stop(trained: Agent, row: dict[str, float]) -> None:
            if interrupt.pressed:
                raise KeyboardInterrupt

        return train(callback=stop)


def _data(agent: Agent, folder: Path, tried: Tries, fresh: Evaluation) -> dict[str, Any]:
    picked = tried.picked
    means = tried.means.tolist()
    return {
        "run": str(folder),
        "env": agent.problem.name,
        "algorithm": agent.learner_type.name,
        "seed": agent.seed,
        "fresh_return": fresh.mean,
        "fresh_ci95": fresh.ci95,
        "fresh_episodes": len(fresh.returns),
        "selection_return": picked.mean,
        "selection_ci95": picked.ci95,
        "selection_episodes": len(picked.returns),
        "size": picked.size,
        "tries": [
            {
                "seed": result.seed,
                "selection_return": result.mean,
                "selection_ci95": result.ci95,
                "size": result.size,
                "training_steps": result.training_steps,
                "interactions": result.interactions,
                "selection_steps": result.selection_steps,
            }
            for result in tried.tries
        ],
        "tries_mean": statistics.fmean(means),
        "tries_sd": statistics.stdev(means),
        "tries_worst": min(means),
        "not_told_from_the_best": tried.alike,
        "training_steps": tried.training_steps,
        "training_interactions": tried.training_interactions,
        "selection_interactions": tried.selection_steps,
        "fresh_interactions": fresh.steps,
        "interactions": tried.interactions + fresh.steps,
    }


def _text(data: dict[str, Any], tried: Tries, fresh: Evaluation) -> str:
    picked = tried.picked
    worst = tried.worst
    n = len(tried.tries)
    each = counted(data["selection_episodes"], "selection episode")
    why = "the best"
    if tried.alike > 1:
        why = f"the smallest of the {tried.alike} that do not differ significantly from the best"
        if picked.size is None:
            why = "the best, but not significantly better than others"
    digits = places(data["tries_mean"], data["tries_sd"])
    size = f"{picked.shown_size}, " if picked.shown_size else ""
    return "\n".join(
        [
            f"fresh return  {with_interval(data['fresh_return'], data['fresh_ci95'])}"
            f"  ({data['fresh_episodes']} new episodes, not used for the selection)",
            f"selected by   {with_interval(picked.mean, picked.ci95)}  ({each}: biased upwards; {why})",
            f"{f'{n} tries':<14}{number(data['tries_mean'], digits)} on average, sd "
            f"{number(data['tries_sd'], digits)}; worst {number(worst.mean, digits)} (seed {worst.seed}), "
            "in the same episodes",
            f"cost          {data['interactions']:,} interactions in all: {data['training_interactions']:,} "
            f"in training ({data['training_steps']:,} training steps), {data['selection_interactions']:,} in "
            f"selection, {data['fresh_interactions']:,} in the new episodes",
            f"policy        {size}seed {picked.seed} (try {tried.picked_index + 1} of {n}), saved in "
            f"{data['run']}",
            "",
            f"Next: spaql show {data['run']} --digits 3",
        ]
    )
