"""What the training loop asks of a learner."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.policy import Policy
from spaql.policy.policy import Rng
from spaql.problems import Problem
from spaql.rollouts import EpisodeRunner, Evaluation
from spaql.values import plain, real_number, whole_number


def setting(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    later: bool = False,
) -> Any:
    """Declare a setting: its default, what it means, and the range it must lie in.

    One that came `later` than files without it is left out of files at its default: so they keep their bytes.
    """
    told = {"help": help, "least": least, "above": above, "most": most, "later": later}
    return field(default=default, metadata=told)


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """The settings of a learner; the command line and the model file are derived from them."""

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, self._checked(item, getattr(self, item.name)))

    def as_data(self) -> dict[str, Any]:
        """Return the settings as files hold them."""
        return {
            item.name: value
            for item in fields(self)
            if (value := getattr(self, item.name)) != item.default or not item.metadata.get("later")
        }

    @staticmethod
    def _checked(item: Field[Any], value: Any) -> Any:
        """Return a setting as Python's own value, of the type of its default and within its range."""
        least, above, most = (item.metadata.get(name) for name in ("least", "above", "most"))
        if isinstance(item.default, bool):
            if not isinstance(plain(value), bool):
                raise SettingError(f"{item.name} is {value!r}, and must be True or False.")
        elif isinstance(item.default, int):
            whole = whole_number(item.name, value, least, most)
            real_number(item.name, whole, above=above)
            return whole
        elif isinstance(item.default, float):  # 20 and 20.0 are one setting, and are saved as one
            return real_number(item.name, value, least=least, above=above, most=most)
        return plain(value)


@dataclass(frozen=True, kw_only=True)
class Settings(LearnerSettings):
    """The settings of a learner that is evaluated after every episode."""

    rollouts: int = setting(20, "episodes of the evaluation after every iteration (N)", least=1)


class Learner(ABC):
    """One way to learn a policy from episodes.

    The loop calls, once an iteration: `begin`, then `act` and `learn` for every step of a training
    episode; then it evaluates `candidate` and hands the mean return to `assess`. The first evaluation,
    of the untrained candidate, comes before the first episode.
    """

    name: ClassVar[str]
    """What the command line calls it."""
    settings_type: ClassVar[type[LearnerSettings]]
    evaluated: ClassVar[bool] = True
    """Whether an evaluation follows every episode; if not, `assess` is given the return of the episode
    itself, and no step is taken but those that are learned from."""
    standardised: ClassVar[bool] = True
    """Whether it works in the standard cube, and learns from scaled rewards; if not, no steps are spent on
    measuring the cube, and rewards come as they are."""
    best_return: float | None = None
    """The best mean return of an evaluation so far."""

    def __init__(self, problem: Problem, settings: LearnerSettings) -> None:
        self.problem = problem

    def warm_up(self, progress: Callable[[int, int], object]) -> None:  # noqa: B027 (most have little to compile)
        """Compile kernels before they are needed; `progress` is called with how many are, and of how many."""

    def aim(self, last_iteration: int | None, last_step: int | None) -> None:  # noqa: B027 (most need not know)
        """Take note of where training is to end."""

    def episode_limit(self) -> int:
        """Give the most steps that the next training episode may have."""
        return self.problem.horizon

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """The policy that training would return now; to read it must be quick, and change nothing."""

    def conclude(self) -> None:  # noqa: B027 (most have a policy at any time)
        """Make the policy of all that is known now, where training has not made one yet."""

    @property
    @abstractmethod
    def candidate(self) -> Policy:
        """The policy to be evaluated after this iteration."""

    def iterate(self, runner: EpisodeRunner, rng: Rng, *, trained: bool) -> Evaluation:
        """Train for an episode, if wanted; returns the episodes by which the iteration is assessed.

        Every step is taken by the runner, which counts it.
        """
        if not self.evaluated:
            return runner.train(self, rng)
        if trained:
            runner.train(self, rng)
        return runner.evaluate(self.candidate, rng)

    @abstractmethod
    def begin(self, observation: Any) -> None:
        """Begin a training episode."""

    @abstractmethod
    def act(self, rng: Rng) -> Any:
        """Give the raw action to play."""

    @abstractmethod
    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Learn from what the action brought."""

    @abstractmethod
    def assess(self, mean_return: float) -> None:
        """Take note of the candidate's evaluation."""

    @abstractmethod
    def columns(self) -> dict[str, float]:
        """Give what the history records of this iteration, beside returns and steps."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Give all that is needed to go on later: plain data, and arrays."""

    def mark(self) -> Any:
        """Remember where it stands before an iteration, for `go_back`."""
        data, arrays = self.state()
        return copy.deepcopy(data), {name: array.copy() for name, array in arrays.items()}

    def go_back(self, mark: Any) -> None:
        """Go back to where it stood: the environment failed, and the iteration never was."""
        self.restore(*mark)

    @classmethod  # noqa: B027 (nothing to refuse, for a learner whose size the file alone decides)
    def check_size(cls, problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Refuse the arrays of a file that cannot be this problem's, before a learner of its size is made."""

    @abstractmethod
    def restore(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `state` gave, of a learner for the same problem; refuse what it cannot have given.

        Raises `ArchiveError`.
        """
