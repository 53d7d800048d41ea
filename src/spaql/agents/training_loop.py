"""Training: its budget, its callbacks, and the loop of an episode, an evaluation, a row of history."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spaql.agents.history import History
from spaql.algorithms import Algorithm, LearnerSettings, Settings
from spaql.errors import SettingError, SpaqlError, SpaqlWarning
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner, Purpose, generator
from spaql.values import whole_number

if TYPE_CHECKING:
    from spaql.agents.agent import Agent


SELECTION_EPISODES = 100
"""Default number of episodes by which a try is picked."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The length of a training, the interval of checkpoints, and the number of selection episodes."""

    total_timesteps: int | None = None
    iterations: int | None = None
    checkpoint_every: int = 100
    selection_episodes: int = SELECTION_EPISODES

    def __post_init__(self) -> None:
        if (self.iterations is None) == (self.total_timesteps is None):
            raise SettingError("Give either iterations or total_timesteps.")
        counted = "iterations" if self.total_timesteps is None else "total_timesteps"
        for name in (counted, "checkpoint_every", "selection_episodes"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), 1))

    def left(self, agent: Agent) -> tuple[int | None, int | None]:
        """Return the remaining time steps or iterations, whichever the budget counts."""
        return (
            self.total_timesteps and max(0, self.total_timesteps - agent.training_steps),
            self.iterations and max(0, self.iterations - agent.iterations),
        )


Callback = Callable[["Agent", dict[str, float]], bool | None]
_WANTED = (
    "must be a function of the agent and the new row of its history, such as "
    "`lambda agent, row: row['training_steps'] < 5000`, or a list of such functions"
)


def joined(callback: Callback | Sequence[Callback] | None) -> Callback:
    """Return a function that calls all the callbacks, and returns False if one of them does.

    Raises `SettingError` for anything that cannot be called like this, such as a Stable-Baselines3 callback.
    """
    callbacks: Sequence[Any] = callback if isinstance(callback, list | tuple) else [callback]
    functions = [_checked(function) for function in callbacks if function is not None]

    def call(agent: Agent, row: dict[str, float]) -> bool:
        answers = [function(agent, row) for function in functions]
        return not any(answer is False for answer in answers)

    return call


def _checked(callback: Any) -> Callback:
    if isinstance(callback, type) or not callable(callback):
        raise SettingError(f"callback is {callback!r}, and {_WANTED}.")
    try:
        inspect.signature(callback).bind(None, None)
    except TypeError:
        raise SettingError(
            f"callback is {callback!r}, which does not take two arguments: it {_WANTED}."
        ) from None
    except ValueError:  # a builtin without a signature
        pass
    return callback  # type: ignore[no-any-return]


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
