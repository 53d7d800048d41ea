"""Policies: from raw observations to raw actions, whatever they were made from."""

from spaql.policy.partition_policy import PartitionPolicy
from spaql.policy.policy import Policy
from spaql.policy.random_policy import RandomPolicy

__all__ = ["PartitionPolicy", "Policy", "RandomPolicy"]
