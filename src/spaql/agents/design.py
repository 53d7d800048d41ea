"""Designs: controllers with the problem they are for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spaql import archive
from spaql.agents.problem_file import problem_from, problem_to, read_back
from spaql.agents.readable import Readable
from spaql.archive import reading
from spaql.controllers import Controller
from spaql.controllers.file import controller_from, controller_to
from spaql.errors import ArchiveError, SettingError
from spaql.problems import Problem
from spaql.simulate.play import check_sample_time


@dataclass(frozen=True, eq=False)
class Design(Readable):
    """A controller with its problem, which is simplified, edited, saved and used like an agent.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> controller = spaql.controller_of(agent.learn(iterations=100, progress_bar=False))
    >>> design = Design(controller, agent.problem)
    >>> int(design.predict([0.0, 0.0, 0.1, 0.0])[0])
    1
    """

    controller: Controller
    problem: Problem
    origin: Mapping[str, Any] = field(default_factory=dict)
    """How the controller was made, for people: plain data."""

    def __post_init__(self) -> None:
        spaces = (self.problem.states.space, self.problem.actions.space)
        if spaces != (self.controller.observation_space, self.controller.action_space):
            raise SettingError("The controller has other observations or actions than the problem.")
        check_sample_time(self.controller, self.problem)

    def __repr__(self) -> str:
        return f"Design({self.controller!r} for {self.problem.name})"

    @property
    def policy(self) -> Controller:
        """The controller."""
        return self.controller

    def predict(self, observation: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the action for one observation or a batch of them, and the state (see `Policy.predict`)."""
        return self.controller.predict(observation, *args, **kwargs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file, and read it back."""
        problem, problem_arrays = problem_to(self.problem)
        controller, controller_arrays = controller_to(self.controller)
        content = {
            "kind": "controller",
            "problem": problem,
            "controller": controller,
            "origin": dict(self.origin),
        }
        arrays = {f"controller.{name}": array for name, array in controller_arrays.items()}
        arrays |= {f"problem.{name}": array for name, array in problem_arrays.items()}
        archive.save(path, content, arrays)
        read_back(self, self.load(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Design:
        """Read a controller file; no code in it is ever run."""
        return design_from(archive.load(path))


def design_from(document: archive.Document) -> Design:
    """Return the controller in a file."""
    data = document.data
    if data.get("kind") != "controller":
        raise ArchiveError(
            f"The file contains a {data.get('kind')}, not a controller: read it with spaql.load."
        )
    with reading("controller"):
        problem = problem_from(data["problem"], document.part("problem."))
        controller = controller_from(data["controller"], document.part("controller."))
        return Design(controller, problem, dict(data["origin"]))
