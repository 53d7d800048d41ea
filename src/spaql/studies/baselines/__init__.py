"""Baselines: algorithms of other libraries and of textbooks, behind the same runs and evaluations."""

from spaql.studies.baselines.classical import CLASSICAL, ClassicalPolicy
from spaql.studies.baselines.networks import NETWORKS, Network, NetworkPolicy, make_network
from spaql.studies.baselines.zoo import ZOO

__all__ = ["CLASSICAL", "NETWORKS", "ZOO", "ClassicalPolicy", "Network", "NetworkPolicy", "make_network"]
