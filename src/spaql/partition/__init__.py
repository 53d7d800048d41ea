"""Adaptive partitions of the standard state-action cube."""

from spaql.partition.partition import Leaves, Partition, Relevant

__all__ = ["Leaves", "Partition", "Relevant"]
