"""Agents: a learner with a problem, a seed and a history, with Stable-Baselines3's methods."""

from spaql.agents.agent import Agent
from spaql.agents.agent_file import agent_types, load
from spaql.agents.design import Design
from spaql.agents.distillation import Distillation, distil
from spaql.agents.fitting import Fitted, fit
from spaql.agents.history import History
from spaql.agents.registry import AQL, SPAQL, SPAQLTS, PlanTree, TreeSearch, agent_type, check_settings
from spaql.agents.tries import Tries, Try

__all__ = [
    "AQL",
    "SPAQL",
    "SPAQLTS",
    "Agent",
    "Design",
    "Distillation",
    "Fitted",
    "History",
    "PlanTree",
    "TreeSearch",
    "Tries",
    "Try",
    "agent_type",
    "agent_types",
    "check_settings",
    "distil",
    "fit",
    "load",
]
