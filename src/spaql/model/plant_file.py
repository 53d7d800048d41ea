"""A learned plant as plain data and arrays, for the model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.archive import Document, number, reading
from spaql.errors import ArchiveError
from spaql.kernels.raw_plants import RawPlant
from spaql.model.plant_model import PlantModel
from spaql.spaces import count_actions, describe_space, space_from

_MOST = 2**53
_WHOLE = ("feature", "left", "right", "cell", "end_feature", "end_left", "end_right")
"""The arrays of a plant that hold whole numbers."""


def plant_to(model: PlantModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Describe a model (see `plant_from`)."""
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


def plant_of(parts: Mapping[str, Any]) -> RawPlant:
    """Make a plant from its arrays, or lists, by name."""
    arrays: dict[str, Any] = {
        name: np.array(parts[name], np.int64 if name in _WHOLE else np.float64) for name in RawPlant._fields
    }
    return RawPlant(**arrays)


def plant_from(document: Document) -> PlantModel:
    """Build the model that was described; raises `ArchiveError` if there can be none."""
    data, arrays = document.data, document.arrays
    with reading("plant"):
        observations, actions = (space_from(data[f"{what}_space"]) for what in ("observation", "action"))
        if not isinstance(observations, Box) or len(observations.shape) != 1:
            raise ArchiveError("The file has a plant whose observations are no vector.")
        if len(data["actions"]) != count_actions(actions):  # else as many names would be made up
            raise ArchiveError("The file does not name the actions of its plant.")
        parts = document.part("plant.")
        if any(array.dtype.kind not in "iu" for array in (arrays["samples"], *(parts[n] for n in _WHOLE))):
            raise ArchiveError("The file has other numbers where whole ones of its plant should be.")
        return PlantModel(
            name=str(data["name"]),
            plant=plant_of(parts),
            observation_space=observations,
            action_space=actions,
            horizon=number(data, "horizon", 1, 2**31, whole=True),
            steps=number(data, "steps", 0, _MOST, whole=True),
            samples=np.array(arrays["samples"], np.int64),
            starts=np.array(arrays["starts"], np.float64),
            seen=np.array(arrays["seen"], np.float64),
            observations=tuple(map(str, data["observations"])),
            actions=tuple(map(str, data["actions"])),
        )
