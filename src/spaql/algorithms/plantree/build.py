"""From a plan to a controller: search for candidates, and choose among them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.plantree.coding import ActionCode, Scale
from spaql.algorithms.plantree.distil import distil
from spaql.algorithms.plantree.dynamics import CAUTIOUS, draw_samples, fit_plant
from spaql.algorithms.plantree.exact_sums import deviation, mean, means, moments
from spaql.algorithms.plantree.memory import Floats, Memory
from spaql.algorithms.plantree.planning import Plan
from spaql.algorithms.plantree.polish import Workshop
from spaql.algorithms.plantree.rules import from_rules, to_rules
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.kernels.plantree.controllers import Controller
from spaql.kernels.plantree.rollout import Game, play_all
from spaql.kernels.plantree.value_cells import nearest
from spaql.policy import RuleTree
from spaql.problems import Problem

_STARTS = 400
"""Starts of the search: half of them those of episodes, half spread over what was seen."""
_JUDGED, _FEWEST = 1000, 100
"""Such starts by which candidates are compared, and at least."""
_LONG = 1000
"""Steps after which the search ends an episode; candidates are compared by whole ones, from fewer starts."""
_JUDGES = 2
"""Plants to judge in, for each one to search in."""
_DOUBT = 5
"""Tolerances by which what never played must be better, to be the last choice."""
_PRICE = 0.01
"""Of a change of the action over its whole range, in standard deviations of the reward."""


@dataclass(eq=False)
class Candidate:
    """A controller that may be chosen, and how it fared if it has played."""

    rules: RuleTree
    starts: list[Floats] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)


def search(
    memory: Memory,
    plan: Plan,
    code: ActionCode,
    settings: PlanTreeSettings,
    problem: Problem,
    played: list[Candidate],
    rng: np.random.Generator,
) -> list[RuleTree]:
    """Write the plan down as controllers of many sizes, and try to improve those that have played."""
    z = plan.scale.z(memory.states)
    game = _game(memory, plan.scale, code, draw_samples(len(memory), settings.members, rng))
    game = _from(game, _spread(z, z[memory.begins], _STARTS, rng))._replace(steps=min(game.steps, _LONG))
    workshop = Workshop(game, settings.effort, rng)
    first = max(
        distil(plan, workshop.game, code, z, settings.leaves, rng),
        key=lambda tree: mean(workshop.returns(tree)),
    )
    found = list(workshop.descend(first))
    found += [workshop.polished(from_rules(one.rules, plan.scale, code)) for one in played]
    return [to_rules(tree, plan.scale, code, problem) for tree in found]


def choose(
    memory: Memory,
    code: ActionCode,
    settings: PlanTreeSettings,
    candidates: list[Candidate],
    rng: np.random.Generator,
    *,
    last: bool,
) -> Candidate:
    """Choose the smallest candidate whose return is within the tolerance of the best.

    A candidate is worth its mean return in learned plants that no search has seen, less its spread among
    them. One that has played loses what it fell short of that *from the same starts*, and the standard error
    of this. Nothing can be tried after the last choice: there the others lose what those lost on average, and
    must be better by far; and of those that cannot be told from the best, by one standard error of the
    difference, the smallest is chosen, so that rounding does not decide between 4 leaves and 15.
    """
    scale = Scale.of(memory)
    z = scale.z(memory.states)
    samples = draw_samples(len(memory), 1 + _JUDGES * settings.members, rng)[1:]
    game = _game(memory, scale, code, samples)
    count = max(_FEWEST, int(settings.effort * _JUDGED)) * min(_LONG, game.steps) // game.steps
    judge = _from(game, _spread(z, z[memory.begins], max(count, 2 * len(samples)), rng))
    trees = [from_rules(one.rules, scale, code) for one in candidates]
    told = np.array([play_all(judge, tree) for tree in trees])
    # Against the mean of all candidates, starts that are hard for everybody do not count as spread.
    beyond = told - means(told.T)
    by_plant = np.array([means(beyond[:, judge.member == member]) for member in range(len(samples))])
    scores = means(told) - moments(by_plant)[1]
    played = np.array([bool(one.returns) for one in candidates])
    fell, error = np.zeros(len(candidates)), np.zeros(len(candidates))
    for i in np.flatnonzero(played):
        one = candidates[i]
        missed = _everywhere_mean(game, scale.z(np.array(one.starts)), trees[i]) - np.array(one.returns)
        spread = deviation(missed, lost=1) if len(missed) > 1 else deviation(told[i])
        error[i] = spread / math.sqrt(len(missed))
        fell[i] = mean(missed) + error[i]
    scores -= np.where(played, fell, max(0.0, mean(fell[played])) if last and played.any() else 0.0)
    if last and played.any() and scores[played].max() >= _least(scores.max(), _DOUBT * settings.tolerance):
        scores[~played] = -np.inf
    best = int(scores.argmax())
    least = np.full(len(candidates), _least(scores[best], settings.tolerance))
    if last:
        apart = moments(by_plant - by_plant[:, [best]])[1] / math.sqrt(len(samples) - 1)
        least -= np.sqrt(apart * apart + error * error + error[best] * error[best])
    near = [one for one, ok in zip(candidates, scores >= least, strict=True) if ok]
    return min(near, key=lambda one: one.rules.n_leaves)


def _least(best: float, tolerance: float) -> float:
    return best - tolerance * abs(best)


def _game(memory: Memory, scale: Scale, code: ActionCode, samples: list[NDArray[np.int64]]) -> Game:
    """Give the plants fitted to samples of the memory, without starts."""
    plant = fit_plant(memory, scale, code, samples, squares=True, margin=CAUTIOUS)
    actions = code.inputs(code.tried(), squares=True)
    price = 0.0 if code.listed else _PRICE * deviation(memory.rewards) / 2
    nowhere = np.empty((0, memory.states.shape[1]))
    return Game(plant, actions, nowhere, np.empty(0, np.int64), memory.longest, price)


def _from(game: Game, starts: Floats) -> Game:
    """Play from starts, each in one of the plants."""
    return game._replace(starts=starts, member=np.arange(len(starts)) % len(game.plant.roots))


def _everywhere_mean(game: Game, starts: Floats, tree: Controller) -> Floats:
    """Give the mean return over all plants, for every start."""
    plants = len(game.plant.roots)
    return means(play_all(_from(game, np.repeat(starts, plants, axis=0)), tree).reshape(-1, plants))


def _spread(z: Floats, begins: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Take starts of episodes, and as many states nearest to points drawn evenly from the box of all."""
    half = count // 2
    chosen = begins[np.resize(rng.permutation(len(begins)), half)]
    drawn = rng.uniform(z.min(axis=0), z.max(axis=0), (half, z.shape[1]))
    return np.asarray(rng.permutation(np.concatenate([chosen, z[nearest(z, drawn)]])))
