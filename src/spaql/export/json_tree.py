"""A controller as JSON according to `rule-tree.schema.json`, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from spaql.archive import load_json
from spaql.export.equivalence import Run, Target
from spaql.export.memory.json_form import JsonMemory
from spaql.export.target_controller import MachineController
from spaql.export.tree_data import tree_data, tree_from_data
from spaql.policy import RuleTree

FORMAT = "spaql-rule-tree"
VERSION = 1
SCHEMA = Path(__file__).with_name("rule-tree.schema.json")
"""The schema of files of this version (JSON Schema 2020-12)."""


class JsonTree(Target):
    """The arrays of the tree, its spaces and names."""

    name = "JSON"
    suffix = ".json"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        tree = controller.exact
        about = {"format": FORMAT, "version": VERSION, "provenance": list(controller.provenance)}
        data = about | tree_data(tree, {"safe_action": list(controller.safe)})
        return {f"{name}.json": (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()}

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Read the tree back; returns the function from inputs to actions."""
        (folder / f"{name}.json").write_bytes(files[f"{name}.json"])
        data = json.loads(files[f"{name}.json"])
        read = tree_from_json(folder / f"{name}.json")
        back = MachineController(read, read, controller.number, tuple(data["safe_action"]))
        return back.wanted

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return "spaql.export.tree_from_json"

    def with_memory(self) -> JsonMemory:
        """Return the target for controllers with memory."""
        return JsonMemory()


def tree_from_json(path: str | os.PathLike[str]) -> RuleTree:
    """Return the rule tree of a JSON file; raises `ArchiveError` for any other file.

    Examples
    --------
    >>> tree_from_json("missing.json")
    Traceback (most recent call last):
    ...
    spaql.errors.ArchiveError: Cannot read missing.json: No such file or directory.
    """
    return tree_from_data(load_json(path, FORMAT, VERSION))
