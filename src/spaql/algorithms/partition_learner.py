"""Q-learning on a partition: what AQL and SPAQL share, and where the paper's text and code differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from spaql.algorithms.learner import Learner
from spaql.algorithms.saved import Arrays, Data, State, part, prefixed
from spaql.algorithms.settings import Settings, setting
from spaql.controllers import PartitionPolicy
from spaql.errors import ArchiveError, BadEnvironmentError, SettingError
from spaql.kernels.numerics import Rng
from spaql.kernels.partition.update import UpdateRules, choose, learn
from spaql.partition import Partition
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner, Evaluation

Metric = Literal["euclidean", "infinity"]


@dataclass(frozen=True, kw_only=True)
class RuleSet:
    """What AQL, SPAQL and SPAQL-TS do where text and code differ; the defaults are those of the code.

    Where the text leaves a point open, all rule sets share one choice.
    """

    tie_is_gain: bool = True
    """Whether an evaluation that equals the best counts as a gain, which keeps the trainee and damps u."""
    heats_after_split: bool = True
    """Whether the temperature rises only once a ball was split since the last gain or reset."""
    temperature_max: float = 10.0
    """The temperature rises only while it is below this."""
    balls_before_reset: int | None = None
    """Balls split without gain after which the trainee is reset to the best; if None, it is reset after the
    second iteration that split any."""
    by_maximum: bool = False
    """Whether Boltzmann sampling divides Q by max Q; if not, by the largest absolute Q."""
    metric: Metric = "euclidean"
    """Of the distance to the reference (SPAQL-TS), unless the setting `metric` names one."""


AUTHORS = RuleSet()
"""The code that made the paper's figures."""

TEXT = RuleSet(
    tie_is_gain=False,
    heats_after_split=False,
    temperature_max=math.inf,
    balls_before_reset=3,  # "more than two splits" in algorithm 3; the prose beside it says two
    by_maximum=True,
    metric="infinity",
)
"""The paper, read literally."""

RULE_SETS: Mapping[str, RuleSet] = MappingProxyType({"authors": AUTHORS, "text": TEXT})
"""By the values of the setting `rules`."""


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
    rules: UpdateRules
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

    def state(self) -> State:
        """Return the trainee's arrays and the best return."""
        return {"best_return": self.best_return}, prefixed("trainee", self.trainee.arrays())

    def restore(self, data: Data, arrays: Arrays) -> None:
        """Restore the result of `state`."""
        self.restore_best_return(data)
        self.trainee = self._partition_from(part(arrays, "trainee"))

    @classmethod
    def check_size(cls, problem: Problem, arrays: Arrays) -> None:
        """Raise if there are fewer balls than trees."""
        if cls._trees(problem) > arrays["trainee.q"].size:
            raise ArchiveError(
                f"The file holds {arrays['trainee.q'].size} balls for {cls._trees(problem)} trees."
            )

    @classmethod
    def _trees(cls, problem: Problem) -> int:
        return problem.horizon if cls.time_variant else 1

    def _partition_from(self, arrays: Arrays) -> Partition:
        """Return the partition of these arrays; raises if it is not one of this problem."""
        partition = Partition.from_arrays(arrays)
        problem = self.problem
        expected = (problem.states.dims, list(problem.actions.sizes), self._trees(problem))
        if (partition.state_dims, partition.balls.action_sizes.tolist(), partition.trees) != expected:
            raise ArchiveError("The file's partition has other dimensions than its problem.")
        return partition
