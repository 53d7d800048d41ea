"""Evaluation: fresh episodes, stress tests, robustness, measures of a closed loop, sizes."""

from spaql.evaluation.beside import ClassicalComparison, Judged, PlainControllers, beside, plain_controllers
from spaql.evaluation.control import (
    Actuator,
    ControlMeasures,
    StepResponse,
    Tracking,
    evaluate_control,
    step_response,
)
from spaql.evaluation.episodes import evaluate
from spaql.evaluation.model_errors import PredictionErrors, model_errors, prediction_errors
from spaql.evaluation.robustness import RobustnessRow, parameters_of, robustness, with_parameters
from spaql.evaluation.size_curve import SizedTree, size_curve, smallest_within
from spaql.evaluation.step_test import Response, StepTest, step_test
from spaql.evaluation.stress import Bench, StressTest, Success, find_bench, sample_starts, stress
from spaql.simulate import Evaluation

__all__ = [
    "Actuator",
    "Bench",
    "ClassicalComparison",
    "ControlMeasures",
    "Evaluation",
    "Judged",
    "PlainControllers",
    "PredictionErrors",
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
    "prediction_errors",
    "robustness",
    "sample_starts",
    "size_curve",
    "smallest_within",
    "step_response",
    "step_test",
    "stress",
    "with_parameters",
]
