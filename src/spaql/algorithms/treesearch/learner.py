"""TreeSearch: search a small tree on the simulator itself, where steps are cheap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from spaql.algorithms.learner import Algorithm
from spaql.algorithms.replay import ReplayMemory
from spaql.algorithms.rule_learners import refuse_other_spaces
from spaql.algorithms.saved import Arrays, Data, State, part, prefixed
from spaql.algorithms.treesearch.evaluator import CandidateEvaluator
from spaql.algorithms.treesearch.ladder.stages import PHASES as LADDER_PHASES
from spaql.algorithms.treesearch.ladder.stages import advance as advance_ladder
from spaql.algorithms.treesearch.ladder.state import Ladder
from spaql.algorithms.treesearch.ladder.structures import PlantSignals
from spaql.algorithms.treesearch.rule_trees import check_source, from_rules, idle_controller, to_rules
from spaql.algorithms.treesearch.search import PHASES, advance
from spaql.algorithms.treesearch.search_state import SearchState
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.algorithms.treesearch.start import Start
from spaql.algorithms.treesearch.trees import CandidateTree, one_leaf
from spaql.archive import number
from spaql.controllers import Controller
from spaql.controllers.arrays import action_range
from spaql.controllers.controller import VELOCITY
from spaql.controllers.file import controller_from, controller_to
from spaql.controllers.simplify import without_unused_features
from spaql.errors import SettingError, UnsupportedSpaceError
from spaql.kernels.numerics import Rng
from spaql.kernels.treesearch.candidates import Units
from spaql.problems import Problem, perturbed
from spaql.simulate import EpisodeRunner, Evaluation, Phase


class TreeSearchLearner(Algorithm):
    """A search of the numbers and the structure of a tree by episodes on the simulator."""

    name = "treesearch"
    settings_type = TreeSearchSettings
    evaluated = False
    iteration_is = "judgement"
    standardised = False

    def __init__(self, problem: Problem, settings: TreeSearchSettings) -> None:
        super().__init__(problem, settings)
        refuse_other_spaces(problem, "TreeSearch")
        space = problem.actions.space
        ends = action_range(space)
        listed = isinstance(space, Discrete)
        if not (np.isfinite(ends.low).all() and np.isfinite(ends.high).all()):
            raise UnsupportedSpaceError("TreeSearch needs actions with finite bounds.")
        if listed and settings.movement_price != TreeSearchSettings.movement_price:
            raise SettingError("movement_price is for actions that are numbers, and these are a list.")
        self.settings = settings
        self._over(idle_controller(problem, memory=settings.memory))
        signals = None if settings.memory else PlantSignals.of(problem)
        self.ladder = Ladder(settings, self.search.evaluator, signals) if signals else None
        """The search for a controller over features, where set-points or a pole are declared."""
        self._law: Controller | None = None
        """The first law, if the search began at it."""
        self._first_law: Controller | None = None
        self.explored: ReplayMemory | None = None
        """The steps from which a first law was made, after the iteration that made it."""
        self.given: Controller | None = None
        """The tree at which the search begins; None for random ones."""
        self.counts = {"search_steps": 0, "own_play_steps": 0}
        self._aim: list[Any] | None = None
        """The unit of the budget, and where it ends."""
        self._spent = 0
        self._iterations = 0

    def _over(self, like: Controller) -> None:
        """Prepare a search of rules and laws over the inputs of a controller."""
        self._like = like
        actions = like.laws.gain.shape[1]
        centre = np.zeros(actions)
        half = np.ones(actions)
        if not like.discrete:
            low, high = action_range(like.action_space)
            half = (high - low) / 2
            centre = centre if like.form == VELOCITY else (low + high) / 2
        units = Units(np.zeros(like.dims), np.ones(like.dims), centre, half)
        frame = like.frame
        if like.remembers:
            goals = [goal for _, goal in self.problem.setpoint_places]
            frame = replace(frame, setpoints=np.array(goals, np.int64))
        evaluator = CandidateEvaluator(self.settings, units, self.problem.horizon, frame)
        plant = self.problem.dynamics
        if plant is not None and plant.perturbation is not None and not self.settings.nominal:
            evaluator.plant = perturbed(plant)
        self.search = SearchState(
            self.settings, evaluator, one_leaf(actions, like.dims, listed=like.discrete)
        )

    def start_from(self, controller: Controller) -> None:
        """Begin the search at a controller instead of random ones; its locked leaves stay as they are.

        Its features and limits stay, too; hysteresis is left out, of the result as well if nothing better is
        found: it would not be what was judged.
        """
        check_source(controller, self.problem)
        if any(controller.hysteresis):
            controller = replace(controller, hysteresis=())
        self._over(controller)
        self.given = controller

    def aim(self, last_iteration: int | None, last_step: int | None) -> None:
        """Store the budget; an unfinished one is continued.

        A number of iterations is a search that is planned for as many episodes and ends after as many parts.
        """
        if last_step is not None:
            aim = ["steps", last_step]
            budget = last_step - self._spent
        else:
            assert last_iteration is not None
            aim = ["iterations", last_iteration]
            budget = (last_iteration - self._iterations) * self.problem.horizon
        if aim != self._aim:
            self._aim = aim
            if self._climbs:
                self._climbs.plan(budget)
                return
            given = self.search.incumbent
            if given is None and self.given is not None and self._measured:
                given = from_rules(self.given, self.search.evaluator.units, self.search.base)
            self.search.plan(budget, given, "tree" if given is not None else "")

    @property
    def _climbs(self) -> Ladder | None:
        """The ladder, unless a tree was given."""
        return self.ladder if self.given is None else None

    @property
    def robust(self) -> bool:
        """Whether it designs for perturbed plants: where they are declared, and on the ladder."""
        design = self._climbs.design if self._climbs else self.search.evaluator.plant
        return design is not None and not self.settings.nominal

    @property
    def _measured(self) -> bool:
        return len(self.search.states) > 0

    def iterate(self, runner: EpisodeRunner, rng: Rng, *, trained: bool) -> Evaluation:
        """Search for a part of the budget; returns the judgement of the best tree as one episode."""
        before = {phase: runner.interactions[phase] for phase in (Phase.SEARCH, Phase.OWN_PLAY)}
        if self._climbs:
            advance_ladder(self._climbs, runner, rng)
        else:
            if not self._measured:
                start = Start(self.search, self.problem, self._like, self.given, self._law)
                start.run(runner, rng)
                self._law = start.law
                self._first_law = start.one_leaf
                self.explored = start.explored
            advance(self.search, runner, rng)
        taken = {phase: runner.interactions[phase] - steps for phase, steps in before.items()}
        self.counts["search_steps"] += taken[Phase.SEARCH]
        self.counts["own_play_steps"] += taken[Phase.OWN_PLAY]
        steps = sum(taken.values())
        self._spent += steps
        self._iterations += 1
        mean = (self._climbs or self.search).mean_return
        return Evaluation(np.array([mean]), np.array([steps]), np.zeros((1, self.problem.states.dims)))

    @property
    def policy(self) -> Controller:
        """The best tree by judgement so far; before the first, the one that was given or an idle one.

        Where set-points are declared, the best controller with memory.
        """
        if self._climbs:
            return self._climbs.controller
        found = self.search.incumbent
        start = self._start
        if start is not None and (found is None or self._is_as_before(found, start)):
            return start
        if found is None:
            found = self.search.base
        rules = to_rules(found, self.search.evaluator.units, self._like, self.search.digits)
        return rules if self.given is not None else without_unused_features(rules)

    @property
    def _start(self) -> Controller | None:
        """The tree at which the search began."""
        return self.given if self.given is not None else self._law

    def _is_as_before(self, found: CandidateTree, start: Controller) -> bool:
        """Return whether a tree is still what the search began at: conversions would change a bit of it."""
        before = from_rules(start, self.search.evaluator.units, self.search.base).arrays()
        same = all(np.array_equal(array, before[name]) for name, array in found.arrays().items())
        return same and not self.search.digits

    @property
    def first_law(self) -> Controller | None:
        """The best law of one leaf of the model of the first steps, unless it is the policy still."""
        still = self.search.begun_at == "law" and self.policy.n_leaves == 1
        return None if still else self._first_law

    @property
    def phase(self) -> str:
        """The stage of the search."""
        return LADDER_PHASES[self._climbs.stage] if self._climbs else PHASES[self.search.stage]

    def columns(self) -> dict[str, float]:
        """Return the size of the best tree, and the steps by phase."""
        return {**(self._climbs or self.search).size, **self.counts}

    def state(self) -> State:
        """Return the search, and the tree at which it began."""
        data, arrays = (self._climbs or self.search).state()
        arrays = prefixed("search", arrays)
        content = {
            "best_return": self.best_return,
            "spent": self._spent,
            "iterations": self._iterations,
            "aim": self._aim,
            "counts": dict(self.counts),
            "search": data,
            "given": None,
            "law": None,
            "first_law": None,
        }
        for name, tree in (("given", self.given), ("law", self._law), ("first_law", self._first_law)):
            if tree is not None:
                content[name], parts = controller_to(tree)
                arrays |= prefixed(name, parts)
        return content, arrays

    def restore(self, data: Data, arrays: Arrays) -> None:
        """Restore the result of `state`."""
        self.restore_best_return(data)
        self._aim = None if data["aim"] is None else list(data["aim"])
        self._spent, self._iterations = (
            number(data, name, 0, whole=True) for name in ("spent", "iterations")
        )
        self.counts = {name: number(data["counts"], name, 0, whole=True) for name in self.counts}
        self.given, self._law, self._first_law = (
            None if data[name] is None else controller_from(data[name], part(arrays, name))
            for name in ("given", "law", "first_law")
        )
        if self.given is not None:
            self._over(self.given)
        (self._climbs or self.search).restore(data["search"], part(arrays, "search"))
