"""Problems: an environment with a horizon and a standard space."""

from spaql.problems import engineering as engineering
from spaql.problems.classic import find_dynamics
from spaql.problems.disturbances import Load, Perturbation
from spaql.problems.dynamics import Dynamics
from spaql.problems.environment import DisturbedEnv
from spaql.problems.making import make_problem
from spaql.problems.problem import EnvironmentLike, Problem
from spaql.problems.registry import PRESETS, Preset, check_environment, environment_names
from spaql.problems.variants import perturbed

__all__ = [
    "PRESETS",
    "DisturbedEnv",
    "Dynamics",
    "EnvironmentLike",
    "Load",
    "Perturbation",
    "Preset",
    "Problem",
    "check_environment",
    "environment_names",
    "find_dynamics",
    "make_problem",
    "perturbed",
]
