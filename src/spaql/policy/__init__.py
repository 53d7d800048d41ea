"""Policies: maps from raw observations to raw actions."""

from spaql.policy.explanation import Candidate, Change, Explanation
from spaql.policy.feature_controller import FeatureController
from spaql.policy.feature_tree import tree_over_features
from spaql.policy.features import (
    Angle,
    AngleError,
    Difference,
    Error,
    Feature,
    FilteredDerivative,
    Integral,
    Lag,
    LastAction,
    LowPass,
    Observed,
    Product,
    Square,
)
from spaql.policy.leaves import Choices, Constants, Laws, Leaves, SwitchingLaws
from spaql.policy.partition_policy import PartitionPolicy
from spaql.policy.policy import Policy
from spaql.policy.random_policy import RandomPolicy
from spaql.policy.recording import RecordingPolicy
from spaql.policy.text import text
from spaql.policy.tree import RuleTree

__all__ = [
    "Angle",
    "AngleError",
    "Candidate",
    "Change",
    "Choices",
    "Constants",
    "Difference",
    "Error",
    "Explanation",
    "Feature",
    "FeatureController",
    "FilteredDerivative",
    "Integral",
    "Lag",
    "LastAction",
    "Laws",
    "Leaves",
    "LowPass",
    "Observed",
    "PartitionPolicy",
    "Policy",
    "Product",
    "RandomPolicy",
    "RecordingPolicy",
    "RuleTree",
    "Square",
    "SwitchingLaws",
    "text",
    "tree_over_features",
]
