"""The phase of choice: candidate trees are searched for in learned plants, compared, and chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.plantree.distil import distil, label
from spaql.algorithms.plantree.experience import Experience
from spaql.algorithms.plantree.explore import Explorer, Plan
from spaql.algorithms.plantree.learned_plant import CAUTIOUS, draw_samples, fit_plant
from spaql.algorithms.plantree.polish import SIZES, LocalSearch
from spaql.algorithms.plantree.rule_trees import (
    Half,
    from_rules,
    half_of,
    idle_rules,
    to_rules,
    with_smallest_half,
    within_space,
)
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale
from spaql.controllers import Controller
from spaql.controllers.mirrored import leaves_to_read
from spaql.kernels.numerics import Floats, Ints, Rng, deviation, mean, means, moments
from spaql.kernels.plantree.controllers import ControllerTree
from spaql.kernels.plantree.rollout import Simulation, play_all
from spaql.kernels.plantree.value_cells import nearest
from spaql.problems import Problem

_STARTS = 400
"""Starts of the search: half of them starts of episodes, half spread over the states seen."""
_COMPARED = 1000
"""Starts from which candidates are compared at an effort of 1."""
_FEWEST = 100
"""The fewest starts of such a comparison."""
_LONG = 1000
"""Most steps of an episode of the search; candidates are compared by whole episodes, from fewer starts."""
_TEST_PLANTS = 2
"""Test plants for each plant of the search."""
_UNTRIED_MARGIN = 5
"""Tolerances by which a candidate that never played must be better, to be the last choice."""
_PLAIN_MARGIN = 5
"""Tolerances by which the best candidate without a mirror must be better, for the mirror to be dropped: the
plants in which it is tested are fitted to the same steps as those in which it was searched, the others' are
not."""
_PRICE = 0.01
"""Penalty on a change of the action over its whole range, in standard deviations of the reward."""


@dataclass(eq=False)
class CandidateController:
    """A controller that may be chosen, with the starts and returns of the episodes that it has played."""

    controller: Controller
    starts: list[Floats] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)

    def add_episode(self, start: Floats, total: float) -> None:
        """Keep the start and the return of a whole episode that it has played."""
        self.starts.append(start)
        self.returns.append(total)


def search(
    memory: ReplayMemory,
    plan: Plan,
    code: ActionCode,
    settings: PlanTreeSettings,
    problem: Problem,
    played: list[CandidateController],
    rng: Rng,
    *,
    steps: int | None = None,
    edge: float = 0.0,
    mirror: Mirror | None = None,
) -> list[Controller]:
    """Return controllers of many sizes distilled from the plan, and those that have played, improved.

    Episodes in learned plants last at most `steps`, by default as long as the longest of the memory.
    `edge` is the penalty on steps that leave the data (see `Simulation`). With a mirror, whose images the
    memory must have, controllers are searched for one half of the states, and then unfolded: for the half
    of which the first controllers are best.
    """
    z = plan.scale.z(memory.states)
    samples = draw_samples(len(memory), settings.members, rng)
    simulation = _simulation(memory, plan.scale, code, samples, _STARTS, rng)
    simulation = simulation._replace(steps=min(steps or simulation.steps, _LONG), edge=edge)
    labels = label(plan, simulation, code, z, rng)
    halves = [None] if mirror is None else [Half(mirror, int(side)) for side in mirror.sides]
    tried: list[tuple[float, Half | None, LocalSearch, ControllerTree]] = []
    for half in halves:
        own_labels = labels if half is None else half.labels(*labels, code)
        local_search = LocalSearch(
            simulation if half is None else half.simulation(simulation), settings.effort, rng
        )
        for tree in distil(code, *own_labels, settings.leaves // (1 if half is None else 2)):
            tried.append((mean(local_search.returns(tree)), half, local_search, tree))
    _, half, local_search, first = max(tried, key=lambda result: result[0])
    trees = list(local_search.descend(first, last=SIZES[-1] if half is None else 1))
    for candidate in played:
        rules = candidate.controller if half is None else half_of(candidate.controller, half.side)
        trees.append(local_search.polished(from_rules(rules, plan.scale, code)))
    controllers = [to_rules(tree, plan.scale, code, problem) for tree in trees]
    return controllers if half is None else [half.unfold(rules) for rules in controllers]


def choose(
    memory: ReplayMemory,
    code: ActionCode,
    settings: PlanTreeSettings,
    candidates: list[CandidateController],
    rng: Rng,
    *,
    last: bool,
) -> CandidateController:
    """Return the smallest candidate whose score is within the tolerance of the best.

    The score is the mean return in learned plants that the search has not used, less its standard deviation
    over them. For a candidate that has played, the shortfall of its real returns *from the same starts* and
    the standard error of that are subtracted. Nothing can be tried after the last choice: there the others
    lose the mean shortfall, and must be better by a margin; and of the candidates within one standard error
    of the best the smallest is chosen, so that rounding does not decide between 4 leaves and 15.
    """
    scale = Scale.of(memory)
    test = _test(memory, scale, code, settings, rng)
    trees = [from_rules(candidate.controller, scale, code) for candidate in candidates]
    predicted, by_plant = _predicted(test, trees)
    scores = means(predicted) - moments(by_plant)[1]
    played = np.array([bool(candidate.returns) for candidate in candidates])
    shortfall = np.zeros(len(candidates))
    error = np.zeros(len(candidates))
    for i in np.flatnonzero(played):
        candidate = candidates[i]
        predicted_here = _mean_over_plants(test, scale.z(np.array(candidate.starts)), trees[i])
        gap = predicted_here - np.array(candidate.returns)
        spread = deviation(gap, ddof=1) if len(gap) > 1 else deviation(predicted[i])
        error[i] = spread / math.sqrt(len(gap))
        shortfall[i] = mean(gap) + error[i]
    scores -= np.where(played, shortfall, max(0.0, mean(shortfall[played])) if last and played.any() else 0.0)
    if (
        last
        and played.any()
        and scores[played].max() >= _least(scores.max(), _UNTRIED_MARGIN * settings.tolerance)
    ):
        scores[~played] = -np.inf
    best = int(scores.argmax())
    least = np.full(len(candidates), _least(scores[best], settings.tolerance))
    if last:
        standard_error = _standard_error(by_plant, best)
        least -= np.sqrt(standard_error * standard_error + error * error + error[best] * error[best])
    near = [candidate for candidate, ok in zip(candidates, scores >= least, strict=True) if ok]
    return min(near, key=lambda candidate: leaves_to_read(candidate.controller))


def keeps_mirror(
    memory: ReplayMemory,
    code: ActionCode,
    settings: PlanTreeSettings,
    mirrored: list[Controller],
    plain: list[Controller],
    rng: Rng,
) -> bool:
    """Return whether the best controller of a search with a mirror is as good as the best one without.

    Both play from the same starts in plants that are fitted to the steps of the memory without their mirror
    images, and that neither search has used. Without the mirror it must be better by a margin and one
    standard error.
    """
    scale = Scale.of(memory)
    test = _test(memory, scale, code, settings, rng)
    predicted, by_plant = _predicted(
        test, [from_rules(controller, scale, code) for controller in (*mirrored, *plain)]
    )
    scores = means(predicted)
    best = int(scores[: len(mirrored)].argmax())
    other = len(mirrored) + int(scores[len(mirrored) :].argmax())
    least = _least(scores[other], _PLAIN_MARGIN * settings.tolerance)
    return bool(scores[best] >= least - _standard_error(by_plant, best)[other])


def _test(
    memory: ReplayMemory, scale: Scale, code: ActionCode, settings: PlanTreeSettings, rng: Rng
) -> Simulation:
    """Return a simulation in plants that the search has not used, from many starts."""
    samples = draw_samples(len(memory), 1 + _TEST_PLANTS * settings.members, rng)[1:]
    steps = memory.longest
    count = max(_FEWEST, int(settings.effort * _COMPARED)) * min(_LONG, steps) // steps
    return _simulation(memory, scale, code, samples, max(count, 2 * len(samples)), rng)


def _predicted(test: Simulation, trees: list[ControllerTree]) -> tuple[Floats, Floats]:
    """Return the return of each controller from each start, and its mean in each plant.

    Means are relative to those of all controllers: starts that are hard for all do not count as spread.
    """
    predicted = np.array([play_all(test, tree) for tree in trees])
    centred = predicted - means(predicted.T)
    plants = range(len(test.plant.roots))
    return predicted, np.array([means(centred[:, test.member == plant]) for plant in plants])


def _standard_error(by_plant: Floats, best: int) -> Floats:
    """Return the standard error of the difference of each controller from the best, over plants."""
    error = moments(by_plant - by_plant[:, [best]])[1] / math.sqrt(len(by_plant) - 1)
    return np.asarray(error)


def _least(best: float, tolerance: float) -> float:
    return best - tolerance * abs(best)


def _simulation(
    memory: ReplayMemory, scale: Scale, code: ActionCode, samples: list[Ints], count: int, rng: Rng
) -> Simulation:
    """Return a simulation in plants fitted to samples of the memory, each from some of the starts.

    Half of these are starts of episodes, half states nearest to points drawn uniformly from the box of all.
    """
    z = scale.z(memory.states)
    begins = z[memory.begins]
    half = count // 2
    chosen = begins[np.resize(rng.permutation(len(begins)), half)]
    drawn = rng.uniform(z.min(axis=0), z.max(axis=0), (half, z.shape[1]))
    starts = rng.permutation(np.concatenate([chosen, z[nearest(z, drawn)]]))
    return Simulation(
        fit_plant(memory, scale, code, samples, squares=True, margin=CAUTIOUS),
        code.inputs(code.tried(), squares=True),
        starts,
        np.arange(len(starts)) % len(samples),
        memory.longest,
        0.0 if code.listed else _PRICE * deviation(memory.rewards) / 2,
    )


def _mean_over_plants(simulation: Simulation, starts: Floats, tree: ControllerTree) -> Floats:
    """Return the mean return over all plants for every start."""
    plants = len(simulation.plant.roots)
    everywhere = simulation._replace(
        starts=np.repeat(starts, plants, axis=0), member=np.tile(np.arange(plants), len(starts))
    )
    return means(play_all(everywhere, tree).reshape(-1, plants))


class CandidateControllers:
    """Trees that may be chosen: those of the last search, and those that have played."""

    def __init__(self, experience: Experience, explorer: Explorer, settings: PlanTreeSettings) -> None:
        self._experience = experience
        self._explorer = explorer
        self._settings = settings
        self.players: list[CandidateController] = []

    def next_player(self, seed: int, *, anew: bool, last: bool) -> int:
        """Return the index of the next tree to play, after a search if `anew`, which may be the `last`."""
        if anew:
            self.players = self._search(seed, last=last)
        return self.players.index(self._choose(self.players, seed, last=False))

    def controller(self, seed: int, *, anew: bool) -> Controller:
        """Return the controller of all that is known: of a new search, or of those that there are."""
        candidates = [] if anew else self.players
        chosen = self._choose(candidates or self._search(seed, last=True), seed, last=True)
        return with_smallest_half(within_space(chosen.controller), self._experience.mirror)

    def _search(self, seed: int, *, last: bool) -> list[CandidateController]:
        """Return the candidates that have played, and those of a new search.

        The last search is also made without the mirror that was found, which is kept only if it is as good.
        """
        experience = self._experience
        played = [candidate for candidate in self.players if candidate.returns]
        if not len(experience.memory):
            return [CandidateController(idle_rules(experience.code, experience.task))]
        mirror = experience.mirror
        controllers = self._search_with(mirror, played, seed)
        if last and mirror is not None and self._settings.mirror == "auto":
            plain = self._search_with(None, played, seed)
            rng = np.random.default_rng((seed, 2))
            if not keeps_mirror(experience.memory, experience.code, self._settings, controllers, plain, rng):
                experience.drop_mirror()
                controllers = plain
        return played + [CandidateController(controller) for controller in controllers]

    def _search_with(
        self, mirror: Mirror | None, played: list[CandidateController], seed: int
    ) -> list[Controller]:
        """Return the controllers of a search with a mirror, or without one."""
        experience = self._experience
        rng = np.random.default_rng((seed, 0))
        memory = self._mirrored(mirror)
        plan = self._explorer.final_plan(rng, mirror)
        return search(
            memory, plan, experience.code, self._settings, experience.task, played, rng, mirror=mirror
        )

    def _choose(self, candidates: list[CandidateController], seed: int, *, last: bool) -> CandidateController:
        if len(candidates) == 1:
            return candidates[0]
        rng = np.random.default_rng((seed, 1))
        memory = self._mirrored(self._experience.mirror)
        return choose(memory, self._experience.code, self._settings, candidates, rng, last=last)

    def _mirrored(self, mirror: Mirror | None) -> ReplayMemory:
        """Return the memory, with its mirror images if there is a mirror."""
        memory = self._experience.memory
        return memory if mirror is None else mirror.memory(memory)
