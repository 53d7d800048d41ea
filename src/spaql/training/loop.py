"""The training loop: an episode, an evaluation, a row of history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spaql.algorithms import Learner, Settings
from spaql.policy.policy import Rng
from spaql.problems import Problem
from spaql.training.evaluation import Rollouts
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
    env = problem.make()
    try:
        with Rollouts(problem, settings.rollouts) as rollouts:
            go_on = True
            while go_on:
                row = _iterate(learner, problem, env, rollouts, history, seed)
                history.append(row)
                go_on = proceed(row)
    finally:
        env.close()


def _iterate(
    learner: Learner, problem: Problem, env: Any, rollouts: Rollouts, history: History, seed: int
) -> dict[str, float]:
    """Train for an episode and evaluate; iteration 0 only evaluates."""
    iteration = len(history)
    rng = generator(seed, Purpose.TRAINING, iteration)
    steps = 0
    training_steps, interactions = 0, problem.interactions
    if iteration:
        steps = train_episode(learner, problem, env, rng)
        last = history.last()
        training_steps, interactions = int(last["training_steps"]), int(last["interactions"])
    evaluation = rollouts.run(learner.candidate, rng)
    learner.assess(evaluation.mean)
    assert learner.best_return is not None
    return {
        "iteration": iteration,
        "mean_return": evaluation.mean,
        "best_return": learner.best_return,
        "training_steps": training_steps + steps,
        "interactions": interactions + steps + evaluation.steps,
        **learner.columns(),
    }


def train_episode(learner: Learner, problem: Problem, env: Any, rng: Rng) -> int:
    """Let the learner play and learn from one episode; gives the number of its steps."""
    observation, _ = env.reset(seed=int(rng.integers(2**31)))
    learner.begin(observation)
    for step in range(problem.horizon):
        observation, reward, terminated, truncated, _ = env.step(learner.act(rng))
        learner.learn(problem.learning_reward(float(reward)), observation, bool(terminated))
        if terminated or truncated:
            return step + 1
    return problem.horizon
