"""Learned plants: models that are shown, saved, judged and played in by themselves."""

import gymnasium

from spaql.model.environment import ENVIRONMENT, PlantEnv, simulator
from spaql.model.json_form import read_json, write_json
from spaql.model.plant_model import PlantModel, Prediction
from spaql.model.prediction_errors import PredictionErrors, Recorded, prediction_errors
from spaql.model.text import end_lines, law_lines, text

__all__ = [
    "ENVIRONMENT",
    "PlantEnv",
    "PlantModel",
    "Prediction",
    "PredictionErrors",
    "Recorded",
    "end_lines",
    "law_lines",
    "prediction_errors",
    "read_json",
    "simulator",
    "text",
    "write_json",
]

gymnasium.register(ENVIRONMENT, entry_point="spaql.model.environment:simulator")
