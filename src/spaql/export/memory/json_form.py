"""A controller with memory as JSON according to `controller-with-memory.schema.json`, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import load_json, reading
from spaql.export.memory.check import Bools, MemoryTarget, Run
from spaql.export.memory.machine import MemoryMachine
from spaql.export.target_controller import Limits
from spaql.export.tree_data import tree_data, tree_from_data
from spaql.kernels.controller import Floats
from spaql.policy import FeatureController
from spaql.policy.feature_controller_file import declaration_to, declared

FORMAT = "spaql-controller-with-memory"
VERSION = 1
SCHEMA = Path(__file__).with_name("controller-with-memory.schema.json")
"""The schema of files of this version (JSON Schema 2020-12)."""


class JsonMemory(MemoryTarget):
    """The declaration of the controller, and the arrays of its tree."""

    name = "JSON"
    suffix = ".json"

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        controller = machine.controller
        data = {
            "format": FORMAT,
            "version": VERSION,
            "provenance": list(machine.provenance),
            "safe_action": None if machine.safe is None else list(machine.safe),
            "readings": [list(ends) for ends in machine.ends],
            "memory": declaration_to(controller),
            "tree": tree_data(controller.tree),
        }
        return {f"{name}.json": (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()}

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Read the controller back; returns the function that plays episodes."""
        (folder / f"{name}.json").write_bytes(files[f"{name}.json"])
        data = json.loads(files[f"{name}.json"])
        safe = data["safe_action"]
        low, high = (tuple(part) for part in zip(*data["readings"], strict=True))
        back = MemoryMachine(
            controller_from_json(folder / f"{name}.json"),
            machine.number,
            None if safe is None else tuple(safe),
            Limits(low, high, 0.0),
        )

        def run(resets: Bools, inputs: NDArray[Any]) -> tuple[Floats, Floats]:
            fresh = back.controller.new_memory(inputs.shape[1])
            memory, actions, states = fresh, [], []
            for starts, seen in zip(resets, inputs, strict=True):
                memory = np.where(starts[:, np.newaxis], fresh, memory)
                actions.append(back.sample(seen, memory)[0])
                states.append(memory)
            return np.array(actions), np.array(states)

        return run

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return "spaql.export.controller_from_json"


def controller_from_json(path: str | os.PathLike[str]) -> FeatureController:
    """Return the controller with memory of a JSON file; raises `ArchiveError` for any other file.

    Examples
    --------
    >>> controller_from_json("missing.json")
    Traceback (most recent call last):
    ...
    spaql.errors.ArchiveError: Cannot read missing.json: No such file or directory.
    """
    data = load_json(path, FORMAT, VERSION)
    with reading("controller with memory"):
        return declared(data["memory"], tree_from_data(data["tree"]))
