"""The training loop: an episode, an evaluation, a row of history."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from spaql.algorithms import Learner, Settings
from spaql.problems import Problem
from spaql.training.arena import Arena
from spaql.training.history import History
from spaql.training.seeds import Purpose, generator

AfterIteration = Callable[[dict[str, float]], bool]
"""Called with every row of the history; training goes on while it says True."""


def train(
    learner: Learner,
    problem: Problem,
    settings: Settings,
    history: History,
    seed: int,
    proceed: AfterIteration,
) -> None:
    """Train until `proceed` says no; the history, and with it the training, may have begun before."""
    with closing(Arena(problem, settings.rollouts)) as arena:
        go_on = True
        while go_on:
            row = _iterate(learner, problem, arena, history, seed)
            history.append(row)
            go_on = proceed(row)


def _iterate(
    learner: Learner, problem: Problem, arena: Arena, history: History, seed: int
) -> dict[str, float]:
    """Train for an episode and evaluate; iteration 0 only evaluates.

    If it fails, the learner is where it was before: it fits the history, can be saved, and can go on.
    """
    iteration = len(history)
    training_steps, interactions = 0, problem.interactions
    if iteration:
        last = history.last()
        training_steps, interactions = int(last["training_steps"]), int(last["interactions"])
    rng = generator(seed, Purpose.TRAINING, iteration)
    mark = learner.mark()
    try:
        steps, evaluation = arena.iterate(learner, rng, trained=iteration > 0)
    except BaseException:
        learner.go_back(mark)
        raise
    mean = evaluation.mean
    learner.assess(mean)
    assert learner.best_return is not None
    return {
        "iteration": iteration,
        "mean_return": mean,
        "best_return": learner.best_return,
        "training_steps": training_steps + steps,
        "interactions": interactions + steps + evaluation.steps,
        **learner.columns(),
    }
