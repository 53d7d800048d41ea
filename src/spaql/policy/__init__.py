"""Policies: maps from raw observations to raw actions."""

from spaql.policy.disturbed import DelayedPolicy, DisturbedPolicy, NoisyPolicy, RecordingPolicy
from spaql.policy.explanation import Candidate, Change, Explanation
from spaql.policy.leaves import Choices, Constants, Laws, Leaves, SwitchingLaws
from spaql.policy.partition_policy import PartitionPolicy
from spaql.policy.policy import Policy
from spaql.policy.random_policy import RandomPolicy
from spaql.policy.text import text
from spaql.policy.tree import RuleTree

__all__ = [
    "Candidate",
    "Change",
    "Choices",
    "Constants",
    "DelayedPolicy",
    "DisturbedPolicy",
    "Explanation",
    "Laws",
    "Leaves",
    "NoisyPolicy",
    "PartitionPolicy",
    "Policy",
    "RandomPolicy",
    "RecordingPolicy",
    "RuleTree",
    "SwitchingLaws",
    "text",
]
