"""Evaluation: fresh episodes, stress tests, robustness, measures of a closed loop, sizes."""

from spaql.evaluation.bench import Bench, Success, find_bench
from spaql.evaluation.beside import Comparison, Judged, beside
from spaql.evaluation.control import (
    Actuator,
    ControlMeasures,
    StepResponse,
    Tracking,
    evaluate_control,
    step_response,
)
from spaql.evaluation.episodes import evaluate, start_states
from spaql.evaluation.model_errors import model_errors
from spaql.evaluation.plain_controllers import PlainControllers, plain_controllers
from spaql.evaluation.plant_parameters import parameters_of, with_parameters
from spaql.evaluation.robustness import RobustnessRow, robustness
from spaql.evaluation.size_curve import SizedTree, size_curve, smallest_within
from spaql.evaluation.step_test import Response, StepTest, step_test
from spaql.evaluation.stress import StressTest, sample_starts, stress
from spaql.simulate import Evaluation

__all__ = [
    "Actuator",
    "Bench",
    "Comparison",
    "ControlMeasures",
    "Evaluation",
    "Judged",
    "PlainControllers",
    "Response",
    "RobustnessRow",
    "SizedTree",
    "StepResponse",
    "StepTest",
    "StressTest",
    "Success",
    "Tracking",
    "beside",
    "evaluate",
    "evaluate_control",
    "find_bench",
    "model_errors",
    "parameters_of",
    "plain_controllers",
    "robustness",
    "sample_starts",
    "size_curve",
    "smallest_within",
    "start_states",
    "step_response",
    "step_test",
    "stress",
    "with_parameters",
]
