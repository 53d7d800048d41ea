"""A controller as plain data and arrays, for the model file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.archive import is_tree, number, reading, typed
from spaql.controllers.controller import Controller
from spaql.controllers.feature_table import feature_from, feature_to
from spaql.controllers.features import Feature
from spaql.controllers.laws import Laws
from spaql.controllers.rules import Lock
from spaql.errors import ArchiveError, SettingError
from spaql.spaces import check_names, count_actions, describe_space, space_from, stored_names

NODES = dict.fromkeys(("feature", "left", "right", "leaf"), np.int32) | {"threshold": np.float64}
"""The arrays of a tree's nodes, and their types."""
_MOST_LEAVES = 2**22
"""Of a tree that is saved, with the rules that it shares written wherever they stand."""
_LIMITS = ("rate_limit", "dead_band", "start", "hysteresis")
_MOST_FEATURES = 1000


def controller_to(controller: Controller) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description of a controller (see `controller_from`), in which each rule has one parent."""
    controller = with_own_rules(controller)
    data = {
        "observation_space": describe_space(controller.observation_space),
        "action_space": describe_space(controller.action_space),
        "observations": list(check_names("observations", controller.observations)),
        "actions": list(check_names("actions", controller.actions)),
        "features": [feature_to(feature) for feature in controller.features],
        "memory": memory_to(controller),
        "smallest": controller.smallest,
        "within": None if controller.within is None else describe_space(controller.within),
    }
    arrays = {name: getattr(controller, name) for name in NODES}
    arrays["laws.offset"] = controller.laws.offset
    for name, array in (("laws.gain", controller.laws.gain), ("combinations", controller.combinations)):
        if array.any():
            arrays[name] = array
    arrays["locks.low"] = np.array([lock.low for lock in controller.locks]).reshape(-1, controller.width)
    arrays["locks.high"] = np.array([lock.high for lock in controller.locks]).reshape(-1, controller.width)
    arrays["locks.row"] = np.array([lock.row for lock in controller.locks], np.int64)
    return data, arrays


def memory_to(controller: Controller) -> dict[str, Any] | None:
    """Return the sample time, form and limits of a controller with memory as plain data: no limit is null."""
    if not controller.remembers:
        return None
    limits = {name: [None if x == math.inf else x for x in getattr(controller, name)] for name in _LIMITS}
    return {"sample_time": controller.sample_time, "form": controller.form, **limits}


def memory_from(data: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the fields of a controller that `memory_to` wrote."""
    if data is None:
        return {}
    limits = {name: tuple(_limit(x) for x in data[name]) for name in _LIMITS}
    if not all(limits.values()):  # otherwise defaults would replace them
        raise ArchiveError("The file does not state the limits of its controller.")
    return {"sample_time": number(data, "sample_time"), "form": str(data["form"]), **limits}


def features_from(data: Sequence[Any]) -> tuple[Feature, ...]:
    """Return the features of a file."""
    if len(data) > _MOST_FEATURES:
        raise ArchiveError(f"The file has a controller with more than {_MOST_FEATURES} features.")
    return tuple(feature_from(feature) for feature in data)


def _limit(x: Any) -> float:
    """Return a limit of a file, in which null is none."""
    return math.inf if x is None else float(number({"A limit": x}, "A limit"))


def with_own_rules(tree: Controller) -> Controller:
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


def controller_from(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Controller:
    """Return the described controller; raises `ArchiveError` if the description is invalid."""
    with reading("controller"):
        actions = space_from(data["action_space"])
        observed = space_from(data["observation_space"])
        within = None if data["within"] is None else space_from(data["within"])
        if within is not None and not isinstance(within, Box):
            raise ArchiveError("The file bounds a controller by something else than a Box.")
        names: dict[str, Any] = {name: stored_names(name, data[name]) for name in ("observations", "actions")}
        dims = int(np.prod(observed.shape or (1,)))
        if (len(names["observations"]), len(names["actions"])) != (dims, count_actions(actions)):
            raise ArchiveError("The file does not name the observations and actions of its controller.")
        features = features_from(data["features"])
        offset = np.array(typed(arrays["laws.offset"], np.float64))
        inputs = len(features) or dims
        if "laws.gain" in arrays:
            gain = np.array(typed(arrays["laws.gain"], np.float64))
        else:
            gain = np.broadcast_to(0.0, (*offset.shape, inputs))
        locks = zip(*(arrays[f"locks.{name}"] for name in ("low", "high", "row")), strict=True)
        return Controller(
            **nodes_from(arrays),
            laws=Laws(gain, offset),
            observation_space=observed,
            action_space=actions,
            **names,
            features=features,
            **memory_from(data["memory"]),
            smallest=bool(data["smallest"]),
            within=within,
            combinations=typed(arrays.get("combinations", np.empty(0)), np.float64),
            locks=tuple(Lock(low, high, int(row)) for low, high, row in locks),
        )
