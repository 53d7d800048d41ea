"""Problems: an environment with a horizon and a standard space."""

from spaql.problems.classic import find_dynamics
from spaql.problems.dynamics import Dynamics
from spaql.problems.presets import PRESETS, Preset
from spaql.problems.problem import EnvironmentLike, Problem, make_problem
from spaql.problems.registry import check_environment, environment_names

__all__ = [
    "PRESETS",
    "Dynamics",
    "EnvironmentLike",
    "Preset",
    "Problem",
    "check_environment",
    "environment_names",
    "find_dynamics",
    "make_problem",
]
