"""A rule tree as plain data and arrays, for the model file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.archive import is_tree, reading, typed
from spaql.errors import ArchiveError, SettingError
from spaql.policy.leaves import Choices, Constants, Laws, Leaves, SwitchingLaws
from spaql.policy.tree import Lock, RuleTree
from spaql.spaces import check_names, count_actions, describe_space, space_from, stored_names

NODES = dict.fromkeys(("feature", "left", "right", "leaf"), np.int32) | {"threshold": np.float64}
"""The arrays of a tree's nodes, and their types."""
_MOST_LEAVES = 2**22
"""Of a tree that is saved, with the rules that it shares written wherever they stand."""
_LEAVES: dict[str, tuple[type[Leaves], tuple[str, ...]]] = {
    "choices": (Choices, ("number",)),
    "constants": (Constants, ("value",)),
    "laws": (Laws, ("gain", "offset", "low", "high")),
    "switching laws": (SwitchingLaws, ("gain", "offset")),
}


def tree_to(tree: RuleTree) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description of a tree (see `tree_from`), in which each rule has one parent."""
    tree = with_own_rules(tree)
    kind = next(name for name, (leaves, _) in _LEAVES.items() if isinstance(tree.leaves, leaves))
    data = {
        "leaves": kind,
        "observation_space": describe_space(tree.observation_space),
        "action_space": describe_space(tree.action_space),
        "observations": list(check_names("observations", tree.observations)),
        "actions": list(check_names("actions", tree.actions)),
        "smallest": tree.smallest,
        "within": None if tree.within is None else describe_space(tree.within),
    }
    arrays = {name: getattr(tree, name) for name in NODES}
    arrays |= {f"leaves.{name}": getattr(tree.leaves, name) for name in _LEAVES[kind][1]}
    if len(tree.combinations):  # files of trees without them keep their bytes
        arrays["combinations"] = tree.combinations
    arrays["locks.low"] = np.array([lock.low for lock in tree.locks]).reshape(-1, tree.width)
    arrays["locks.high"] = np.array([lock.high for lock in tree.locks]).reshape(-1, tree.width)
    arrays["locks.row"] = np.array([lock.row for lock in tree.locks], np.int64)
    return data, arrays


def with_own_rules(tree: RuleTree) -> RuleTree:
    """Return the tree with a copy of each shared rule for each of its parents; leaves stay shared.

    What it takes to read or to print such a tree is bounded by the number of its nodes.
    """
    if is_tree(tree.left, tree.right, tree.feature >= 0, shared_leaves=True):
        return tree
    if tree.n_leaves > _MOST_LEAVES:
        raise SettingError(
            f"The tree has {tree.n_leaves:,} leaves with its shared rules written out, and at most "
            f"{_MOST_LEAVES:,} are saved: simplify it first."
        )
    rules = [0]
    for node in rules:  # which grows
        children = (int(tree.left[node]), int(tree.right[node]))
        rules += [child for child in children if tree.feature[child] >= 0]
    leaves = np.flatnonzero(tree.feature < 0)
    place = dict(zip(leaves.tolist(), range(len(rules), len(rules) + len(leaves)), strict=True))
    nodes = [*rules, *leaves.tolist()]
    after = iter(range(1, len(rules)))
    pairs = [
        [place[child] if child in place else next(after) for child in (int(tree.left[i]), int(tree.right[i]))]
        for i in rules
    ]
    left, right = np.array(pairs + [[-1, -1]] * len(leaves)).T
    kept = {name: getattr(tree, name)[nodes] for name in ("feature", "threshold", "leaf")}
    return dataclasses.replace(tree, left=left, right=right, **kept)


def nodes_from(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the arrays of a tree's nodes, refusing those of other types, and what is not a tree."""
    nodes = {name: typed(arrays[name], kind) for name, kind in NODES.items()}
    check_rules(nodes["feature"], nodes["left"], nodes["right"])
    return nodes


def check_rules(feature: NDArray[Any], left: NDArray[Any], right: NDArray[Any]) -> None:
    """Refuse nodes of a file in which a rule has two parents or none, or comes before its parent."""
    same = feature.shape == left.shape == right.shape == (feature.size,)
    if not same or not is_tree(left, right, feature >= 0, shared_leaves=True):
        raise ArchiveError("The rules in the file are not a tree: each has one parent, and comes after it.")


def tree_from(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> RuleTree:
    """Return the described tree; raises `ArchiveError` if the description is invalid."""
    with reading("rule tree"):
        make, names = _LEAVES[data["leaves"]]
        kind = np.int64 if make is Choices else np.float64
        table: dict[str, Any] = {name: np.array(typed(arrays[f"leaves.{name}"], kind)) for name in names}
        actions = space_from(data["action_space"])
        if make is SwitchingLaws and isinstance(actions, Discrete):
            table["start"] = int(actions.start)
        within = None if data["within"] is None else space_from(data["within"])
        if within is not None and not isinstance(within, Box):
            raise ArchiveError("The file bounds a tree by something else than a Box.")
        if len(data["actions"]) != count_actions(actions):  # otherwise default names would replace them
            raise ArchiveError("The file does not name the actions of its tree.")
        locks = zip(*(arrays[f"locks.{name}"] for name in ("low", "high", "row")), strict=True)
        return RuleTree(
            **nodes_from(arrays),
            leaves=make(**table),
            observation_space=space_from(data["observation_space"]),
            action_space=actions,
            observations=stored_names("observations", data["observations"]),
            actions=stored_names("actions", data["actions"]),
            smallest=bool(data["smallest"]),
            within=within,
            combinations=typed(arrays.get("combinations", np.empty(0)), np.float64),
            locks=tuple(Lock(low, high, int(row)) for low, high, row in locks),
        )
