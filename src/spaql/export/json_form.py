"""A controller, with memory or without, as JSON according to `controller.schema.json`, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import load_json, reading
from spaql.export.language import Source, Target
from spaql.export.machine import Limits, Machine
from spaql.export.played import Player
from spaql.kernels.controller import Floats
from spaql.policy import FeatureController, RuleTree
from spaql.policy.feature_controller_file import declaration_to, declared
from spaql.policy.tree_file import NODES, tree_from, tree_to

FORMAT = "spaql-controller"
VERSION = 1
SCHEMA = Path(__file__).with_name("controller.schema.json")
"""The schema of files of this version (JSON Schema 2020-12)."""


class Json(Target):
    """The tree as arrays, with its spaces and names, and what a controller with memory declares."""

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
    controller = machine.controller
    tree = controller.tree if isinstance(controller, FeatureController) else controller
    return {
        "format": FORMAT,
        "version": VERSION,
        "provenance": list(machine.provenance),
        "safe_action": None if machine.safe is None else list(machine.safe),
        "readings": _plain([list(ends) for ends in machine.ends]),
        "memory": declaration_to(controller) if isinstance(controller, FeatureController) else None,
        "tree": _tree_data(tree),
    }


def controller_from_json(path: str | os.PathLike[str]) -> RuleTree | FeatureController:
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
        tree = _tree_from(data["tree"])
        return tree if data["memory"] is None else declared(data["memory"], tree)


def _tree_data(tree: RuleTree) -> dict[str, Any]:
    data, arrays = tree_to(tree)
    lists = {name: _plain(array.tolist()) for name, array in arrays.items()}
    leaves, locks = (
        {name.removeprefix(prefix): x for name, x in lists.items() if name.startswith(prefix)}
        for prefix in ("leaves.", "locks.")
    )
    return data | {
        "leaves": {"kind": data["leaves"], **leaves},
        "nodes": {name: lists[name] for name in NODES},
        "combinations": lists.get("combinations", []),
        "locks": locks,
    }


def _plain(x: Any) -> Any:
    """Return numbers, or lists of them, with those that JSON does not have as text."""
    if isinstance(x, list):
        return [_plain(part) for part in x]
    return x if np.isfinite(x) else repr(x)


def _tree_from(data: Mapping[str, Any]) -> RuleTree:
    leaves = dict(data["leaves"])
    kind = leaves.pop("kind")
    arrays: dict[str, NDArray[Any]] = {
        name: np.array(data["nodes"][name], dtype) for name, dtype in NODES.items()
    }
    further = {"combinations": data["combinations"]}
    further |= {f"leaves.{name}": values for name, values in leaves.items()}
    further |= {f"locks.{name}": values for name, values in data["locks"].items()}
    for name, values in further.items():
        whole = name in ("leaves.number", "locks.row")
        arrays[name] = np.array(values, np.int64 if whole else np.float64)
    return tree_from({**data, "leaves": kind}, arrays)
