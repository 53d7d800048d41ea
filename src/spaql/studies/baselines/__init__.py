"""Baselines: algorithms of other libraries and of textbooks, behind the same runs and evaluations."""

from spaql.studies.baselines.classical import CLASSICAL, ClassicalPolicy
from spaql.studies.baselines.networks import NETWORKS, Network, train_network
from spaql.studies.baselines.sb3 import BASELINES, Baseline, train_baseline

__all__ = [
    "BASELINES",
    "CLASSICAL",
    "NETWORKS",
    "Baseline",
    "ClassicalPolicy",
    "Network",
    "train_baseline",
    "train_network",
]
