"""The learners AQL, SPAQL, SPAQL-TS, PlanTree and TreeSearch, and the interface of a learner."""

from spaql.algorithms.aql import AQLLearner, AQLSettings
from spaql.algorithms.learner import Algorithm, Learner
from spaql.algorithms.partition_learner import PartitionLearner, PartitionSettings, RuleSet
from spaql.algorithms.plantree.learner import PlanTreeLearner
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.settings import LearnerSettings, Settings, setting
from spaql.algorithms.spaql import SPAQLLearner, SPAQLSettings
from spaql.algorithms.spaql_ts import SPAQLTSLearner, SPAQLTSSettings
from spaql.algorithms.treesearch import TreeSearchLearner, TreeSearchSettings

__all__ = [
    "AQLLearner",
    "AQLSettings",
    "Algorithm",
    "Learner",
    "LearnerSettings",
    "PartitionLearner",
    "PartitionSettings",
    "PlanTreeLearner",
    "PlanTreeSettings",
    "RuleSet",
    "SPAQLLearner",
    "SPAQLSettings",
    "SPAQLTSLearner",
    "SPAQLTSSettings",
    "Settings",
    "TreeSearchLearner",
    "TreeSearchSettings",
    "setting",
]
