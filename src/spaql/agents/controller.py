"""Controllers: rule trees, and controllers with memory, that are policies of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spaql import archive
from spaql.agents.problem_file import problem_from, problem_to
from spaql.agents.read_back import EPISODES, read_back
from spaql.archive import reading
from spaql.errors import ArchiveError, SettingError
from spaql.policy import FeatureController, RuleTree
from spaql.policy.feature_controller_file import feature_controller_from, feature_controller_to
from spaql.policy.tree_file import tree_from, tree_to
from spaql.problems import Problem


@dataclass(frozen=True, eq=False)
class Controller:
    """A rule tree with the problem that it is for: simplified or edited, saved, and used like an agent.

    Instead of a rule tree it may hold a controller with memory, whose rules are over features.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.rule_tree(agent.learn(iterations=100, progress_bar=False))
    >>> controller = Controller(tree, agent.problem)
    >>> int(controller.predict([0.0, 0.0, 0.1, 0.0])[0])
    1
    """

    tree: RuleTree | FeatureController
    problem: Problem
    origin: Mapping[str, Any] = field(default_factory=dict)
    """How it was made, for people: plain data."""

    def __post_init__(self) -> None:
        spaces = (self.problem.states.space, self.problem.actions.space)
        if spaces != (self.tree.observation_space, self.tree.action_space):
            raise SettingError("The tree has other observations or actions than the problem.")

    @property
    def policy(self) -> RuleTree | FeatureController:
        """The rule tree, or the controller with memory."""
        return self.tree

    def predict(self, observation: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the action for one observation or a batch of them, and the state (see `Policy.predict`)."""
        return self.tree.predict(observation, *args, **kwargs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file, and read it back."""
        problem, problem_arrays = problem_to(self.problem)
        content = {"kind": "controller", "problem": problem, "origin": dict(self.origin)}
        if isinstance(self.tree, FeatureController):
            described, tree_arrays = feature_controller_to(self.tree)
            content |= described
        else:
            content["tree"], tree_arrays = tree_to(self.tree)
        arrays = {f"tree.{name}": array for name, array in tree_arrays.items()}
        arrays |= {f"problem.{name}": array for name, array in problem_arrays.items()}
        archive.save(path, content, arrays)
        read_back(self, self.load(path), episodes=EPISODES)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Controller:
        """Read a controller file; no code in it is ever run."""
        return controller_from(archive.load(path))


def controller_from(document: archive.Document) -> Controller:
    """Return the controller that a file holds."""
    data = document.data
    if data.get("kind") != "controller":
        raise ArchiveError(f"The file holds a {data.get('kind')}, not a controller: read it with spaql.load.")
    with reading("controller"):
        problem = problem_from(data["problem"], document.part("problem."))
        arrays = document.part("tree.")
        with_memory = "memory" in data
        tree = feature_controller_from(data, arrays) if with_memory else tree_from(data["tree"], arrays)
        return Controller(tree, problem, dict(data["origin"]))
