"""Rule trees as data that JSON can hold, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from spaql.archive import reading
from spaql.policy import Choices, Constants, Laws, Leaves, RuleTree, SwitchingLaws
from spaql.policy.tree_file import check_rules, with_own_rules
from spaql.spaces import check_names, describe_space, space_from, stored_names

_KINDS: dict[str, tuple[type[Any], dict[str, type[Any]]]] = {
    "choices": (Choices, {"number": np.int64}),
    "constants": (Constants, {"value": np.float64}),
    "laws": (Laws, dict.fromkeys(("gain", "offset", "low", "high"), np.float64)),
    "switching laws": (SwitchingLaws, dict.fromkeys(("gain", "offset"), np.float64)),
}
_NODES = ("feature", "threshold", "left", "right", "leaf")


def tree_data(tree: RuleTree, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a tree as data that JSON can hold, with more of it after its names."""
    tree = with_own_rules(tree)
    data = {
        "observation_space": describe_space(tree.observation_space),
        "action_space": describe_space(tree.action_space),
        "observations": list(check_names("observations", tree.observations)),
        "actions": list(check_names("actions", tree.actions)),
        **(more or {}),
        "smallest": tree.smallest,
        "leaves": _leaves(tree.leaves),
        "nodes": {part: _plain(getattr(tree, part).tolist()) for part in _NODES},
    }
    if len(tree.combinations):  # files of trees without them keep their bytes
        data["combinations"] = tree.combinations.tolist()
    return data


def _plain(x: Any) -> Any:
    """Return numbers, or lists of them, with those that JSON does not have as text."""
    if isinstance(x, list):
        return [_plain(part) for part in x]
    return x if np.isfinite(x) else repr(x)


def _leaves(leaves: Leaves) -> dict[str, Any]:
    kind = next(name for name, (made, _) in _KINDS.items() if isinstance(leaves, made))
    return {"kind": kind} | {part: _plain(getattr(leaves, part).tolist()) for part in _KINDS[kind][1]}


def tree_from_data(data: Mapping[str, Any]) -> RuleTree:
    """Return the rule tree of data that `tree_data` returned; raises `ArchiveError` for any other."""
    with reading("rule tree"):
        made, parts = _KINDS[data["leaves"]["kind"]]
        table: dict[str, Any] = {part: np.array(data["leaves"][part], kind) for part, kind in parts.items()}
        actions = space_from(data["action_space"])
        if made is SwitchingLaws and isinstance(actions, Discrete):
            table["start"] = int(actions.start)
        nodes = {part: data["nodes"][part] for part in _NODES}
        check_rules(*(np.array(nodes[part], np.int64) for part in ("feature", "left", "right")))
        return RuleTree(
            **nodes | {"threshold": [float(t) for t in nodes["threshold"]]},
            leaves=made(**table),
            observation_space=space_from(data["observation_space"]),
            action_space=actions,
            observations=stored_names("observations", data["observations"]),
            actions=stored_names("actions", data["actions"]),
            smallest=bool(data["smallest"]),
            combinations=np.array(data.get("combinations", []), np.float64),
        )
