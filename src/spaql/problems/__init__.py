"""Problems: an environment with a horizon and a standard space."""

from spaql.problems.presets import PRESETS, Preset
from spaql.problems.problem import EnvironmentLike, Problem, make_problem

__all__ = ["PRESETS", "EnvironmentLike", "Preset", "Problem", "make_problem"]
