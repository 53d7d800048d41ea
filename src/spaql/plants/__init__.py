"""Learned plants: piecewise-affine models to read, save, compare with data, and simulate."""

import gymnasium

from spaql.plants.environment import ENVIRONMENT, PlantEnv, simulator
from spaql.plants.plant import PlantModel, Prediction
from spaql.plants.prediction_errors import PredictionErrors, prediction_errors
from spaql.plants.text import end_lines, law_lines, text

__all__ = [
    "ENVIRONMENT",
    "PlantEnv",
    "PlantModel",
    "Prediction",
    "PredictionErrors",
    "end_lines",
    "law_lines",
    "prediction_errors",
    "simulator",
    "text",
]

gymnasium.register(ENVIRONMENT, entry_point="spaql.plants.environment:simulator")
