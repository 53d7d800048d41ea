"""Adaptive Q-learning (algorithm 1 of the paper)."""

from dataclasses import dataclass

import numpy as np

from spaql.algorithms.partition_learner import PartitionLearner, PartitionSettings
from spaql.controllers import PartitionPolicy
from spaql.kernels.partition.update import UpdateRules
from spaql.problems import Problem


@dataclass(frozen=True, kw_only=True)
class AQLSettings(PartitionSettings):
    """Settings of AQL."""


class AQLLearner(PartitionLearner):
    """A partition for every time step, greedy choice, and an upper confidence bound to explore."""

    name = "aql"
    settings_type = AQLSettings
    time_variant = True

    def __init__(self, problem: Problem, settings: AQLSettings) -> None:
        super().__init__(problem, settings)
        self.rules = UpdateRules(
            horizon=problem.horizon,
            scaling=settings.scaling,
            temperature=0.0,
            reference=np.zeros(problem.states.dims),
            reference_std=np.inf,
            euclidean=False,
        )

    @property
    def policy(self) -> PartitionPolicy:
        """The current greedy policy: AQL does not keep the best."""
        return self.candidate

    def columns(self) -> dict[str, float]:
        """Return the size of the partitions."""
        return {"arms": self.trainee.arms, "temperature": 0.0, "splits": self.splits, "resets": 0}
