"""The learners: AQL, SPAQL and SPAQL-TS, and what every other must offer."""

from spaql.algorithms.aql import AQLLearner, AQLSettings
from spaql.algorithms.learner import Learner, Settings
from spaql.algorithms.partition_learner import PartitionLearner
from spaql.algorithms.spaql import SPAQLLearner, SPAQLSettings
from spaql.algorithms.spaql_ts import SPAQLTSLearner, SPAQLTSSettings

__all__ = [
    "AQLLearner",
    "AQLSettings",
    "Learner",
    "PartitionLearner",
    "SPAQLLearner",
    "SPAQLSettings",
    "SPAQLTSLearner",
    "SPAQLTSSettings",
    "Settings",
]
