"""Q-learning on a partition: what AQL and the SPAQL family share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.learner import Learner
from spaql.algorithms.rule_sets import AUTHORS, RULE_SETS, RuleSet
from spaql.algorithms.saved import part, prefixed
from spaql.algorithms.settings import Settings, setting
from spaql.controllers import PartitionPolicy
from spaql.controllers.policy import Rng
from spaql.errors import ArchiveError, BadEnvironmentError, SettingError
from spaql.kernels.partition.update import Rules, choose, learn
from spaql.partition import Partition
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner, Evaluation


@dataclass(frozen=True, kw_only=True)
class PartitionSettings(Settings):
    """The settings that AQL, SPAQL and SPAQL-TS share."""

    scaling: float = setting(20.0, "weight xi of the exploration bonus xi / sqrt(v)", least=0)
    rules: Literal["authors", "text"] = setting(
        "authors",
        "where they differ: the code of the paper's authors, or its text read literally",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rules not in RULE_SETS:
            raise SettingError(f"rules is {self.rules!r}, and must be 'authors' or 'text'.")


class PartitionLearner(Learner):
    """Choose a ball, play one of its actions, update it, and split it when it is due.

    A variant sets `rules` (the parameters of the choice and the update) and defines `assess`. One that
    overrides `bonus`, `begin`, `act` or `learn` is trained step by step in Python, which takes about a
    hundred times as long; all else is compiled.
    """

    trainee: Partition
    """The partition in training."""
    rules: Rules
    """Of the current iteration."""
    time_variant = False
    """One tree of balls for every time step, or one for all."""
    rule_sets: ClassVar[Mapping[str, RuleSet]] = RULE_SETS
    """The rule set of the setting `rules`."""
    rule_set: RuleSet = AUTHORS

    def __init__(self, problem: Problem, settings: Settings) -> None:
        super().__init__(problem, settings)
        if isinstance(settings, PartitionSettings):
            self.rule_set = self.rule_sets[settings.rules]
        self.trainee = Partition(
            problem.states.dims,
            problem.actions.sizes,
            q=float(problem.horizon),
            trees=self._trees(problem),
        )
        self.splits = 0
        self._room = self.trainee.children_at_most
        self._state, self._next = np.zeros((2, problem.states.dims))
        """The standard state, and a buffer for the next."""
        self._raw = np.zeros((1, problem.actions.dims))
        self._sizes = np.zeros(problem.actions.dims, np.int64)

    @property
    def candidate(self) -> PartitionPolicy:
        """The greedy policy of the partition in training."""
        return PartitionPolicy(self.problem.states, self.problem.actions, self.trainee)

    def iterate(self, runner: EpisodeRunner, rng: Rng, *, trained: bool) -> Evaluation:
        """Train and evaluate: in one compiled call if the dynamics are compiled, else step by step."""
        if self.problem.dynamics is None or not self.follows_the_kernels:
            return super().iterate(runner, rng, trained=trained)
        self.splits, evaluation = runner.iterate_partition(
            self.trainee, self.time_variant, self.rules, rng, trained=trained
        )
        return evaluation

    def begin(self, observation: Any) -> None:
        """Start a training episode."""
        self.splits = 0
        self._step = 0
        self._state[:] = self.problem.states.standardise(observation)
        if np.isnan(self._state).any():
            raise self._holds_nan(observation)

    def act(self, rng: Rng) -> Any:
        """Choose a ball for the state and draw a raw action from it."""
        self._ball, self._depth = choose(
            tuple(self.trainee.balls),
            self._step if self.time_variant else 0,
            tuple(self.rules),
            tuple(self.problem.actions.action_map),
            self._state,
            rng.random(1 + len(self._sizes)),
            self._raw[0],
            self._sizes,
        )
        return self.problem.actions.shaped(self._raw)[0]

    def bonus(self, visits: int) -> float:
        """Return the exploration bonus of a ball with so many visits."""
        return self.rules.scaling / math.sqrt(visits)

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Update the ball that was played; past the horizon the value is 0."""
        self._step += 1
        if not math.isfinite(reward):
            raise BadEnvironmentError(f"The reward of step {self._step} is {reward}, and must be finite.")
        rules = self.rules
        if type(self).bonus is not PartitionLearner.bonus:
            rules = rules._replace(scaling=0.0)
            reward = reward + self._own_bonus()
        next_tree = self._step if self.time_variant else 0
        if next_tree >= self.problem.horizon:
            next_tree = -1
        self.trainee.reserve(self._room)
        splits = learn(
            tuple(self.trainee.balls),
            next_tree,
            tuple(rules),
            tuple(self.problem.states.state_map),
            self._ball,
            self._depth,
            self._sizes,
            self._state,
            reward,
            np.array(observation, np.float64).ravel(),
            self._next,
        )
        if splits < 0:
            raise self._holds_nan(observation)
        self.splits += splits
        self._state, self._next = self._next, self._state

    def _own_bonus(self) -> float:
        visits = int(self.trainee.balls.visits[self._ball]) + 1
        bonus = float(self.bonus(visits))
        if not math.isfinite(bonus):
            raise SettingError(
                f"bonus({visits}) of {type(self).__name__} is {bonus}: it must be finite for 1 visit or more."
            )
        return bonus

    @property
    def follows_the_kernels(self) -> bool:
        """Whether compiled episodes do the same as `act` and `learn`, which no subclass overrides."""
        methods = ("bonus", "begin", "act", "learn")
        return all(getattr(type(self), name) is getattr(PartitionLearner, name) for name in methods)

    def mark(self) -> Any:
        """Return the attributes, with a copy of what is changed in place."""
        if not self.follows_the_kernels:
            return super().mark()
        return vars(self) | {"trainee": self.trainee.copy()}

    def go_back(self, mark: Any) -> None:
        """Restore the attributes."""
        if self.follows_the_kernels:
            vars(self).update(mark)
        else:
            super().go_back(mark)

    def _holds_nan(self, observation: Any) -> BadEnvironmentError:
        return BadEnvironmentError(f"The observation of step {self._step} holds NaN: {observation}.")

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the trainee's arrays and the best return."""
        return {"best_return": self.best_return}, prefixed("trainee", self.trainee.arrays())

    def restore(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`."""
        self.restore_best_return(data)
        self.trainee = self._partition_from(part(arrays, "trainee"))

    @classmethod
    def check_size(cls, problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Raise if there are fewer balls than trees."""
        if cls._trees(problem) > arrays["trainee.q"].size:
            raise ArchiveError(
                f"The file holds {arrays['trainee.q'].size} balls for {cls._trees(problem)} trees."
            )

    @classmethod
    def _trees(cls, problem: Problem) -> int:
        return problem.horizon if cls.time_variant else 1

    def _partition_from(self, arrays: Mapping[str, NDArray[Any]]) -> Partition:
        """Return the partition of these arrays; raises if it is not one of this problem."""
        partition = Partition.from_arrays(arrays)
        problem = self.problem
        expected = (problem.states.dims, list(problem.actions.sizes), self._trees(problem))
        if (partition.state_dims, partition.balls.action_sizes.tolist(), partition.trees) != expected:
            raise ArchiveError("The file's partition has other dimensions than its problem.")
        return partition
