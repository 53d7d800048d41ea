"""The interface of a learner, as the training loop uses it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.controllers import Controller, Policy
from spaql.controllers.policy import Rng
from spaql.errors import SettingError, UnsupportedSpaceError
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner, Evaluation
from spaql.spaces import numbers_recipe
from spaql.values import plain, real_number, whole_number


def setting(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> Any:
    """Return a dataclass field for a setting: its default, help and range."""
    return field(default=default, metadata={"help": help, "least": least, "above": above, "most": most})


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """The settings of a learner; the command line and the agent file are derived from them."""

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, self._checked(item, getattr(self, item.name)))

    def as_data(self) -> dict[str, Any]:
        """Return the settings as plain data, for files."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @staticmethod
    def _checked(item: Field[Any], value: Any) -> Any:
        """Return a setting as a Python value of the type of its default; raises if it is out of range."""
        least, above, most = (item.metadata.get(name) for name in ("least", "above", "most"))
        if isinstance(item.default, bool):
            if not isinstance(plain(value), bool):
                raise SettingError(f"{item.name} is {value!r}, and must be True or False.")
        elif isinstance(item.default, int):
            whole = whole_number(item.name, value, least, most)
            real_number(item.name, whole, above=above)
            return whole
        elif isinstance(item.default, float):  # 20 and 20.0 are saved alike
            return real_number(item.name, value, least=least, above=above, most=most)
        return plain(value)


@dataclass(frozen=True, kw_only=True)
class Settings(LearnerSettings):
    """The settings of a learner that is evaluated after every episode."""

    rollouts: int = setting(20, "episodes of the evaluation after every iteration (N)", least=1)


def refuse_lists_and_levels(problem: Problem, name: str) -> None:
    """Refuse what no rules over raw numbers are written for: Discrete observations, and levels of actions."""
    if not isinstance(problem.states.space, Box):
        raise UnsupportedSpaceError(
            f"{name} needs a Box of observations: for a list, use SPAQL, or wrap it as "
            f"{numbers_recipe(problem.states.space)}",
            settings={"algo": "spaql"},
        )
    if problem.actions.levels is not None:
        raise SettingError(
            f"{name} writes affine laws for a Box of actions: leave out its levels, or use SPAQL.",
            settings={"algo": "spaql"},
        )


class Learner(ABC):
    """An algorithm that learns a policy from episodes.

    Once per iteration the loop calls `begin`, then `act` and `learn` for every step of a training
    episode; then it evaluates `candidate` and passes the mean return to `assess`. The first evaluation,
    of the untrained candidate, comes before the first episode.
    """

    name: ClassVar[str]
    """Name on the command line."""
    settings_type: ClassVar[type[LearnerSettings]]
    evaluated: ClassVar[bool] = True
    """Whether an evaluation follows every episode; if not, `assess` gets the return of the training episode,
    and every step is a training step."""
    standardised: ClassVar[bool] = True
    """Whether it works in the standard cube and learns from scaled rewards; if not, no steps are spent on
    measuring the cube, and rewards are not scaled."""
    iteration_is: ClassVar[str] = "episode"
    """What the return of an iteration without evaluation is measured by."""
    best_return: float | None = None
    """The best mean return of an evaluation, or of a whole episode, so far."""

    def __init__(self, problem: Problem, settings: LearnerSettings) -> None:
        self.problem = problem

    def warm_up(self, progress: Callable[[int, int], object]) -> None:  # noqa: B027 (most have little to compile)
        """Compile kernels ahead of time; `progress` is called with the numbers compiled and to compile."""

    def aim(self, last_iteration: int | None, last_step: int | None) -> None:  # noqa: B027 (most need not know)
        """Store where training will end."""

    def episode_limit(self) -> int:
        """Return the largest number of steps of the next training episode."""
        return self.problem.horizon

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

    @property
    @abstractmethod
    def candidate(self) -> Policy:
        """The policy to be evaluated after this iteration."""

    def iterate(self, runner: EpisodeRunner, rng: Rng, *, trained: bool) -> Evaluation:
        """Train for an episode if `trained`; returns the evaluation of the iteration.

        Every step is taken and counted by the runner.
        """
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

    @abstractmethod
    def assess(self, mean_return: float) -> None:
        """Process the candidate's mean return; NaN for an episode that the end of the budget cut."""

    @abstractmethod
    def columns(self) -> dict[str, float]:
        """Return the columns of the history for this iteration, besides returns and steps."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return everything that is needed to resume training: plain data, and arrays."""

    def mark(self) -> Any:
        """Return a snapshot before an iteration, for `go_back`."""
        data, arrays = self.state()
        return copy.deepcopy(data), {name: array.copy() for name, array in arrays.items()}

    def go_back(self, mark: Any) -> None:
        """Restore the snapshot of `mark`, after the environment failed in an iteration."""
        self.restore(*mark)

    @classmethod  # noqa: B027 (a learner whose size depends on the file alone has no check)
    def check_size(cls, problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Raise if the arrays of a file cannot belong to this problem, before a learner is allocated."""

    @abstractmethod
    def restore(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the `state` of a learner for the same problem; raises `ArchiveError` for any other."""
