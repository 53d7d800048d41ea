"""PlanTree: learn the plant, plan in it, and distil the plan into a small tree.

The learner puts the phases together: those in `plantree`, and those that TreeSearch serves.
"""

from spaql.algorithms.plantree_learner.learner import PlanTreeLearner

__all__ = ["PlanTreeLearner"]
