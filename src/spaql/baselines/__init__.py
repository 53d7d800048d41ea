"""Baselines: algorithms of other libraries behind the same runs, histories and evaluations."""

from spaql.baselines.sb3 import BASELINES, Baseline, train_baseline

__all__ = ["BASELINES", "Baseline", "train_baseline"]
