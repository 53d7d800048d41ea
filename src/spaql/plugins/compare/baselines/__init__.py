"""Baselines: algorithms of other libraries and of textbooks, behind the same runs and evaluations."""

from spaql.plugins.compare.baselines.classical import CLASSICAL, ClassicalPolicy
from spaql.plugins.compare.baselines.networks import NETWORKS, Network, NetworkPolicy, make_network
from spaql.plugins.compare.baselines.zoo import ZOO

__all__ = ["CLASSICAL", "NETWORKS", "ZOO", "ClassicalPolicy", "Network", "NetworkPolicy", "make_network"]
