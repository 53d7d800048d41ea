"""A controller with memory as plain data and arrays, for the model file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.archive import number, reading
from spaql.errors import ArchiveError
from spaql.policy.feature_controller import FeatureController
from spaql.policy.feature_table import feature_from, feature_to
from spaql.policy.tree import RuleTree
from spaql.policy.tree_file import tree_from, tree_to
from spaql.spaces import describe_space, space_from, stored_names

_LIMITS = ("rate_limit", "dead_band", "start", "hysteresis")
_MOST_FEATURES = 1000


def feature_controller_to(controller: FeatureController) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description of a controller with memory (see `feature_controller_from`)."""
    tree, arrays = tree_to(controller.tree)
    return {"tree": tree, "memory": declaration_to(controller)}, arrays


def feature_controller_from(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> FeatureController:
    """Return the described controller; raises `ArchiveError` if the description is invalid."""
    with reading("controller with memory"):
        return declared(data["memory"], tree_from(data["tree"], arrays))


def declaration_to(controller: FeatureController) -> dict[str, Any]:
    """Return all of a controller but its tree, as data that JSON can hold: no limit is null."""
    limits = {name: [None if x == math.inf else x for x in getattr(controller, name)] for name in _LIMITS}
    return {
        "features": [feature_to(feature) for feature in controller.features],
        "observation_space": describe_space(controller.observation_space),
        "action_space": describe_space(controller.action_space),
        "observations": list(controller.observations),
        "actions": list(controller.actions),
        "sample_time": controller.sample_time,
        "form": controller.form,
        **limits,
    }


def declared(data: Mapping[str, Any], tree: RuleTree) -> FeatureController:
    """Return the controller of a declaration and a tree."""
    seen, done = (space_from(data[name]) for name in ("observation_space", "action_space"))
    if not (isinstance(seen, Box) and isinstance(done, Box)):
        raise ArchiveError("The file has a controller with memory for something else than two Boxes.")
    if len(data["features"]) > _MOST_FEATURES:
        raise ArchiveError(f"The file has a controller with more than {_MOST_FEATURES} features.")
    stated: dict[str, Any] = {name: tuple(_limit(x) for x in data[name]) for name in _LIMITS}
    stated |= {name: stored_names(name, data[name]) for name in ("observations", "actions")}
    if not all(stated.values()):  # otherwise defaults would replace them
        raise ArchiveError("The file does not state the names and limits of its controller.")
    return FeatureController(
        tuple(feature_from(one) for one in data["features"]),
        tree,
        seen,
        done,
        sample_time=number(data, "sample_time"),
        form=str(data["form"]),
        **stated,
    )


def _limit(x: Any) -> float:
    """Return a limit of a file, in which null is none."""
    return math.inf if x is None else float(number({"A limit": x}, "A limit"))
