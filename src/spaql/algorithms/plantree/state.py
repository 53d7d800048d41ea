"""The phases of PlanTree and where training is among them, with their content in files."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from spaql.algorithms.learner import Learner
from spaql.algorithms.plantree.candidates import CandidateController, CandidateControllers
from spaql.algorithms.plantree.design import Designs, LadderDesign, new_search
from spaql.algorithms.plantree.experience import Experience, known_ends
from spaql.algorithms.plantree.explore import Explorer
from spaql.algorithms.plantree.lags import lags_from
from spaql.algorithms.plantree.rule_trees import rules_from, rules_to
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.replay import ActionCode, ReplayMemory
from spaql.algorithms.rule_learners import refuse_other_spaces
from spaql.algorithms.saved import Arrays, Data, State, part, prefixed, require, restored
from spaql.algorithms.treesearch import TreeSearchLearner, TreeSearchSettings
from spaql.archive import number
from spaql.controllers import Controller
from spaql.errors import SettingError
from spaql.kernels.numerics import Floats
from spaql.problems import Problem

TURNS = 4
"""Turns in which a controller plays. Before every other turn candidates are searched for, and before each
turn one is chosen."""


class Span(NamedTuple):
    """A budget: its unit ("steps" or "episodes"), and where it begins and ends."""

    unit: str
    first: int
    last: int

    def turn(self, spent: int, own_share: float) -> int:
        """Return the turn in which controllers play; 0 before the first."""
        own = math.floor(own_share * (self.last - self.first))
        return sum(spent >= self.last - own + own * turn // TURNS for turn in range(TURNS))


class PlayedEpisode:
    """An episode of a controller."""

    def __init__(self, player: CandidateController | LadderDesign, code: ActionCode) -> None:
        self.player = player
        self._code = code
        self._policy = player.controller.for_episodes(1)

    def act(self, state: Floats) -> tuple[Any, Floats]:
        """Return the next action, as the environment and as the memory has it."""
        raw = self._policy.act(state[np.newaxis], np.zeros(1, np.int64), None)[0]
        return raw, self._code.standard(np.asarray(raw)[np.newaxis])[0]


class PlanTreeState(Learner):
    """The phases of PlanTree, and where training is among them."""

    def __init__(self, problem: Problem, settings: PlanTreeSettings) -> None:
        refuse_other_spaces(problem, "PlanTree")
        self.experience = Experience(problem, settings.mirror)
        super().__init__(problem, settings)
        self.settings = settings
        self._explorer = Explorer(self.experience, settings)
        if settings.lags == "auto" and self.code.listed:
            raise SettingError(
                "lags is for actions with a range: a controller with memory has no list of actions."
            )
        self.tracks = bool(problem.setpoints) and not self.code.listed
        """Whether controllers with memory are designed, to follow set-points."""
        self.controllers: CandidateControllers | Designs
        """The controllers that may play."""
        if self.tracks:
            self.controllers = Designs(self.experience, settings)
        else:
            self.controllers = CandidateControllers(self.experience, self._explorer, settings)
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
    def memory(self) -> ReplayMemory:
        """All transitions."""
        return self.experience.memory

    @property
    def designs(self) -> list[LadderDesign]:
        """The controllers with memory that were designed."""
        return self.controllers.players if isinstance(self.controllers, Designs) else []

    @property
    def _candidates(self) -> list[CandidateController]:
        return self.controllers.players if isinstance(self.controllers, CandidateControllers) else []

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

    def state(self) -> State:
        """Return the memory, the inputs of the last plan, the controllers, and the search that goes on."""
        experience = self.experience
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
        if experience.mirror_dropped_at is not None:
            data["unmirrored"] = experience.mirror_dropped_at
        arrays = prefixed("memory", self.memory.arrays())
        arrays["warm"] = self._explorer.warm
        for i, candidate in enumerate(self._candidates):
            starts = np.array(candidate.starts).reshape(-1, experience.task.states.dims)
            arrays |= prefixed(f"candidate.{i}", rules_to(candidate.controller) | {"starts": starts})
        if self._rules is not None and not self._is_design:
            arrays |= prefixed("rules", rules_to(self._rules))
        if (lags := experience.lags) is not None:
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

    def restore(self, data: Data, arrays: Arrays) -> None:
        """Restore the result of `state`."""
        experience = self.experience
        experience.set_lags(lags_from(data["lags"], self.problem.states.dims) if "lags" in data else None)
        dims = experience.task.states.dims
        code = self.code
        memory = ReplayMemory.from_arrays(part(arrays, "memory"), dims, code.numbers, code.n_listed)
        experience.replace(memory)
        memory.known_ends = known_ends(memory, self.problem)
        steps = len(memory)
        experience.mirror_dropped_at = None
        if "unmirrored" in data:
            experience.mirror_dropped_at = number(data, "unmirrored", 0, steps, whole=True)
        self.restore_best_return(data)
        self.episodes, self._playing, self._build_seed = (
            number(data, name, 0, whole=True) for name in ("episodes", "playing", "lot")
        )
        self._turn = number(data, "turn", 0, TURNS, whole=True)
        self._span = Span(*data["span"])
        ends = self._span._asdict()
        require(
            "training",
            self._span.unit in ("steps", "episodes"),
            *(number(ends, name, 0, whole=True) >= 0 for name in ("first", "last")),
        )
        warm = restored(arrays, "warm", (2, None))
        require("training", warm.shape[1] <= steps)
        self._explorer.set_plan(warm, number(data, "plan_seed", 0, whole=True))
        self._explorer.optimistic_steps = number(data, "hoped", 0, whole=True)
        self._restore_controllers(data, arrays)
        self._search = None
        if "search" in data:
            self._own_steps = number(data, "own_steps", 0, steps, whole=True)
            self._search = self._new_search()
            self._search.restore(data["search"], part(arrays, "search"))

    def _restore_controllers(self, data: Data, arrays: Arrays) -> None:
        if isinstance(self.controllers, CandidateControllers):
            self.controllers.players = [
                self._restored_candidate(part(arrays, f"candidate.{i}"), returns)
                for i, returns in enumerate(data["returns"])
            ]
        else:
            self.controllers.players = [
                self._restored_design(design, part(arrays, f"design.{i}"))
                for i, design in enumerate(data.get("designs", []))
            ]
        require("training", self._turn == 0 or self._playing < len(self.controllers.players))
        rules = part(arrays, "rules")
        self._rules = rules_from(rules, self.code, self.experience.task) if rules else None
        if data.get("designed"):
            require("training", self.designs)
            self._rules = self.designs[-1].controller

    def _restored_design(self, data: Data, arrays: Arrays) -> LadderDesign:
        search = new_search(self.problem, nominal=self.settings.nominal)
        search.restore(data["search"], arrays)
        design = LadderDesign(search, _restored_returns(data["returns"]))
        require("training", design.ladder.rungs)
        return design

    def _restored_candidate(self, arrays: Arrays, returns: list[Any]) -> CandidateController:
        starts = restored(arrays, "starts", (len(returns), self.experience.task.states.dims))
        del arrays["starts"]
        rules = rules_from(arrays, self.code, self.experience.task)
        inner = rules.feature >= 0
        pairs = 1 + 2 * np.arange(inner.sum())  # the order of `to_rules`, on which the kernels rely
        require(
            "training",
            np.array_equal(rules.left[inner], pairs),
            np.array_equal(rules.right[inner], pairs + 1),
        )
        return CandidateController(rules, list(starts), _restored_returns(returns))


def _restored_returns(returns: list[Any]) -> list[float]:
    return [float(number({"return": total}, "return")) for total in returns]
