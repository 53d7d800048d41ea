"""A controller, with memory or without, as JSON according to `controller.schema.json`, and back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from spaql.archive import load_json, reading
from spaql.controllers import Controller
from spaql.controllers.file import NODES, controller_from, controller_to
from spaql.export.language import Source, Target
from spaql.export.machine import Limits, Machine
from spaql.export.running import Player
from spaql.kernels.numerics import Floats

FORMAT = "spaql-controller"
VERSION = 1
SCHEMA = Path(__file__).with_name("controller.schema.json")
"""The schema of files of this version (JSON Schema 2020-12)."""


class Json(Target):
    """What a controller declares, and its rules and laws as arrays."""

    name = "JSON"
    suffix = ".json"

    def text(self, source: Source) -> str:
        """Return the content of the file."""
        return json.dumps(controller_data(source.machine), indent=1, allow_nan=False) + "\n"

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the controller that is read back."""
        file = folder / f"{source.name}.json"
        data = json.loads(file.read_bytes())
        safe = data["safe_action"]
        low, high = np.array(data["readings"], np.float64).T.tolist()
        machine = Machine(
            controller_from_json(file),
            source.machine.number,
            None if safe is None else tuple(safe),
            Limits(tuple(low), tuple(high), 0.0),
        )

        def play(samples: Floats) -> Floats:
            if not machine.remembers:
                return machine.wanted(samples[:, 1:])
            fresh = memory = machine.arrays.new_memories(len(samples))
            played = []
            for rows in samples.swapaxes(0, 1):
                memory = np.where(rows[:, :1] > 0, fresh, memory)
                actions = machine.sample(rows[:, 1:], memory)[0]
                played.append(np.hstack([actions, memory]))
            return np.stack(played, axis=1)

        return play

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return "spaql.export.controller_from_json"


def controller_data(machine: Machine) -> dict[str, Any]:
    """Return the content of a file."""
    data, arrays = controller_to(machine.controller)
    return {
        "format": FORMAT,
        "version": VERSION,
        "provenance": list(machine.provenance),
        "safe_action": None if machine.safe is None else list(machine.safe),
        "readings": _plain([list(ends) for ends in machine.ends]),
        "controller": data,
        "arrays": {name: _plain(array.tolist()) for name, array in arrays.items()},
    }


def controller_from_json(path: str | os.PathLike[str]) -> Controller:
    """Return the controller of a JSON file; raises `ArchiveError` for any other file.

    Examples
    --------
    >>> controller_from_json("missing.json")
    Traceback (most recent call last):
    ...
    spaql.errors.ArchiveError: Cannot read missing.json: No such file or directory.
    """
    data = load_json(path, FORMAT, VERSION)
    with reading("controller"):
        kinds = NODES | {"locks.row": np.int64}
        arrays = {name: np.array(x, kinds.get(name, np.float64)) for name, x in data["arrays"].items()}
        return controller_from(data["controller"], arrays)


def _plain(x: Any) -> Any:
    """Return numbers, or lists of them, with those that JSON does not have as text."""
    if isinstance(x, list):
        return [_plain(part) for part in x]
    return x if np.isfinite(x) else repr(x)
