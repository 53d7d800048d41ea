"""PlanTree: a readable controller from a few thousand steps."""

from spaql.algorithms.plantree.learner import PlanTreeLearner
from spaql.algorithms.plantree.settings import PlanTreeSettings

__all__ = ["PlanTreeLearner", "PlanTreeSettings"]
