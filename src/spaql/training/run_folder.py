"""The folder of a run: settings for people and tools, the history as a table, the model file."""

from __future__ import annotations

import dataclasses
import json
import platform
from importlib.metadata import version
from pathlib import Path

from spaql.archive import write_atomically
from spaql.training.agent import MODEL_FILE, Agent
from spaql.training.problem_file import problem_to

_PACKAGES = ("spaql", "gymnasium", "numba", "numpy")


def save_run(agent: Agent, folder: Path) -> None:
    """Write `settings.json`, `history.csv` and `policy.spaql`; the same run gives the same bytes."""
    problem, _ = problem_to(agent.problem)
    settings = {
        "algorithm": agent.learner_type.name,
        "problem": problem,
        "settings": dataclasses.asdict(agent.settings),
        "seed": agent.seed,
        "iterations": len(agent.history) - 1,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
    }
    write_atomically(folder / "settings.json", (json.dumps(settings, indent=2) + "\n").encode())
    write_atomically(folder / "history.csv", agent.history.to_csv().encode())
    agent.save(folder / MODEL_FILE)
