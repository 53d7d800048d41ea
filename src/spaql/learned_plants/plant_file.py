"""A learned plant as plain data and arrays, for files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.archive import Document, number, reading, typed
from spaql.errors import ArchiveError
from spaql.kernels.plantree.raw_model import RawPlant
from spaql.spaces import count_actions, describe_space, space_from, stored_names

if TYPE_CHECKING:
    from spaql.learned_plants.plant import PlantModel

_MOST = 2**53
_WHOLE = ("feature", "left", "right", "cell", "end_feature", "end_left", "end_right")
"""The arrays of a plant that hold integers."""


def plant_to(model: PlantModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a plant as plain data and arrays (see `plant_from`)."""
    data = {
        "kind": "plant",
        "name": model.name,
        "horizon": model.horizon,
        "steps": model.steps,
        "observation_space": describe_space(model.observation_space),
        "action_space": describe_space(model.action_space),
        "observations": list(model.observations),
        "actions": list(model.actions),
    }
    arrays = {f"plant.{name}": array for name, array in model.plant._asdict().items()}
    return data, arrays | {"samples": model.samples, "starts": model.starts, "seen": model.seen}


def _spaces(data: Mapping[str, Any]) -> tuple[Box, Box | Discrete]:
    """Return the observation space, which must be a vector, and the action space of a plant."""
    observations, actions = (space_from(data[f"{what}_space"]) for what in ("observation", "action"))
    if not isinstance(observations, Box) or len(observations.shape) != 1 or not observations.shape[0]:
        raise ArchiveError("The observations of the plant in the file are not a vector.")
    if len(data["actions"]) != count_actions(actions):  # else default names would be used
        raise ArchiveError("The file does not name the actions of its plant.")
    return observations, actions


def plant_from(document: Document, make: Callable[..., PlantModel]) -> PlantModel:
    """Return the plant of a document; raises `ArchiveError` if it does not hold one."""
    data = document.data
    arrays = document.arrays
    with reading("plant"):
        observations, actions = _spaces(data)
        parts = document.part("plant.")
        kinds = {name: np.int64 if name in _WHOLE else np.float64 for name in parts}
        return make(
            name=stored_names("plant", [data["name"]])[0],
            plant=RawPlant(**{name: np.array(typed(array, kinds[name])) for name, array in parts.items()}),
            observation_space=observations,
            action_space=actions,
            horizon=number(data, "horizon", 1, 2**31, whole=True),
            samples=np.array(typed(arrays["samples"], np.int64)),
            starts=np.array(typed(arrays["starts"], np.float64)),
            seen=np.array(typed(arrays["seen"], np.float64)),
            steps=number(data, "steps", 0, _MOST, whole=True),
            observations=stored_names("observations", data["observations"]),
            actions=stored_names("actions", data["actions"]),
        )
