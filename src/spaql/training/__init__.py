"""Training: the loop, evaluation, history, agents and run folders."""

from spaql.training.agent import Agent, agent_types, load
from spaql.training.agents import AQL, SPAQL, SPAQLTS, PlanTree, agent_type, check_settings
from spaql.training.bench import Bench, Signal, Success, find_bench
from spaql.training.controller import Controller, read
from spaql.training.evaluation import evaluate
from spaql.training.history import History
from spaql.training.parameters import parameters_of, with_parameters
from spaql.training.recording import model_errors, record
from spaql.training.results import Episode, Evaluation
from spaql.training.robustness import RobustnessRow, robustness
from spaql.training.safe_action import SafeActionRow, safe_action_use
from spaql.training.size_curve import SizedTree, size_curve, smallest_within
from spaql.training.stress import StressTest, sample_starts, stress
from spaql.training.trajectories import Trajectory, play
from spaql.training.tries import Tries, Try

__all__ = [
    "AQL",
    "SPAQL",
    "SPAQLTS",
    "Agent",
    "Bench",
    "Controller",
    "Episode",
    "Evaluation",
    "History",
    "PlanTree",
    "RobustnessRow",
    "SafeActionRow",
    "Signal",
    "SizedTree",
    "StressTest",
    "Success",
    "Trajectory",
    "Tries",
    "Try",
    "agent_type",
    "agent_types",
    "check_settings",
    "evaluate",
    "find_bench",
    "load",
    "model_errors",
    "parameters_of",
    "play",
    "read",
    "record",
    "robustness",
    "safe_action_use",
    "sample_starts",
    "size_curve",
    "smallest_within",
    "stress",
    "with_parameters",
]
