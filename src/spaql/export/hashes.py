"""Hashes at the head of exported code: of the controller, and of the plant that it is for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from spaql import archive
from spaql.errors import SettingError
from spaql.policy import FeatureController, RuleTree
from spaql.policy.feature_controller_file import feature_controller_to
from spaql.policy.resolve import PathLike
from spaql.policy.tree_file import tree_to
from spaql.problems import Problem
from spaql.problems.content import sha256

_LINE = re.compile(rb"\b(controller|plant) sha256 ([0-9a-f]{64})\b")


def hashes_of(controller: RuleTree | FeatureController, problem: Problem | None) -> dict[str, str]:
    """Return the SHA-256 of a controller and, if it has one, that of its plant, by these names."""
    if isinstance(controller, FeatureController):
        content = archive.dumps(*feature_controller_to(controller))
    else:
        content = archive.dumps(*tree_to(controller))
    found = {"controller": hashlib.sha256(content).hexdigest()}
    plant = {} if problem is None else problem.plant_now or problem.plant
    return found | ({"plant": sha256(sorted(plant.items()))} if plant else {})


def hash_lines(controller: RuleTree | FeatureController, problem: Problem | None) -> list[str]:
    """Return lines for the head of exported code, with its hashes."""
    return [f"{name} sha256 {digest}" for name, digest in hashes_of(controller, problem).items()]


def difference(path: PathLike, hashes: Mapping[str, str]) -> str:
    """Return in what the hashes at the head of exported code differ from others; empty if they do not."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}.") from error
    kept = {name.decode(): digest.decode() for name, digest in reversed(_LINE.findall(content))}  # the first
    if not kept:
        return "it has no hashes"
    texts = (
        f"the hash of its {name} is {kept[name][:16]}" if name in kept else f"it has no hash of a {name}"
        for name in {**kept, **hashes}
        if kept.get(name) != hashes.get(name)
    )
    return ", and ".join(texts)
