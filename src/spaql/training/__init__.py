"""Training: the loop, evaluation, history, agents and run folders."""

from spaql.training.agent import (
    AQL,
    SPAQL,
    SPAQLTS,
    Agent,
    PlanTree,
    agent_type,
    agent_types,
    check_settings,
    load,
)
from spaql.training.evaluation import evaluate
from spaql.training.history import History
from spaql.training.results import Episode, Evaluation
from spaql.training.size_curve import SizedTree, size_curve

__all__ = [
    "AQL",
    "SPAQL",
    "SPAQLTS",
    "Agent",
    "Episode",
    "Evaluation",
    "History",
    "PlanTree",
    "SizedTree",
    "agent_type",
    "agent_types",
    "check_settings",
    "evaluate",
    "load",
    "size_curve",
]
