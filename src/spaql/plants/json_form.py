"""A learned plant as JSON according to `plant.schema.json`, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spaql.archive import load_json, reading, write_atomically
from spaql.errors import ArchiveError
from spaql.plants.plant import PlantModel
from spaql.plants.plant_file import declared_in, plant_of, plant_to
from spaql.spaces import describe_space

FORMAT = "spaql-plant"
VERSION = 1
SCHEMA = Path(__file__).with_name("plant.schema.json")
"""The schema of files of this version (JSON Schema 2020-12)."""
_NODES = ("feature", "threshold", "left", "right", "cell")
_ENDS = ("feature", "threshold", "left", "right", "chance", "score")
_BOX = ("centre", "axes", "low", "high")


def write_json(model: PlantModel, path: str | os.PathLike[str]) -> None:
    """Write a plant as JSON, after reading it back and comparing it.

    Parameters
    ----------
    model
        The plant.
    path
        The file.

    Examples
    --------
    >>> import spaql, tempfile
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> model = agent.learn(total_timesteps=600, progress_bar=False).model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(model, f"{folder}/plant.json")
    ...     read_json(f"{folder}/plant.json").n_cells == model.n_cells
    True
    """
    content = (json.dumps(_data(model), indent=1, allow_nan=False) + "\n").encode()
    data, arrays = plant_to(model)
    again, others = plant_to(_model(json.loads(content)))
    if data != again or any(others[name].tobytes() != array.tobytes() for name, array in arrays.items()):
        raise ArchiveError("The plant differs when its JSON is read back, so no file is written.")
    write_atomically(path, content)


def read_json(path: str | os.PathLike[str]) -> PlantModel:
    """Return the plant of a JSON file; raises `ArchiveError` for any other file."""
    data = load_json(path, FORMAT, VERSION)
    with reading("plant"):
        return _model(data)


def _data(model: PlantModel) -> dict[str, Any]:
    plant = model.plant
    dims = model.dims
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "steps": model.steps,
        "horizon": model.horizon,
        "observation_space": describe_space(model.observation_space),
        "action_space": describe_space(model.action_space),
        "observations": list(model.observations),
        "actions": list(model.actions),
        "inputs": list(model.inputs),
        "scale": plant.scale.tolist(),
        "nodes": {part: getattr(plant, part).tolist() for part in _NODES},
        "cells": [
            {
                "samples": int(model.samples[i]),
                "offset": plant.law[i, :, 0].tolist(),
                "observation": plant.law[i, :, 1 : 1 + dims].tolist(),
                "input": plant.law[i, :, 1 + dims :].tolist(),
                **{part: getattr(plant, part)[i].tolist() for part in _BOX},
            }
            for i in range(model.n_cells)
        ],
        "rewards": dict(zip(("low", "high", "at_end"), plant.rewards.tolist(), strict=True)),
        "ends": {part: getattr(plant, f"end_{part}").tolist() for part in _ENDS},
        "seen": dict(zip(("low", "high"), model.seen.tolist(), strict=True)),
        "starts": model.starts.tolist(),
    }


def _model(data: Mapping[str, Any]) -> PlantModel:
    cells = data["cells"]
    law = [
        np.concatenate([np.array(cell["offset"])[:, np.newaxis], cell["observation"], cell["input"]], axis=1)
        for cell in cells
    ]
    parts: dict[str, Any] = {
        **{part: data["nodes"][part] for part in _NODES},
        "law": np.array(law),
        **{part: [cell[part] for cell in cells] for part in _BOX},
        "scale": data["scale"],
        "rewards": [data["rewards"][part] for part in ("low", "high", "at_end")],
        **{f"end_{part}": data["ends"][part] for part in _ENDS},
    }
    return PlantModel(
        plant=plant_of(parts),
        samples=np.array([cell["samples"] for cell in cells], np.int64),
        starts=np.array(data["starts"], np.float64),
        seen=np.array([data["seen"][part] for part in ("low", "high")], np.float64),
        **declared_in(data),
    )
