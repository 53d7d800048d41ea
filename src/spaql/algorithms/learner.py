"""What the training loop requires of an algorithm, and the interface of those that learn step by step."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from spaql.algorithms.saved import Arrays, Data, State
from spaql.algorithms.settings import LearnerSettings
from spaql.archive import number
from spaql.controllers import Controller, Policy
from spaql.kernels.numerics import Rng
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner, Evaluation


def _unheard(phase: str) -> None:
    """Ignore a phase."""


class Algorithm(ABC):
    """An algorithm that makes a policy in iterations.

    In each the training loop calls `iterate`, then `assess` with the mean return of its evaluation.
    """

    name: ClassVar[str]
    """Name on the command line."""
    settings_type: ClassVar[type[LearnerSettings]]
    evaluated: ClassVar[bool] = True
    """Whether iteration 0 evaluates the untrained policy, and every later one an episode that was learned
    from; if not, every step is a training step."""
    standardised: ClassVar[bool] = True
    """Whether it works in the standard cube and learns from scaled rewards; if not, no steps are spent on
    measuring the cube, and rewards are not scaled."""
    steady: ClassVar[bool] = True
    """Whether its steps take about equally long, so that the time that is left can be estimated."""
    iteration_is: ClassVar[str] = "episode"
    """What the return of an iteration without evaluation is measured by."""
    announce: Callable[[str], object] = staticmethod(_unheard)
    """Called with a phase that begins within an iteration, where it takes a while; training shows it."""
    best_return: float | None = None
    """The best mean return of an evaluation, or of a whole episode, so far."""

    def __init__(self, problem: Problem, settings: LearnerSettings) -> None:
        self.problem = problem

    def __getstate__(self) -> dict[str, Any]:
        """Return what is copied or pickled, also while progress is shown."""
        return {name: value for name, value in vars(self).items() if name != "announce"}

    @property
    def phase(self) -> str:
        """The phase of training, for people."""
        return "training"

    def aim(self, last_iteration: int | None, last_step: int | None) -> None:  # noqa: B027 (most need not know)
        """Store where training will end."""

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """The policy that training would return now; to read it must be quick, and change nothing."""

    @property
    def robust(self) -> bool:
        """Whether the policy is designed for perturbed plants (see `spaql.problems.perturbed`)."""
        return False

    @property
    def first_law(self) -> Controller | None:
        """The law of one leaf that training began with, if it ended with another controller."""
        return None

    def conclude(self) -> None:  # noqa: B027 (most have a policy at any time)
        """Make the policy of all that is known now, where training has not made one yet."""

    @abstractmethod
    def iterate(self, runner: EpisodeRunner, rng: Rng, *, trained: bool) -> Evaluation:
        """Make the policy better if `trained`; returns the evaluation of the iteration.

        Every step is taken and counted by the runner.
        """

    def assess(self, mean_return: float) -> None:
        """Keep the best mean return; that of an episode that the end of the budget cut is NaN."""
        if not math.isnan(mean_return) and (self.best_return is None or mean_return > self.best_return):
            self.best_return = mean_return

    @abstractmethod
    def columns(self) -> dict[str, float]:
        """Return the columns of the history for this iteration, besides returns and steps."""

    @abstractmethod
    def state(self) -> State:
        """Return everything that is needed to resume training: plain data, and arrays."""

    def mark(self) -> Any:
        """Return a snapshot before an iteration, for `go_back`."""
        data, arrays = self.state()
        return copy.deepcopy(data), {name: array.copy() for name, array in arrays.items()}

    def go_back(self, mark: Any) -> None:
        """Restore the snapshot of `mark`, after the environment failed in an iteration."""
        self.restore(*mark)

    @classmethod  # noqa: B027 (a learner whose size depends on the file alone has no check)
    def check_size(cls, problem: Problem, arrays: Arrays) -> None:
        """Raise if the arrays of a file cannot belong to this problem, before a learner is allocated."""

    @abstractmethod
    def restore(self, data: Data, arrays: Arrays) -> None:
        """Restore the `state` of a learner for the same problem; raises `ArchiveError` for any other."""

    def restore_best_return(self, data: Data) -> None:
        """Restore the best return from the data of `state`."""
        unknown = data["best_return"] is None
        self.best_return = None if unknown else float(number(data, "best_return"))


class Learner(Algorithm):
    """An algorithm that learns from the steps of episodes.

    Once per iteration the loop calls `begin`, then `act` and `learn` for every step of a training
    episode; then it evaluates `candidate` and passes the mean return to `assess`. The first evaluation,
    of the untrained candidate, comes before the first episode. If the class is not `evaluated`, `assess` gets
    the return of the training episode.
    """

    def episode_limit(self) -> int:
        """Return the largest number of steps of the next training episode."""
        return self.problem.horizon

    @property
    def candidate(self) -> Policy:
        """The policy to be evaluated after this iteration."""
        return self.policy

    def iterate(self, runner: EpisodeRunner, rng: Rng, *, trained: bool) -> Evaluation:
        """Train for an episode if `trained`; returns the evaluation of the iteration."""
        if not self.evaluated:
            return runner.train(self, rng)
        if trained:
            runner.train(self, rng)
        return runner.evaluate(self.candidate, rng)

    @abstractmethod
    def begin(self, observation: Any) -> None:
        """Start a training episode."""

    @abstractmethod
    def act(self, rng: Rng) -> Any:
        """Return the next raw action."""

    @abstractmethod
    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Learn from the transition."""
