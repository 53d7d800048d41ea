"""Baselines: algorithms of other libraries and of textbooks, behind the same runs and evaluations."""

from spaql.plugins.compare.baselines.classical import CLASSICAL, ClassicalPolicy
from spaql.plugins.compare.baselines.networks import NETWORKS, ZOO, make_network

__all__ = ["CLASSICAL", "NETWORKS", "ZOO", "ClassicalPolicy", "make_network"]
