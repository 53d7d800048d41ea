"""The phases of PlanTree and where training is among them, with their content in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.algorithms.learner import Learner
from spaql.algorithms.plantree.build import Candidate
from spaql.algorithms.plantree.choose import Candidates
from spaql.algorithms.plantree.experience import Experience
from spaql.algorithms.plantree.explore import Explorer
from spaql.algorithms.plantree.known_ends import known_ends
from spaql.algorithms.plantree.known_mirror import KnownMirror
from spaql.algorithms.plantree.lags import lags_from
from spaql.algorithms.plantree.play import TURNS, Span
from spaql.algorithms.plantree.rule_trees import rules_from, rules_to
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.plantree_learner.design import Design, Designs, new_search
from spaql.algorithms.replay.encoding import ActionCode
from spaql.algorithms.replay.memory import Floats, Memory
from spaql.algorithms.rule_learners import refuse_other_spaces
from spaql.algorithms.saved import Arrays, part, prefixed
from spaql.algorithms.treesearch import TreeSearchLearner, TreeSearchSettings
from spaql.archive import number
from spaql.controllers import Controller
from spaql.errors import ArchiveError, SettingError
from spaql.problems import Problem


class PlanTreeState(Learner):
    """The phases of PlanTree, and where training is among them."""

    def __init__(self, problem: Problem, settings: PlanTreeSettings) -> None:
        refuse_other_spaces(problem, "PlanTree")
        self.experience = Experience(problem)
        super().__init__(problem, settings)
        self.settings = settings
        self._mirror = KnownMirror(settings.mirror, self.experience)
        self._explorer = Explorer(self.experience, self._mirror, settings)
        if settings.lags == "auto" and self.code.listed:
            raise SettingError(
                "lags is for actions with a range: a controller with memory has no list of actions."
            )
        self.tracks = bool(problem.setpoints) and not self.code.listed
        """Whether controllers with memory are designed, to follow set-points."""
        self.controllers: Candidates | Designs
        """The controllers that may play."""
        if self.tracks:
            self.controllers = Designs(self.experience, settings)
        else:
            self.controllers = Candidates(self.experience, self._mirror, self._explorer, settings)
        self.episodes = 0
        self._span = Span("steps", 0, 0)
        self._turn = 0
        self._playing = 0
        """Index of the controller that plays in this turn."""
        self._build_seed = 0
        """The seed of the plan, search and choice after the last episode."""
        self._rules: Controller | None = None
        """The controller that was made when the budget was spent."""
        self._search: TreeSearchLearner | None = None
        """Spends the rest of a large budget, or that of any budget if the plant looks affine."""
        self._own_steps = 0
        """The steps before those of this search."""

    @property
    def problem(self) -> Problem:
        """The problem, which may be moved to another environment."""
        return self.experience.problem

    @problem.setter
    def problem(self, problem: Problem) -> None:
        self.experience.problem = problem

    @property
    def code(self) -> ActionCode:
        """The encoding of actions in the memory."""
        return self.experience.code

    @property
    def memory(self) -> Memory:
        """All transitions."""
        return self.experience.memory

    @property
    def designs(self) -> list[Design]:
        """The controllers with memory that were designed."""
        return self.controllers.players if isinstance(self.controllers, Designs) else []

    @property
    def _candidates(self) -> list[Candidate]:
        return self.controllers.players if isinstance(self.controllers, Candidates) else []

    @property
    def _is_design(self) -> bool:
        """Whether the controller that was made is one with memory."""
        return self._rules is not None and self._rules.remembers

    def _new_search(self) -> TreeSearchLearner:
        """Return a TreeSearch that begins at the rules, at the best rung of a ladder, or at random trees."""
        rules = None if self._is_design else self._rules
        leaves = TreeSearchSettings.max_leaves
        if rules is not None:
            leaves = max(leaves, rules.n_leaves)
        settings = TreeSearchSettings(max_leaves=leaves, nominal=self.settings.nominal)
        search = TreeSearchLearner(self.problem, settings)
        if rules is not None:
            search.start_from(rules)
        elif self._is_design:
            assert search.ladder is not None
            search.ladder.begin_at(self.designs[-1].ladder)
        return search

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the memory, the inputs of the last plan, the controllers, and the search that goes on."""
        data: dict[str, Any] = {
            "best_return": self.best_return,
            "episodes": self.episodes,
            "plan_seed": self._explorer.plan_seed,
            "lot": self._build_seed,
            "turn": self._turn,
            "span": list(self._span),
            "hoped": self._explorer.optimistic_steps,
            "playing": self._playing,
            "returns": [candidate.returns for candidate in self._candidates],
        }
        if self._mirror.dropped_at is not None:
            data["unmirrored"] = self._mirror.dropped_at
        arrays = prefixed("memory", self.memory.arrays())
        arrays["warm"] = self._explorer.warm
        for i, candidate in enumerate(self._candidates):
            starts = np.array(candidate.starts).reshape(-1, self.experience.task.states.dims)
            arrays |= prefixed(f"candidate.{i}", rules_to(candidate.controller) | {"starts": starts})
        if self._rules is not None and not self._is_design:
            arrays |= prefixed("rules", rules_to(self._rules))
        if (lags := self.experience.lags) is not None:
            data["lags"] = {"differences": list(lags.differences), "actions": lags.actions}
        if self.tracks:
            data |= {"designs": [], "designed": self._is_design}
        for i, design in enumerate(self.designs):
            search, search_arrays = design.search.state()
            data["designs"].append({"search": search, "returns": design.returns})
            arrays |= prefixed(f"design.{i}", search_arrays)
        if self._search is not None:
            data["own_steps"] = self._own_steps
            data["search"], search_arrays = self._search.state()
            arrays |= prefixed("search", search_arrays)
        return data, arrays

    def restore(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`."""
        self._restore_experience(data, arrays)
        self.restore_best_return(data)
        for name in ("episodes", "lot", "playing"):
            number(data, name, 0, whole=True)
        self.episodes = data["episodes"]
        self._playing = data["playing"]
        self._build_seed = data["lot"]
        self._turn = number(data, "turn", 0, TURNS, whole=True)
        self._span = _span_from(data["span"])
        self._restore_explorer(data, arrays)
        self._restore_controllers(data, arrays)
        self._search = None
        if "search" in data:
            self._own_steps = number(data, "own_steps", 0, len(self.memory), whole=True)
            self._search = self._new_search()
            self._search.restore(data["search"], part(arrays, "search"))

    def _restore_experience(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        experience = self.experience
        space = self.code.space
        lags = lags_from(data["lags"], self.problem.states.dims) if "lags" in data else None
        experience.set_lags(lags)
        dims = experience.task.states.dims
        listed = int(space.n) if isinstance(space, Discrete) else 0
        experience.replace(Memory.from_arrays(part(arrays, "memory"), dims, self.code.numbers, listed))
        experience.memory.known_ends = known_ends(experience.memory, self.problem)
        self._mirror.forget()
        self._mirror.dropped_at = None
        if "unmirrored" in data:
            self._mirror.dropped_at = number(data, "unmirrored", 0, len(self.memory), whole=True)

    def _restore_explorer(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        warm = np.array(arrays["warm"], order="C")
        if warm.dtype != np.float64 or len(warm) != 2 or warm.shape[1] > len(self.memory):
            raise ArchiveError("The plan in the file does not match its memory.")
        if np.isnan(warm).any():
            raise ArchiveError("The plan in the file holds NaN.")
        self._explorer.set_plan(warm, number(data, "plan_seed", 0, whole=True))
        self._explorer.optimistic_steps = number(data, "hoped", 0, whole=True)

    def _restore_controllers(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        if isinstance(self.controllers, Candidates):
            self.controllers.players = [
                self._candidate_from(part(arrays, f"candidate.{i}"), returns)
                for i, returns in enumerate(data["returns"])
            ]
        else:
            self.controllers.players = [
                self._design_from(design, part(arrays, f"design.{i}"))
                for i, design in enumerate(data.get("designs", []))
            ]
        if self._turn > 0 and self._playing >= len(self.controllers.players):
            raise ArchiveError(f"The file has no controller {self._playing}, whose turn it is.")
        rules = part(arrays, "rules")
        self._rules = rules_from(rules, self.code, self.experience.task) if rules else None
        if data.get("designed"):
            if not self.designs:
                raise ArchiveError("The file has no design of the controller that was chosen.")
            self._rules = self.designs[-1].controller

    def _design_from(self, data: Mapping[str, Any], arrays: Arrays) -> Design:
        search = new_search(self.problem, nominal=self.settings.nominal)
        search.restore(data["search"], arrays)
        design = Design(search, [float(number({"return": total}, "return")) for total in data["returns"]])
        if not design.ladder.rungs:
            raise ArchiveError("A design in the file has no rung.")
        return design

    def _candidate_from(self, arrays: Arrays, returns: list[Any]) -> Candidate:
        starts: Floats = arrays.pop("starts")
        fits = starts.shape == (len(returns), self.experience.task.states.dims) and np.isfinite(starts).all()
        if not fits or not np.isfinite(np.array(returns, np.float64)).all():
            raise ArchiveError("A controller in the file has starts and returns that do not match.")
        rules = rules_from(arrays, self.code, self.experience.task)
        inner = rules.feature >= 0
        pairs = 1 + 2 * np.arange(inner.sum())  # the order of `to_rules`, on which the kernels rely
        if not (np.array_equal(rules.left[inner], pairs) and np.array_equal(rules.right[inner], pairs + 1)):
            raise ArchiveError("A controller in the file has children in the wrong order.")
        return Candidate(rules, list(starts.astype(np.float64)), [float(total) for total in returns])


def _span_from(data: list[Any]) -> Span:
    unit, first, last = data
    if unit not in ("steps", "episodes"):
        raise ArchiveError(f"The budget in the file is in {unit!r}, and must be in steps or episodes.")
    ends = {"first": first, "last": last}
    return Span(unit, number(ends, "first", 0, whole=True), number(ends, "last", 0, whole=True))
