"""TreeSearch: search a small tree on the simulator itself, where steps are cheap."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.algorithms.learner import Learner, refuse_lists_and_levels
from spaql.algorithms.treesearch.evaluator import Evaluator
from spaql.algorithms.treesearch.ladder import Ladder
from spaql.algorithms.treesearch.ladder_file import ladder_state, restore_ladder
from spaql.algorithms.treesearch.rule_trees import check_source, from_rules, to_rules
from spaql.algorithms.treesearch.search import Search
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.algorithms.treesearch.structures import Meaning
from spaql.algorithms.treesearch.symmetry import mirror_of, symmetric_units
from spaql.algorithms.treesearch.trees import CandidateTree, one_leaf, random_tree
from spaql.archive import number
from spaql.errors import SettingError, UnsupportedSpaceError
from spaql.kernels.treesearch.candidates import Floats, Units
from spaql.policy import FeatureController, RuleTree
from spaql.policy.policy import Rng
from spaql.policy.tree_file import tree_from, tree_to
from spaql.problems import Problem, perturbed
from spaql.rollouts import EpisodeRunner, Evaluation, Phase, action_range

_MEASURED = 5000
"""The most steps to measure the scales of the observations."""
_LARGEST = 1e100
"""Observations beyond this are not measured."""
_SCALE_DIGITS = 2
"""Significant digits of a scale."""


class TreeSearchLearner(Learner):
    """A search of the numbers and the structure of a tree by episodes on the simulator."""

    name = "treesearch"
    settings_type = TreeSearchSettings
    evaluated = False
    iteration_is = "judgement"
    standardised = False

    def __init__(self, problem: Problem, settings: TreeSearchSettings) -> None:
        super().__init__(problem, settings)
        refuse_lists_and_levels(problem, "TreeSearch")
        space, dims, ends = problem.actions.space, problem.states.dims, action_range(problem)
        listed = isinstance(space, Discrete)
        rows = int(space.n) if isinstance(space, Discrete) else len(ends.low)
        if not (np.isfinite(ends.low).all() and np.isfinite(ends.high).all()):
            raise UnsupportedSpaceError("TreeSearch needs actions with finite bounds.")
        if listed and settings.movement_price != TreeSearchSettings.movement_price:
            raise SettingError("movement_price is for actions that are numbers, and these are a list.")
        centre = np.zeros(rows) if listed else (ends.low + ends.high) / 2
        half = np.ones(rows) if listed else (ends.high - ends.low) / 2
        units = Units(np.zeros(dims), np.ones(dims), centre, half)
        self.settings = settings
        evaluator = Evaluator(settings, units, problem.horizon, listed=listed)
        if (
            (plant := problem.dynamics) is not None
            and plant.perturbation is not None
            and not settings.nominal
        ):
            evaluator.plant = perturbed(plant)
        self.search = Search(settings, evaluator, one_leaf(rows, dims, listed=listed))
        meaning = Meaning.of(problem)
        self.ladder = Ladder(settings, self.search.evaluator, meaning) if meaning else None
        """The search for a controller over features, where set-points or a pole are declared."""
        self.given: RuleTree | None = None
        """The tree at which the search begins; None for random ones."""
        self.counts = {"search_steps": 0, "own_play_steps": 0}
        self._aim: list[Any] | None = None
        """The unit of the budget, and where it ends."""
        self._spent, self._iterations = 0, 0

    def start_from(self, rules: RuleTree) -> None:
        """Begin the search at a tree instead of random ones; its locked leaves stay as they are."""
        check_source(rules, self.problem)
        self.given = rules

    def aim(self, last_iteration: int | None, last_step: int | None) -> None:
        """Store the budget; an unfinished one is continued.

        A number of iterations is a search that is planned for as many episodes and ends after as many parts.
        """
        if last_step is not None:
            aim, budget = ["steps", last_step], last_step - self._spent
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
            self.search.plan(budget, given)

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
            self._climbs.advance(runner, rng)
        else:
            if not self._measured:
                self._measure(runner, rng)
            self.search.advance(runner, rng)
        taken = {phase: runner.interactions[phase] - steps for phase, steps in before.items()}
        self.counts["search_steps"] += taken[Phase.SEARCH]
        self.counts["own_play_steps"] += taken[Phase.OWN_PLAY]
        steps = sum(taken.values())
        self._spent, self._iterations = self._spent + steps, self._iterations + 1
        dims = self.problem.states.dims
        mean = self.search.judgement.mean_return
        if self._climbs:
            mean = self._climbs.incumbent.mean if self._climbs.incumbent else self._climbs.first_return
        return Evaluation(np.array([mean]), np.array([steps]), np.zeros((1, dims)))

    def _measure(self, runner: EpisodeRunner, rng: Rng) -> None:
        """Measure the scale of each number of an observation by episodes of random trees."""
        search, evaluator = self.search, self.search.evaluator
        wanted = min(_MEASURED, 1 + search.budget // 50)
        evaluator.runner, evaluator.steps = runner, 0
        played: list[tuple[float, Floats]] = []
        through = np.zeros((1, self.problem.states.dims))
        while evaluator.steps < wanted:
            size = int(rng.integers(1, 5))
            tree = random_tree(search.base, min(size, self.settings.max_leaves), through, rng)
            found = evaluator.play(
                tree, tree.vector[np.newaxis], evaluator.starts(rng, 2), Phase.SEARCH, visited=wanted
            )
            seen = found.visited[(np.abs(found.visited) < _LARGEST).all(axis=1)]  # a plant may explode
            played.append((math.fsum(found.returns[0].tolist()) / 2, seen))
            observations = np.concatenate([seen for _, seen in played])
            through = observations - _mean(observations) if len(observations) else through
        observations = np.concatenate(_better_half(played))
        centre, scale = _units(observations)
        evaluator.units = evaluator.units._replace(centre=centre, scale=scale)
        if self.given is None:
            search.mirror, taken = mirror_of(self.settings.mirror, self.problem, search.budget, rng)
            runner.interactions.add(Phase.SEARCH, taken)
            evaluator.steps += taken
            if search.mirror is not None:
                evaluator.units = symmetric_units(evaluator.units, search.mirror)
        search.states = (observations - evaluator.units.centre) / evaluator.units.scale
        search.judgement = replace(
            search.judgement, mean_return=math.fsum(total for total, _ in played) / len(played)
        )
        evaluator.runner = None
        if self.given is not None:
            search.plan(search.budget, from_rules(self.given, evaluator.units, search.base))
        search.spent = evaluator.steps

    @property
    def policy(self) -> RuleTree | FeatureController:
        """The best tree by judgement so far; before the first, the one that was given or an idle one.

        Where set-points are declared, the best controller with memory.
        """
        if self._climbs:
            return self._climbs.controller
        found = self.search.incumbent
        if self.given is not None and (found is None or self._is_given(found)):
            return self.given
        if found is None:
            found = self.search.base
        return to_rules(found, self.search.evaluator.units, self.problem, self.search.digits)

    def _is_given(self, found: CandidateTree) -> bool:
        """Return whether a tree is still the given one, whose numbers conversions would change in a bit."""
        assert self.given is not None
        given = from_rules(self.given, self.search.evaluator.units, self.search.base).arrays()
        same = all(np.array_equal(array, given[name]) for name, array in found.arrays().items())
        return same and not self.search.digits

    @property
    def candidate(self) -> RuleTree | FeatureController:
        """The same as `policy`: judgements are part of the search."""
        return self.policy

    def begin(self, observation: Any) -> None:
        """Do nothing: episodes are played by `iterate`."""

    def act(self, rng: Rng) -> Any:
        """Do nothing: episodes are played by `iterate`."""

    def learn(self, reward: float, observation: Any, terminated: bool) -> None:
        """Do nothing: episodes are played by `iterate`."""

    def assess(self, mean_return: float) -> None:
        """Keep the best return."""
        if self.best_return is None or mean_return > self.best_return:
            self.best_return = mean_return

    def columns(self) -> dict[str, float]:
        """Return the size of the best tree, and the steps by phase."""
        found = self.search.incumbent
        size = {"leaves": 0, "numbers": 0}
        if self._climbs and (rung := self._climbs.incumbent) is not None:
            size = {"leaves": rung.tree.n_leaves, "numbers": rung.parameters}
        elif found is not None:
            size = {"leaves": found.n_leaves, "numbers": found.n_numbers}
        return {**size, **self.counts}

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the search, and the tree at which it began."""
        data, arrays = ladder_state(self._climbs) if self._climbs else self.search.state()
        arrays = {f"search.{name}": array for name, array in arrays.items()}
        content = {
            "best_return": self.best_return,
            "spent": self._spent,
            "iterations": self._iterations,
            "aim": self._aim,
            "counts": dict(self.counts),
            "search": data,
            "given": None,
        }
        if self.given is not None:
            content["given"], given = tree_to(self.given)
            arrays |= {f"given.{name}": array for name, array in given.items()}
        return content, arrays

    def restore(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`."""

        def part(prefix: str) -> dict[str, NDArray[Any]]:
            return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}

        best = data["best_return"]
        self.best_return = None if best is None else float(number(data, "best_return"))
        self._aim = None if data["aim"] is None else list(data["aim"])
        self._spent, self._iterations = (
            number(data, name, 0, whole=True) for name in ("spent", "iterations")
        )
        self.counts = {name: number(data["counts"], name, 0, whole=True) for name in self.counts}
        self.given = None if data["given"] is None else tree_from(data["given"], part("given."))
        if self._climbs:
            restore_ladder(self._climbs, data["search"], part("search."))
        else:
            self.search.restore(data["search"], part("search."))


def _better_half(played: list[tuple[float, Floats]]) -> list[Floats]:
    """Return the observations of the trees with the higher returns: the others go where no controller is."""
    middle = sorted(total for total, _ in played)[len(played) // 2]
    return [seen for total, seen in played if total >= middle]


def _units(observations: Floats) -> tuple[Floats, Floats]:
    """Return the centre and the scale of each number, with a few digits.

    Samples in which a number has its usual value do not count for its scale: that of a contact, which is
    nearly always 0, is 1.
    """
    if not len(observations):
        return np.zeros(observations.shape[1]), np.ones(observations.shape[1])
    centre, usual = _mean(observations), np.median(observations, axis=0)
    scale = np.ones(len(centre))
    for j, column in enumerate(observations.T):
        others = column[column != usual[j]]
        if len(others):
            spread = math.sqrt(math.fsum(((others - centre[j]) ** 2).tolist()) / len(others))
            scale[j] = spread if spread > 0 else 1.0
    places = [_SCALE_DIGITS - 1 - math.floor(math.log10(x)) for x in scale.tolist()]
    rounded = [
        np.array([round(x, n) for x, n in zip(row.tolist(), places, strict=True)]) for row in (centre, scale)
    ]
    return rounded[0], rounded[1]


def _mean(rows: Floats) -> Floats:
    """Return the mean of each column, added one row after the other."""
    return np.asarray(np.add.accumulate(rows, axis=0)[-1] / len(rows))
