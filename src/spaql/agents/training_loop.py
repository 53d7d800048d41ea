"""The training loop: an episode, an evaluation, a row of history."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import closing

from spaql.agents.history import History
from spaql.algorithms import Algorithm, LearnerSettings, Settings
from spaql.errors import SpaqlError, SpaqlWarning
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner, Purpose, generator

AfterIteration = Callable[[dict[str, float]], bool]
"""A function called with every row of the history; training continues while it returns True."""
_MOST_IDLE = 1000
"""Most successive iterations without a simulator step: with more, a budget in steps would never be spent."""


def train(
    learner: Algorithm,
    problem: Problem,
    settings: LearnerSettings,
    history: History,
    seed: int,
    proceed: AfterIteration,
) -> None:
    """Train until `proceed` returns False; an existing history is continued."""
    rollouts = settings.rollouts if isinstance(settings, Settings) else 0
    with closing(EpisodeRunner(problem, rollouts)) as runner:
        go_on = True
        idle = 0
        while go_on:
            steps = runner.interactions.total
            row = _iterate(learner, problem, runner, history, seed)
            history.append(row)
            go_on = proceed(row)
            idle = idle + 1 if runner.interactions.total == steps else 0
            if idle == _MOST_IDLE:
                raise SpaqlError(
                    f"{learner.name} took no step in {idle:,} iterations, so that training would never end: "
                    "its `iterate` must run episodes with the runner that it is given."
                )
        if runner.beyond:
            warnings.warn(f"In training, {runner.beyond}.", SpaqlWarning, stacklevel=4)


def _iterate(
    learner: Algorithm, problem: Problem, runner: EpisodeRunner, history: History, seed: int
) -> dict[str, float]:
    """Train for an episode and evaluate; iteration 0 only evaluates, for learners that are evaluated.

    If this fails, the learner is restored: it agrees with the history, can be saved, and can continue.
    """
    iteration = 0 if learner.evaluated else 1
    training_steps = 0
    interactions = problem.interactions
    if len(history):
        last = history.last()
        iteration = int(last["iteration"]) + 1
        training_steps = int(last["training_steps"])
        interactions = int(last["interactions"])
    rng = generator(seed, Purpose.TRAINING, iteration)
    mark = learner.mark()
    trained_before = runner.interactions.learned_from
    all_before = runner.interactions.total
    try:
        evaluation = learner.iterate(runner, rng, trained=iteration > 0)
        mean = math.nan if evaluation.cut else evaluation.mean
        learner.assess(mean)
    except BaseException:
        learner.go_back(mark)
        raise
    best = learner.best_return
    return {
        "iteration": iteration,
        "mean_return": mean,
        "best_return": math.nan if best is None else best,
        "training_steps": training_steps + runner.interactions.learned_from - trained_before,
        "interactions": interactions + runner.interactions.total - all_before,
        **learner.columns(),
    }
