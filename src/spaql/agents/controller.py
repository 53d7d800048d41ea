"""Controllers: rule trees that are policies of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from spaql import archive
from spaql.agents.agent import Agent, agent_from, model_file
from spaql.agents.problem_file import problem_from, problem_to
from spaql.archive import reading
from spaql.errors import ArchiveError, SettingError
from spaql.policy import RuleTree, RuleTreePolicy
from spaql.policy.tree_file import tree_from, tree_to
from spaql.problems import Problem


@dataclass(frozen=True, eq=False)
class Controller:
    """A rule tree with the problem that it is for: simplified or edited, saved, and used like an agent.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.rule_tree(agent.learn(iterations=100, progress_bar=False))
    >>> controller = Controller(tree, agent.problem)
    >>> int(controller.predict([0.0, 0.0, 0.1, 0.0])[0])
    1
    """

    tree: RuleTree
    problem: Problem
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from, for people: plain data."""

    def __post_init__(self) -> None:
        spaces = (self.problem.states.space, self.problem.actions.space)
        if spaces != (self.tree.observation_space, self.tree.action_space):
            raise SettingError("The tree has other observations or actions than the problem.")

    @property
    def policy(self) -> RuleTreePolicy:
        """What it does."""
        return RuleTreePolicy(self.tree)

    def predict(self, observation: Any, *args: Any, **kwargs: Any) -> tuple[Any, None]:
        """Give the action for one observation or a batch of them (see `Policy.predict`)."""
        return self.policy.predict(observation, *args, **kwargs)[0], None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file."""
        tree, tree_arrays = tree_to(self.tree)
        problem, problem_arrays = problem_to(self.problem)
        content = {"kind": "controller", "tree": tree, "problem": problem, "origin": dict(self.origin)}
        arrays = {f"tree.{name}": array for name, array in tree_arrays.items()}
        arrays |= {f"problem.{name}": array for name, array in problem_arrays.items()}
        archive.save(path, content, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model file; no code in it is ever run."""
        return cls._from_document(archive.load(path))

    @classmethod
    def _from_document(cls, document: archive.Document) -> Self:
        data = document.data
        if data.get("kind") != "controller":
            home = "model.PlantModel.load" if data.get("kind") == "plant" else "load"
            raise ArchiveError(
                f"The file holds a {data.get('kind')}, not a controller: read it with spaql.{home}."
            )
        with reading("controller"):
            problem = problem_from(data["problem"], document.part("problem."))
            return cls(tree_from(data["tree"], document.part("tree.")), problem, dict(data["origin"]))


def read(path: str | os.PathLike[str]) -> Agent | Controller:
    """Read an agent or a controller from a model file, or an agent from a run folder."""
    document = archive.load(model_file(path))
    made = Controller._from_document if document.data.get("kind") == "controller" else agent_from
    return made(document)
