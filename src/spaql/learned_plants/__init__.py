"""Learned plants: piecewise-affine models to read, save, compare with data, and simulate."""

import gymnasium

from spaql.learned_plants.environment import ENVIRONMENT, PlantEnv, simulator
from spaql.learned_plants.plant import PlantModel, Prediction
from spaql.learned_plants.prediction_errors import PredictionErrors, prediction_errors
from spaql.learned_plants.text import end_lines, law_lines, text

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

gymnasium.register(ENVIRONMENT, entry_point="spaql.learned_plants.environment:simulator")
