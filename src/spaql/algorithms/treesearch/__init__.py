"""TreeSearch: search a small tree on the simulator itself."""

from spaql.algorithms.treesearch.learner import TreeSearchLearner
from spaql.algorithms.treesearch.settings import TreeSearchSettings

__all__ = ["TreeSearchLearner", "TreeSearchSettings"]
