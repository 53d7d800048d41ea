"""Single-partition adaptive Q-learning (algorithms 2 and 3 of the paper)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spaql.algorithms.partition_learner import PartitionLearner, PartitionSettings
from spaql.algorithms.saved import Arrays, Data, State, part, prefixed
from spaql.algorithms.settings import setting
from spaql.archive import number
from spaql.controllers import PartitionPolicy
from spaql.kernels.partition.update import UpdateRules
from spaql.partition import Partition
from spaql.problems import Problem

_ITERATIONS_BEFORE_RESET = 2
"""Iterations with a split and without gain, where a rule set does not count balls."""


@dataclass(frozen=True, kw_only=True)
class SPAQLSettings(PartitionSettings):
    """Settings of SPAQL."""

    temperature_min: float = setting(0.01, "lowest temperature of Boltzmann sampling", above=0)
    temperature_growth: float = setting(
        2.0, "factor u on the temperature after an iteration without gain", least=1
    )
    temperature_damping: float = setting(0.8, "exponent d: the growth u becomes u^d at every gain", above=0)


class SPAQLLearner(PartitionLearner):
    """One partition for all time steps; the exploration rises while returns do not, and the best is kept.

    A variant overrides `cool` and `heat` for another temperature schedule, `bonus` for another bonus, or
    `assess` for the whole schedule.
    """

    name = "spaql"
    settings_type: ClassVar[type[SPAQLSettings]] = SPAQLSettings
    _policy: PartitionPolicy | None

    def __init__(self, problem: Problem, settings: SPAQLSettings) -> None:
        super().__init__(problem, settings)
        self.settings = settings
        self.keep(self.trainee.copy())
        self.rules = UpdateRules(
            horizon=problem.horizon,
            scaling=settings.scaling,
            temperature=settings.temperature_min,
            reference=np.zeros(problem.states.dims),
            reference_std=np.inf,
            euclidean=False,
            by_maximum=self.rule_set.by_maximum,
        )
        self.growth = settings.temperature_growth
        self.changes = 0
        """Iterations that split a ball since the last gain or reset; by the paper's text, balls split."""
        self.resets = 0

    @property
    def policy(self) -> PartitionPolicy:
        """The greedy policy of the best partition so far."""
        if self._policy is None:
            self._policy = PartitionPolicy(self.problem.states, self.problem.actions, self.best)
        return self._policy

    def assess(self, mean_return: float) -> None:
        """Keep the trainee if it gained; else raise the temperature, and after some splits reset it."""
        self.resets = 0
        if self.best_return is None:  # the untrained agent
            self.best_return = mean_return
            return
        rules = self.rule_set
        if mean_return > self.best_return or (rules.tie_is_gain and mean_return == self.best_return):
            self.best_return = mean_return
            self.keep(self.trainee.copy())
            self.growth **= self.settings.temperature_damping
            self.changes = 0
            self.cool()
            return
        self.changes += self.splits if rules.balls_before_reset else self.splits > 0
        if self.changes >= (rules.balls_before_reset or _ITERATIONS_BEFORE_RESET):
            self.trainee = self.best.copy()
            self.resets = 1
            self.changes = 0
            self.cool()
        elif (self.changes or not rules.heats_after_split) and self.temperature < rules.temperature_max:
            self.heat()

    @property
    def temperature(self) -> float:
        """The temperature of Boltzmann sampling in the next episode."""
        return self.rules.temperature

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        self.rules = self.rules._replace(temperature=float(temperature))

    def keep(self, partition: Partition) -> None:
        """Make a partition the best one, which defines the policy."""
        self.best = partition
        self._policy = None

    def cool(self) -> None:
        """Set the lowest temperature: after a gain, and when the trainee is reset to the best."""
        self.temperature = self.settings.temperature_min

    def heat(self) -> None:
        """Raise the temperature, after an iteration without gain."""
        self.temperature = min(self.temperature * self.growth, sys.float_info.max)  # JSON has no infinity

    def columns(self) -> dict[str, float]:
        """Return the size of the best partition, and the state of the schedule."""
        return {
            "arms": self.best.arms,
            "temperature": self.temperature,
            "splits": self.splits,
            "resets": self.resets,
        }

    def state(self) -> State:
        """Return both partitions and the state of the schedule."""
        data, arrays = super().state()
        arrays |= prefixed("best", self.best.arrays())
        schedule = {
            "temperature": self.temperature,
            "growth": self.growth,
            "changes": self.changes,
        }
        return data | schedule, arrays

    def restore(self, data: Data, arrays: Arrays) -> None:
        """Restore the result of `state`."""
        super().restore(data, arrays)
        self.keep(self._partition_from(part(arrays, "best")))
        self.temperature = float(number(data, "temperature", 0))
        self.growth = float(number(data, "growth", 0))
        self.changes = number(data, "changes", 0, whole=True)
