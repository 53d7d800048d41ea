"""The stages of a ladder: plain structures race, features come and go, a rung is chosen and finished."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from spaql.algorithms.treesearch.evaluator import DIGITS
from spaql.algorithms.treesearch.finish import enough_digits, simplify
from spaql.algorithms.treesearch.ladder.block import Usual
from spaql.algorithms.treesearch.ladder.lqr import lqr_racer, lqr_structure, swing_up_racer
from spaql.algorithms.treesearch.ladder.rungs import SHARE, Rung, choose
from spaql.algorithms.treesearch.ladder.state import FEWEST_JUDGED, Ladder
from spaql.algorithms.treesearch.ladder.structures import CHANGE, CONSTANT, ENERGY, INTEGRAL, NEXT, Structure
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST, Racer
from spaql.algorithms.treesearch.trees import find_leaf, pick, random_cut, split
from spaql.classical import linearise, operating_point
from spaql.controllers.controller import POSITION
from spaql.errors import SettingError
from spaql.kernels.numerics import Rng
from spaql.simulate import EpisodeRunner, Phase

_RACE = 0.2
_ALL = 0.55
_REMOVE = 0.75
_LEAVES = 0.8
_POLISH = 0.86
_TERMS = 0.94
"""The shares of the budget at which the stages end; the rest is for the numbers that are left, and digits."""
_SWING_UP = 0.25
"""The share of the budget for the few numbers of a swing-up."""
_SWINGS = 2
"""How often they are searched: one search alone may end in a swing-up that loses some starts."""
_ROUNDS = 3
"""Rounds of the race."""
_FEW = 1000
"""With a budget of fewer episodes there is one round, of structures without an error in steady state."""
_MOVEMENT = 30
"""The price of movement is a share of so many returns: 3 % for the whole range in every sample."""
_JUDGEMENTS = 40
"""About so many judgements take a tenth of the budget."""
_MEASURED = 8
"""Random controllers by which features are measured."""
_SPLITS = 2
"""Trees of two leaves that are tried."""
_STARTS = 128
"""Starts of a generation when the best rung is polished, if there is room for them."""


def measure(ladder: Ladder, rng: Rng) -> None:
    """Measure the usual magnitudes of features by random laws of the error, and make the racers."""
    evaluator = ladder.evaluator
    ladder.count_steps(ladder.uncounted)
    if ladder.signals.pole:
        ladder.count_steps(ladder.signals.pole.plant.steps)
    point = operating_point(ladder.signals.problem)
    ladder.count_steps(point.steps if point else 0)
    ladder.usual = Usual.about(point)
    for form, more in ladder.signals.more.items():
        base = next(kinds for plain_form, kinds in ladder.signals.plain if plain_form == form)
        kinds = [kind for kind in (*base, *more) if ladder.signals.has((kind,))]
        _measure_features(ladder, Structure(form, base).with_kinds(kinds), rng)
    evaluator.judging_starts = evaluator.starts(rng, ladder.n_judging_starts(_JUDGEMENTS))
    if ladder.signals.pole:
        ladder.stage = "swing_up"
        return
    for form, plain in ladder.signals.plain:
        if ladder.signals.has(plain) and (_n_rounds(ladder) > 1 or {INTEGRAL, CHANGE} & {*plain}):
            block = ladder.block(Structure(form, plain))
            ladder.racers.append((block.structure, Racer.of(block.one_law(), least=1.0)))
    ladder.stage = "race"


def _measure_features(ladder: Ladder, structure: Structure, rng: Rng) -> None:
    """Measure the usual magnitudes of the features of a structure by random laws."""
    evaluator = ladder.evaluator
    block = ladder.use(structure)
    visited = []
    returns = list[float]()
    for _ in range(_MEASURED):
        tree = block.one_law()
        numbers = tree.numbers.copy()
        numbers[0, :, 1:] = rng.standard_normal(numbers.shape[1:] - np.array([0, 1]))
        if structure.form == POSITION:  # of the errors alone: anything else would not rest
            numbers[0, :, 1:] *= [feature.name in ladder.signals.errors for feature in block.features]
        tree = replace(tree, numbers=numbers)
        starts = evaluator.starts(rng, 2)
        played = evaluator.play(tree, starts, Phase.SEARCH, visited=2000)
        visited.append(played.visited)
        returns += played.returns[0].tolist()
    ladder.first_return = sorted(returns)[len(returns) // 2]
    rows = np.concatenate(visited)
    rows = rows[np.isfinite(rows).all(axis=1)]
    sizes = dict(ladder.usual.sizes)
    for j, feature in enumerate(block.features):
        size = float(np.sqrt(math.fsum((rows[:, j] ** 2).tolist()) / max(1, len(rows))))
        sizes[feature.name] = float(f"{size:.2g}") if size > 0 else 1.0
    ladder.usual = ladder.usual._replace(sizes=sizes)


def swing_up(ladder: Ladder, rng: Rng) -> None:
    """Search the few numbers of energy pumping with a regulator at the top, and keep the best."""
    assert ladder.signals.pole is not None
    ((form, kinds),) = ladder.signals.plain
    block = ladder.use(Structure(form, kinds).with_kinds((*kinds, ENERGY)))
    racers = [swing_up_racer(block, ladder.signals.pole) for _ in range(_SWINGS)]
    steps = _SWING_UP * ladder.budget / _SWINGS
    for racer in racers:
        racer.run(ladder.evaluator, steps, 2 * steps, rng)
    tried = priced(ladder, [ladder.judge(block.structure, racer.found) for racer in racers])
    ladder.climb(max(tried, key=lambda rung: rung.score))
    ladder.stage = "remove"


def race(ladder: Ladder, rng: Rng) -> None:
    """Give the next racer its share of a round; at the end of a round keep the better half.

    After the first round, each of these races against itself with a derivative.
    """
    share = _RACE / _n_rounds(ladder) * ladder.budget / len(ladder.racers)
    structure, racer = ladder.racers[ladder.turn]
    ladder.use(structure)
    racer.run(ladder.evaluator, share, 2 * share, rng)
    ladder.turn += 1
    if ladder.turn < len(ladder.racers):
        return
    tried = [ladder.judge(structure, racer.found) for structure, racer in ladder.racers]
    if ladder.round == 0:
        tried = priced(ladder, tried)
    for rung in tried:
        ladder.climb(rung)
    order = sorted(range(len(tried)), key=lambda i: -tried[i].score)
    kept = sorted(order[: max(1, len(order) // 2)])
    ladder.racers = [ladder.racers[i] for i in kept]
    if ladder.round == 0:
        ladder.racers += [_with_derivative(ladder, tried[i]) for i in kept]
    ladder.round = ladder.round + 1
    ladder.turn = 0
    if ladder.round == _n_rounds(ladder):
        ladder.stage = "all"


def _n_rounds(ladder: Ladder) -> int:
    """Return the rounds of the race: with few episodes, judging more would leave none for the regulator."""
    return _ROUNDS if ladder.budget >= _FEW * ladder.evaluator.horizon else 1


def priced(ladder: Ladder, tried: list[Rung]) -> list[Rung]:
    """Give movement its price from now on, by the best of what was tried; returns that with its price."""
    ladder.evaluator.span = _MOVEMENT * abs(max(rung.score for rung in tried))
    return [replace(rung, price=ladder.evaluator.price) for rung in tried]


def _with_derivative(ladder: Ladder, rung: Rung) -> tuple[Structure, Racer]:
    """Return a racer that begins at a rung, with a derivative besides."""
    structure = rung.structure.with_kinds((*rung.structure.kinds, NEXT[rung.structure.form]))
    tree = ladder.block(structure).like(rung.tree, ladder.block(rung.structure))
    return structure, Racer.of(tree, step=0.3)


def add_all(ladder: Ladder, rng: Rng) -> None:
    """Give the best structure of each form all kinds of features that there are."""
    more = ladder.signals.more
    share = (_ALL - _RACE) * ladder.budget / (len(more) + 1)
    _regulate(ladder, share, rng)
    for form in more:
        rung = max(
            (rung for rung in ladder.rungs if rung.structure.form == form), key=lambda rung: rung.score
        )
        kinds = [kind for kind in more[form] if ladder.signals.has((kind,))]
        if ladder.usual.action:  # it is the constant
            kinds = [kind for kind in kinds if kind != CONSTANT]
        _try(ladder, rung.structure.with_kinds((*rung.structure.kinds, *kinds)), rung, share, rng)
    ladder.stage = "remove"
    ladder.turn = 0
    ladder.racers = []


def _regulate(ladder: Ladder, steps: float, rng: Rng) -> None:
    """Search from the linear regulator of the plant, if it has one: its weights first, then its gains."""
    try:
        plant = linearise(ladder.signals.problem)
    except SettingError:  # there are no equations, or no rest
        return
    ladder.count_steps(plant.steps)
    block = ladder.use(lqr_structure(ladder.signals, plant))
    racers = [lqr_racer(block, plant)]
    racers[0].run(ladder.evaluator, steps / 2, steps, rng)
    racers.append(Racer.of(racers[0].found, least=0.05, step=0.3))
    racers[1].run(ladder.evaluator, steps / 2, steps, rng)
    tried = [ladder.judge(block.structure, racer.found) for racer in racers]
    ladder.climb(max(tried, key=lambda rung: rung.score))


def _try(ladder: Ladder, structure: Structure, source: Rung, steps: float, rng: Rng) -> None:
    """Search the numbers of a structure, beginning with those of a rung, and climb if it pays."""
    block = ladder.use(structure)
    racer = Racer.of(block.like(source.tree, ladder.block(source.structure)), step=0.3)
    racer.run(ladder.evaluator, steps, 2 * steps, rng)
    ladder.climb(ladder.judge(structure, racer.found))


def remove_kinds(ladder: Ladder, rng: Rng) -> None:
    """Remove each kind of feature: first of the rung with the highest score, then of the chosen one."""
    first = max(ladder.rungs, key=lambda rung: rung.score)
    rung = ladder.chosen if ladder.turn else first
    ladder.turn += 1
    kinds = [kind for kind in rung.structure.kinds if kind in ladder.signals.more[rung.structure.form]]
    if not kinds or ladder.spent >= _REMOVE * ladder.budget:
        ladder.stage = "leaves"
        cut_law(ladder, rng)
        return
    share = (_REMOVE - _ALL) * ladder.budget / 10
    for kind in kinds:
        others = [other for other in rung.structure.kinds if other != kind]
        _try(ladder, rung.structure.with_kinds(others), rung, share, rng)
    if ladder.chosen is rung:
        ladder.stage = "leaves"


def cut_law(ladder: Ladder, rng: Rng) -> None:
    """Cut the law in two."""
    rung = ladder.chosen
    if ladder.settings.max_leaves > rung.tree.n_leaves and not ladder.signals.pole:
        ladder.use(rung.structure)
        for _ in range(_SPLITS):
            states = ladder.evaluator.visited(rung.tree, 2000, rng)
            state = pick(states, rng)
            cut = random_cut(state, rng)
            tree = split(rung.tree, find_leaf(rung.tree, state), *cut)
            racer = Racer.of(tree, step=0.3)
            share = (_LEAVES - _REMOVE) * ladder.budget / _SPLITS
            racer.run(ladder.evaluator, share, 2 * share, rng)
            ladder.climb(ladder.judge(rung.structure, racer.found))
    ladder.stage = "choose"


def choose_rung(ladder: Ladder, rng: Rng) -> None:
    """Choose a rung by an evaluation of all of them from the same starts.

    They are fresh ones, if a tenth of the budget is enough: the best of the search may have been lucky.
    """
    evaluator = ladder.evaluator
    judgements = len(ladder.rungs)
    is_affordable = ladder.affordable_starts(judgements) >= FEWEST_JUDGED
    if is_affordable or not len(evaluator.judging_starts):
        evaluator.judging_starts = evaluator.starts(rng, ladder.n_judging_starts(judgements))
        ladder.rungs = [ladder.judge(rung.structure, rung.tree) for rung in ladder.rungs]
    ladder.rungs = [
        replace(rung, nominal=ladder.nominal_of(ladder.use(rung.structure), rung.tree))
        for rung in ladder.rungs
    ]
    ladder.best = choose(ladder.rungs)
    rung = ladder.chosen
    ladder.racers = [(rung.structure, Racer.of(rung.tree, step=0.3))]
    ladder.stage = "polish"


def polish(ladder: Ladder, rng: Rng) -> None:
    """Go on with the best rung, by more starts in each generation."""
    structure, racer = ladder.racers[0]
    ladder.use(structure)
    steps = min(0.06 * ladder.budget, _POLISH * ladder.budget - ladder.spent)
    _search(ladder, racer, steps, ladder.budget / 2, rng, _STARTS, LEAST_OF_BEST)
    ladder.replace_best(ladder.judge(structure, racer.found))
    if ladder.spent + ladder.evaluator.steps >= _POLISH * ladder.budget:
        ladder.stage = "terms"


def remove_terms(ladder: Ladder, rng: Rng) -> None:
    """Remove terms that do not pay, unless the controller would rest elsewhere."""
    rung = ladder.chosen
    block = ladder.use(rung.structure)
    left = _TERMS * ladder.budget - ladder.spent
    assert rung.nominal is not None
    error = max(2 * rung.nominal.at_rest, 0.01 * _largest_error(ladder))
    tree = simplify(
        ladder.evaluator,
        rung.tree,
        rung.score,
        left,
        SHARE * abs(rung.score),
        lambda tree: ladder.nominal_of(block, tree).at_rest <= error,
    )
    structure = block.plainer(tree)  # what no term uses is not part of it
    less = ladder.block(structure).like(tree, block)
    tree = replace(less, free=less.free & (less.numbers != 0.0))
    del ladder.rungs[ladder.best]  # it becomes the one with fewer terms
    ladder.climb(ladder.judge(structure, tree))
    ladder.digits = DIGITS
    ladder.stage = "last"


def _largest_error(ladder: Ladder) -> float:
    return max(ladder.usual.sizes[name] for name in ladder.signals.errors)


def finish(ladder: Ladder, rng: Rng) -> None:
    """Go on with the numbers that are left, and round them."""
    judgements = 4 * len(ladder.evaluator.judging_starts) * ladder.evaluator.judged_length  # also of digits
    _go_on(ladder, ladder.budget - ladder.spent - judgements, rng)
    rung = ladder.chosen
    ladder.digits = enough_digits(ladder.evaluator, rung.tree, rung.score, SHARE * abs(rung.score))
    ladder.stage = "done"


def spend_rest(ladder: Ladder, rng: Rng) -> None:
    """Spend what is left of the budget on the best rung."""
    _go_on(ladder, max(1, ladder.budget - ladder.spent), rng)


def _go_on(ladder: Ladder, steps: float, rng: Rng) -> None:
    """Search the numbers of the best rung for so many steps."""
    rung = ladder.chosen
    ladder.use(rung.structure)
    racer = Racer.of(rung.tree, step=0.1)
    _search(ladder, racer, steps, ladder.budget / 4, rng)
    ladder.replace_best(ladder.judge(rung.structure, racer.found))


def _search(ladder: Ladder, racer: Racer, steps: float, plan: float, rng: Rng, *starts: int) -> None:
    """Search the numbers of the best rung; a pole is swung up from hard starts again and again.

    A swing-up that is a little too fast fails from a few starts only. Judgements are without hard starts:
    rungs that are judged at different times are compared.
    """
    ladder.evaluator.keeps_hard_starts = ladder.signals.pole is not None
    racer.run(ladder.evaluator, steps, plan, rng, *starts)
    ladder.evaluator.keeps_hard_starts = False


STAGES: Mapping[str, Callable[[Ladder, Rng], None]] = {
    "measure": measure,
    "swing_up": swing_up,
    "race": race,
    "all": add_all,
    "remove": remove_kinds,
    "leaves": cut_law,
    "choose": choose_rung,
    "polish": polish,
    "terms": remove_terms,
    "last": finish,
    "done": spend_rest,
}
"""What an iteration does in each stage; a stage lasts for some iterations, and names the next one."""

PHASES: Mapping[str, str] = {
    "measure": "first episodes",
    "swing_up": "race of swing-ups",
    "race": "race of P, PI, PID and others",
    "all": "trying all features",
    "remove": "removing features",
    "leaves": "adding leaves",
    "choose": "choosing a structure",
    "polish": "polishing",
    "terms": "removing terms",
    "last": "rounding",
    "done": "polishing",
}
"""The stages in words."""


def advance(ladder: Ladder, runner: EpisodeRunner, rng: Rng) -> None:
    """Search for a part of the budget."""
    evaluator = ladder.evaluator
    evaluator.runner = runner
    evaluator.steps = 0
    evaluator.plant = ladder.design
    evaluator.check_starts()
    STAGES[ladder.stage](ladder, rng)
    ladder.spent += evaluator.steps
    evaluator.runner = None


def consider(ladder: Ladder, other: Ladder, runner: EpisodeRunner) -> None:
    """Judge the best controller of another ladder in this one's plant; it may be the best here, too."""
    evaluator = ladder.evaluator
    rung = other.chosen
    evaluator.runner = runner
    evaluator.plant = ladder.design
    tree = ladder.block(rung.structure).like(rung.tree, other.block(rung.structure))
    best = ladder.chosen
    ladder.climb(ladder.judge(rung.structure, tree))
    if ladder.chosen is not best:
        ladder.digits = DIGITS
    evaluator.runner = None
