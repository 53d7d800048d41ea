"""The folder of a run: settings for people and tools, the history as a table, the model file."""

from __future__ import annotations

import dataclasses
import json
import platform
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaql import archive
from spaql.agents.agent_file import MODEL_FILE, agent_from, identity, load
from spaql.agents.problem_file import problem_to, read_back
from spaql.archive import remove_leftovers, write_together
from spaql.errors import ChangedPlantWarning, SettingError
from spaql.problems.plant_hash import change_text

if TYPE_CHECKING:
    from spaql.agents.agent import Agent

CHECKPOINT_FILE = "checkpoint.spaql"
"""The file from which an unfinished run is resumed."""
_PACKAGES = ("spaql", "gymnasium", "numba", "numpy")


def versions(*more: str) -> dict[str, str]:
    """Return the versions of the packages that a result depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in (*_PACKAGES, *more)}


def save_run(agent: Agent, folder: Path) -> None:
    """Write `settings.json`, `history.csv` and `policy.spaql`; the same run produces the same bytes.

    If the disk is full, all three stay unchanged. The model file is read back and must act as the agent.
    """
    problem, _ = problem_to(agent.problem)
    settings = {
        **identity(type(agent)),
        "problem": problem,
        "settings": agent.settings.as_data(),
        "seed": agent.seed,
        "iterations": agent.iterations,
        "versions": versions(),
    }
    write_together(
        {
            folder / MODEL_FILE: agent.to_bytes(),
            folder / "settings.json": (json.dumps(settings, indent=2) + "\n").encode(),
            folder / "history.csv": agent.history.to_csv().encode(),
        }
    )
    read_back(agent, agent_from(archive.load(folder / MODEL_FILE)))
    (folder / CHECKPOINT_FILE).unlink(missing_ok=True)
    remove_leftovers(folder)


def resumed(agent: Agent, folder: Path, *, same_seed: bool) -> Agent:
    """Return the agent of a run folder for further training, if it was made like `agent`."""
    files = [folder / name for name in (CHECKPOINT_FILE, MODEL_FILE) if (folder / name).exists()]
    if not files:
        raise SettingError(f"{folder} contains no run to resume.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChangedPlantWarning)  # it is refused below
        trained: Agent = load(files[0], parallel=agent.problem.parallel)
    if (there := trained.learner_type.name) != (asked := agent.learner_type.name):
        raise SettingError(
            f"{folder} is a run of {there}, not {asked}: resume it with that algorithm.",
            settings={"algo": there},
        )
    if trained.problem.name != agent.problem.name:
        raise SettingError(f"{folder} is a run of {trained.problem.name}, not {agent.problem.name}.")
    if changed := change_text(agent.problem.name, trained.problem.plant, agent.problem.plant):
        raise SettingError(
            f"The run in {folder} cannot be resumed. {changed} Restore the plant, or train in another folder."
        )
    present = _description(trained)
    wanted = _description(agent)
    if not same_seed:
        wanted["seed"] = trained.seed
    other = [
        f"{name} {present.get(name)}, not {wanted.get(name)}"
        for name in {**present, **wanted}
        if _in_order(present.get(name)) != _in_order(wanted.get(name))
    ]
    if other:
        raise SettingError(
            f"The run in {folder} has {'; '.join(other)}: give the values it was started with."
        )
    return trained


def _description(agent: Agent) -> dict[str, Any]:
    """Return what a training is started with."""
    problem, _ = problem_to(agent.problem)
    problem.pop("plant", None)
    return {**problem, **dataclasses.asdict(agent.settings), "seed": agent.seed}


def _in_order(value: Any) -> Any:
    """Return mappings as lists of pairs: their order is data, which dictionaries do not compare."""
    return [(k, _in_order(v)) for k, v in value.items()] if isinstance(value, Mapping) else value
