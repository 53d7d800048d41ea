"""From a plan to a controller: distil, polish at every size, and choose."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spaql.algorithms.plantree.coding import ActionCode
from spaql.algorithms.plantree.distil import distil
from spaql.algorithms.plantree.dynamics import draw_samples, fit_plant
from spaql.algorithms.plantree.memory import Floats, Memory
from spaql.algorithms.plantree.planning import Plan
from spaql.algorithms.plantree.polish import Workshop
from spaql.algorithms.plantree.rules import from_rules, to_rules
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.kernels.controllers import Controller
from spaql.kernels.plants import Plant
from spaql.kernels.search import Game, play_all
from spaql.policy import RuleTree
from spaql.problems import Problem

_STARTS = 400
"""Starts in learned plants: half of them those of episodes, half spread over what was seen."""
_JUDGED = 100
"""Starts of episodes by which controllers are compared, each in every learned plant."""
_SKETCH = 0.5
"""Effort on a controller that is not the last one."""
_PRICE = 0.01
"""Of a change of the action over its whole range, in standard deviations of the reward."""


@dataclass
class Tried:
    """A controller that has played, and how it fared."""

    rules: RuleTree
    starts: list[Floats] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)


def build(
    memory: Memory,
    plan: Plan,
    code: ActionCode,
    settings: PlanTreeSettings,
    problem: Problem,
    tried: list[Tried],
    rng: np.random.Generator,
    *,
    last: bool,
) -> RuleTree:
    """Make the smallest controller whose return is within the tolerance of the best."""
    scale, z = plan.scale, plan.scale.z(memory.states)
    begins = z[memory.begins]
    actions = code.inputs(code.tried(), squares=True)
    price = 0.0 if code.listed else _PRICE * float(memory.rewards.std()) / 2
    # Half of the learned plants are kept from the search, to judge by what it has not seen.
    samples = draw_samples(len(memory), 2 * settings.members, rng)
    searched, judging = (
        fit_plant(memory, scale, code, some, squares=True, cautious=True)
        for some in (samples[: settings.members], samples[settings.members :])
    )

    def game(plant: Plant, starts: Floats) -> Game:
        member = np.arange(len(starts)) % settings.members
        return Game(plant, actions, starts, member, memory.longest, price)

    def everywhere(starts: Floats) -> Game:
        return game(judging, np.repeat(starts, settings.members, axis=0))

    effort = settings.effort * (1.0 if last else _SKETCH)
    workshop = Workshop(game(searched, _spread(z, begins, rng)), effort, rng)
    judge = everywhere(_some(begins, _JUDGED, rng))
    first = max(
        distil(plan, workshop.game, code, z, settings.leaves, rng),
        key=lambda tree: float(workshop.returns(tree).mean()),
    )
    found = list(workshop.descend(first))
    ready: list[tuple[float, RuleTree]] = []
    shortfall = 0.0
    for one in tried:
        again = from_rules(one.rules, scale, code)
        found.append(workshop.polished(again, 2_000_000))
        if len(one.returns) > 1:
            told = _means(everywhere(scale.z(np.array(one.starts))), again, settings.members)
            missed = told - np.array(one.returns)
            error = float(missed.std(ddof=1) / np.sqrt(len(missed)))
            ready.append((_judged(judge, again) - float(missed.mean()) - error, one.rules))
            shortfall = max(shortfall, float(missed.mean()) - error)
    ready += [(_judged(judge, tree) - shortfall, to_rules(tree, scale, code, problem)) for tree in found]
    best = max(score for score, _ in ready)
    near = [one for one in ready if one[0] >= best - settings.tolerance * abs(best)]
    return min(near, key=lambda one: one[1].n_leaves)[1]


def _means(game: Game, tree: Controller, members: int) -> Floats:
    """Give the mean return over the members, for every start."""
    return np.asarray(play_all(game, tree).reshape(-1, members).mean(axis=1))


def _judged(judge: Game, tree: Controller) -> float:
    """Give the mean return, less its spread among the members."""
    means = play_all(judge, tree).reshape(-1, len(judge.plant.roots)).mean(axis=0)
    return float(means.mean() - means.std())


def _some(rows: Floats, count: int, rng: np.random.Generator) -> Floats:
    return np.asarray(rows[rng.permutation(len(rows))[:count]])


def _spread(z: Floats, begins: Floats, rng: np.random.Generator) -> Floats:
    """Take starts of episodes, and as many states nearest to points drawn evenly from the box of all."""
    half = _STARTS // 2
    chosen = begins[np.resize(rng.permutation(len(begins)), half)]
    drawn = rng.uniform(z.min(axis=0), z.max(axis=0), (half, z.shape[1]))
    nearest = [int(((z - point) ** 2).sum(axis=1).argmin()) for point in drawn]
    return np.asarray(rng.permutation(np.concatenate([chosen, z[nearest]])))
