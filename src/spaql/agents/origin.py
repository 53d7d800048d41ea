"""What a policy was made from, as links of a chain of hashes: plant, settings, model file, policy."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from spaql import archive
from spaql.agents.agent import Agent
from spaql.agents.agent_file import model_file
from spaql.agents.controller import Controller
from spaql.export.chain import Link, data_link, origin_link
from spaql.policy import FeatureController, RuleTree
from spaql.policy.feature_controller_file import feature_controller_to
from spaql.policy.tree_file import tree_to
from spaql.problems import Problem
from spaql.problems.plant_hash import UNKNOWN
from spaql.problems.registry import is_model_file
from spaql.problems.sources import FMU

_SETTINGS = ("algorithm", "module", "problem", "settings", "seed", "origin")
"""What a model file says of a training, or of how a controller was made."""


def origin_of(
    source: Agent | Controller, path: str | os.PathLike[str], policy: RuleTree | FeatureController
) -> list[Link]:
    """Return the links of a chain before those of an export (see `spaql.export.check_chain`).

    Parameters
    ----------
    source
        The agent or controller, as `spaql.load` returns it.
    path
        Its model file, or the run folder.
    policy
        Its rule tree, or controller with memory, that is exported.
    """
    described, arrays = (
        feature_controller_to(policy) if isinstance(policy, FeatureController) else tree_to(policy)
    )
    content = model_file(path).read_bytes()
    data = archive.loads(content).data
    return [
        data_link("plant", _plant(source.problem, compiled=bool(data["problem"]["compiled"]))),
        data_link("settings", {name: data[name] for name in _SETTINGS if name in data}),
        origin_link("model file", content),
        origin_link("policy", archive.dumps(described, arrays)),
    ]


def _plant(problem: Problem, *, compiled: bool) -> dict[str, Any]:
    """Return the hashes of a plant as it is found now; or why there are none.

    A model file names its plant, and does not hold it.
    """
    named = {"runs_on": problem.runs_on}
    if problem.dynamics is not None:
        equations = problem.plant_now
        if unknown := [part for part, found in equations.items() if found == UNKNOWN]:
            return named | {"not_hashed": f"the content of {', '.join(unknown)} cannot be followed"}
        return named | {"equations": equations}
    if compiled:
        return named | {"not_hashed": "the module that defines the equations was not imported"}
    env = problem.env
    if problem.log is not None:
        files = [Path(file) for file in problem.log["files"]]
    elif env == FMU:
        files = [Path(str(problem.options.get("fmu")))]
    elif env is not None and is_model_file(env):  # of a learned plant
        files = [Path(env)]
    else:
        return named | {"not_hashed": "the environment is a program, of which the name is kept"}
    absent = [file.name for file in files if not file.is_file()]
    if absent or not files:
        return named | {
            "not_hashed": f"the data are not found here: {', '.join(absent) or 'no file is named'}"
        }
    return named | {"files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}}
