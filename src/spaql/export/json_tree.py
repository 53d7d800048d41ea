"""A controller as JSON according to `rule-tree.schema.json`, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from spaql.archive import load_json, reading
from spaql.export.equivalence import Run, Target
from spaql.export.target_controller import MachineController
from spaql.policy import Choices, Constants, Laws, Leaves, RuleTree, SwitchingLaws
from spaql.spaces import describe_space, space_from

FORMAT = "spaql-rule-tree"
VERSION = 1
SCHEMA = Path(__file__).with_name("rule-tree.schema.json")
"""The schema of files of this version (JSON Schema 2020-12)."""
_KINDS: dict[str, tuple[type[Any], dict[str, type[Any]]]] = {
    "choices": (Choices, {"number": np.int64}),
    "constants": (Constants, {"value": np.float64}),
    "laws": (Laws, dict.fromkeys(("gain", "offset", "low", "high"), np.float64)),
    "switching laws": (SwitchingLaws, dict.fromkeys(("gain", "offset"), np.float64)),
}
_NODES = ("feature", "threshold", "left", "right", "leaf")


class JsonTree(Target):
    """The arrays of the tree, its spaces and names."""

    name = "JSON"
    suffix = ".json"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        tree = controller.exact
        data = {
            "format": FORMAT,
            "version": VERSION,
            "provenance": list(controller.provenance),
            "observation_space": describe_space(tree.observation_space),
            "action_space": describe_space(tree.action_space),
            "observations": list(tree.observations),
            "actions": list(tree.actions),
            "safe_action": list(controller.safe),
            "smallest": tree.smallest,
            "leaves": _leaves(tree.leaves),
            "nodes": {part: _plain(getattr(tree, part).tolist()) for part in _NODES},
        }
        if len(tree.combinations):  # files of trees without them keep their bytes
            data["combinations"] = tree.combinations.tolist()
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


def _plain(x: Any) -> Any:
    """Return numbers, or lists of them, with those that JSON does not have as text."""
    if isinstance(x, list):
        return [_plain(part) for part in x]
    return x if np.isfinite(x) else repr(x)


def _leaves(leaves: Leaves) -> dict[str, Any]:
    kind = next(name for name, (made, _) in _KINDS.items() if isinstance(leaves, made))
    return {"kind": kind} | {part: _plain(getattr(leaves, part).tolist()) for part in _KINDS[kind][1]}


def tree_from_json(path: str | os.PathLike[str]) -> RuleTree:
    """Return the rule tree of a JSON file; raises `ArchiveError` for any other file.

    Examples
    --------
    >>> tree_from_json("missing.json")
    Traceback (most recent call last):
    ...
    spaql.errors.ArchiveError: Cannot read missing.json: No such file or directory.
    """
    data = load_json(path, FORMAT, VERSION)
    with reading("rule tree"):
        made, parts = _KINDS[data["leaves"]["kind"]]
        table: dict[str, Any] = {part: np.array(data["leaves"][part], kind) for part, kind in parts.items()}
        actions = space_from(data["action_space"])
        if made is SwitchingLaws and isinstance(actions, Discrete):
            table["start"] = int(actions.start)
        nodes = {part: data["nodes"][part] for part in _NODES}
        return RuleTree(
            **nodes | {"threshold": [float(t) for t in nodes["threshold"]]},
            leaves=made(**table),
            observation_space=space_from(data["observation_space"]),
            action_space=actions,
            observations=tuple(map(str, data["observations"])),
            actions=tuple(map(str, data["actions"])),
            smallest=bool(data["smallest"]),
            combinations=np.array(data.get("combinations", []), np.float64),
        )
