"""The ladder: from the plainest controller with memory to one that does the job, and no further.

P, PD, PI and PID controllers are raced, in position and velocity form, and the linear regulator of the plant
is tried. The best of each form is given all that the problem declares, and loses again what does not pay: a
kind of feature that stays gains more than 1 %, and wins a paired test. Leaves are added by the same rule.
Each structure that was tried is a rung. All rungs are evaluated from the same starts, by which one is chosen
(see `choose`) and which are printed. A pole that is to be swung up begins with energy pumping and a regulator
at the top instead, by few numbers, before all numbers are searched.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from spaql.algorithms.treesearch.block import Block, Usual
from spaql.algorithms.treesearch.evaluator import DIGITS, Evaluator
from spaql.algorithms.treesearch.finish import enough_digits, simplify
from spaql.algorithms.treesearch.lqr import lqr_racer, lqr_structure, swing_up_racer
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST, Racer
from spaql.algorithms.treesearch.rungs import SHARE, Nominal, Rung, choose
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.algorithms.treesearch.structures import CONSTANT, ENERGY, NEXT, Meaning, Structure
from spaql.algorithms.treesearch.trees import CandidateTree, Rng, find_leaf, random_cut, split
from spaql.classical import linearise, operating_point
from spaql.controllers import Controller
from spaql.controllers.controller import POSITION
from spaql.errors import SettingError
from spaql.kernels.treesearch.candidates import Floats
from spaql.problems import Dynamics
from spaql.problems.disturbances import Perturbation
from spaql.problems.perturbed import perturbed
from spaql.problems.setpoint_steps import SetpointSteps, with_setpoint_steps
from spaql.simulate import EpisodeRunner, Phase

RACE, ALL, REMOVE, LEAVES, POLISH, TERMS = 0.2, 0.55, 0.75, 0.8, 0.86, 0.94
"""The shares of the budget at which the stages end; the rest is for the numbers that are left, and digits."""
_SWING_UP = 0.25
"""The share of the budget for the few numbers of a swing-up."""
_SWINGS = 2
"""So many times they are searched: one search alone may end in a swing-up that loses some starts."""
_ROUNDS = 3
"""Rounds of the race."""
_MOVEMENT = 30
"""The price of movement is a share of so many returns: 3 % for the whole range in every sample."""
_JUDGED = (30, 200)
"""Starts of a judgement, at least and at most."""
_JUDGEMENTS = 40
"""About so many judgements take a tenth of the budget."""
_STARTS = 128
"""Starts of a generation when the best rung is polished, if there is room for them."""
_RESTED = 16
"""Episodes by which the error at rest is measured."""
_MEASURED = 8
"""Random controllers by which features are measured."""
_SPLITS = 2
"""Trees of two leaves that are tried."""
BEFORE_CHOICE = ("measure", "swing_up", "race", "all", "remove", "leaves", "choose")
STAGES = (*BEFORE_CHOICE, "polish", "terms", "last", "done")


class Ladder:
    """The state of a search for a controller with memory; each call of `advance` is an iteration."""

    def __init__(self, settings: TreeSearchSettings, evaluator: Evaluator, meaning: Meaning) -> None:
        self.settings = settings
        self.evaluator = evaluator
        self.meaning = meaning
        evaluator.keeps_hard_starts = False  # see `_search`
        plant = meaning.problem.dynamics
        self.design: Dynamics | Perturbation | None = None
        """The plant to design for, if it is not the plant itself: one whose set-points step, and a perturbed
        one unless the design is to be nominal; of a learned plant, how it is perturbed."""
        self.setpoint_steps: SetpointSteps | None = None
        """How set-points step in the episodes of the search."""
        self._uncounted = 0
        """Simulator steps that were made before the first iteration."""
        if plant is not None:
            goals = [r for _, r in meaning.problem.setpoint_places]
            self.setpoint_steps, self._uncounted = with_setpoint_steps(plant, goals, meaning.problem.horizon)
            stepped = self.setpoint_steps.plant if self.setpoint_steps else None
            self.design = stepped if settings.nominal else perturbed(stepped or plant)
        self.budget = 0
        self.spent = 0
        self.stage = "measure"
        self.usual = Usual({})
        """Usual magnitudes of features, and the operating point."""
        self.racers: list[tuple[Structure, Racer]] = []
        self.round = 0
        self.turn = 0
        self.rungs: list[Rung] = []
        self.best = 0
        """The rung that would be returned."""
        self.digits = DIGITS
        self.first_return = 0.0
        """Median return of random controllers."""

    @property
    def incumbent(self) -> Rung | None:
        """The best rung so far."""
        return self.rungs[self.best] if self.rungs else None

    @property
    def controller(self) -> Controller:
        """The best controller so far; before the first, an idle one."""
        if not self.rungs:
            block = self.block(Structure(*self.meaning.plain[0]))
            return block.controller(block.one_law())
        rung = self.rungs[self.best]
        return self.block(rung.structure).controller(rung.tree, self.digits)

    def rows(self) -> list[dict[str, Any]]:
        """Return what a person wants to know of each rung, the plainest first; the best is marked.

        Measures of the plant's own episodes are None before the choice.
        """
        rows = [rung.row() | {"chosen": i == self.best} for i, rung in enumerate(self.rungs)]
        return sorted(rows, key=lambda row: (row["leaves"], row["numbers"]))

    def notes(self) -> list[str]:
        """Return, in sentences, how the episodes of the design differ from the plant's own, and its start."""
        notes = list[str]()
        meaning = self.meaning
        if self.setpoint_steps is not None:
            first, end = self.setpoint_steps.begins
            notes.append(
                f"Set-points step in half of the training episodes, between samples {first} and {end}, to "
                "those of another start. Evaluations are of the plant's own episodes, without such a step."
            )
        if self.usual.action:
            held = ", ".join(
                f"{n} = {x:.3g}" for n, x in zip(meaning.actions, self.usual.action, strict=True)
            )
            notes.append(f"The search began at the operating point: {held}.")
        plant = meaning.problem.dynamics
        if plant is not None and self.usual.action and (plant.disturbances.delay[1] or plant.rate_limit):
            ends = zip(meaning.actions, plant.disturbances.low, plant.disturbances.high, strict=True)
            resting = [f"{n} at {a if a > 0 else b:.3g}" for n, a, b in ends if a > 0 or b < 0]
            if resting:
                notes.append(
                    "Before the first action the actuator rests at the end of its range next to 0 "
                    f"({', '.join(resting)}), and not at the operating point: declare the action as a "
                    "deviation from it if that is not meant."
                )
        return notes

    def plan(self, budget: int) -> None:
        """Begin a search of so many steps, or go on from the best rung of a ladder that has been climbed."""
        self.budget = budget
        self.spent = 0
        self.round = 0
        self.turn = 0
        self.stage = "measure"
        if self.rungs:
            self.stage = "polish" if len(self.evaluator.judging_starts) else "choose"
        self.racers = []
        if self.rungs:
            rung = self.rungs[self.best]
            self.racers = [(rung.structure, Racer.of(rung.tree, step=0.3))]

    def begin_at(self, other: Ladder) -> None:
        """Begin at the best rung of a ladder that was climbed in another form of the plant."""
        rung = other.rungs[other.best]
        self.rungs = [rung]
        self.best = 0
        self.usual = other.usual
        self.evaluator.span = other.evaluator.span
        self.first_return = other.first_return

    def consider(self, other: Ladder, runner: EpisodeRunner) -> None:
        """Judge the best controller of another ladder in this one's plant; it may be the best here, too."""
        evaluator = self.evaluator
        rung = other.rungs[other.best]
        evaluator.runner = runner
        evaluator.plant = self.design
        tree = self.block(rung.structure).like(rung.tree, other.block(rung.structure))
        best = self.rungs[self.best]
        self._climb(self._judged(rung.structure, tree))
        if self.rungs[self.best] is not best:
            self.digits = DIGITS
        evaluator.runner = None

    def advance(self, runner: EpisodeRunner, rng: Rng) -> None:
        """Search for a part of the budget."""
        evaluator = self.evaluator
        evaluator.runner = runner
        evaluator.steps = 0
        evaluator.plant = self.design
        evaluator.check_starts()
        getattr(self, f"_{self.stage}")(rng)
        self.spent += evaluator.steps
        evaluator.runner = None

    # -- stages ------------------------------------------------------------------------------------------

    def _measure(self, rng: Rng) -> None:
        """Measure the usual magnitudes of features by random laws of the error, and make the racers."""
        evaluator = self.evaluator
        self._count(self._uncounted)
        if self.meaning.pole:
            self._count(self.meaning.pole.plant.steps)
        point = operating_point(self.meaning.problem)
        self._count(point.steps if point else 0)
        self.usual, sizes = Usual.about(point), dict[str, float]()
        for form, more in self.meaning.more.items():
            base = next(kinds for one, kinds in self.meaning.plain if one == form)
            kinds = [kind for kind in (*base, *more) if self.meaning.has((kind,))]
            structure = Structure(form, base).with_kinds(kinds)
            seen = []
            returns = list[float]()
            for _ in range(_MEASURED):
                block = self._use(structure)
                tree = block.one_law()
                numbers = tree.numbers.copy()
                numbers[0, :, 1:] = rng.standard_normal(numbers.shape[1:] - np.array([0, 1]))
                if form == POSITION:  # of the errors alone: anything else would not rest
                    errors = np.array([one.name in self.meaning.errors for one in block.features])
                    numbers[0, :, 1:] *= errors
                tree = CandidateTree(
                    tree.left, numbers, tree.free, tree.allowed, tree.locked, tree.exact, listed=False
                )
                found = evaluator.play(
                    tree, tree.vector[np.newaxis], evaluator.starts(rng, 2), Phase.SEARCH, visited=2000
                )
                seen.append(found.visited)
                returns += found.returns[0].tolist()
            self.first_return = sorted(returns)[len(returns) // 2]
            rows = np.concatenate(seen)
            rows = rows[np.isfinite(rows).all(axis=1)]
            for j, feature in enumerate(block.features):
                size = float(np.sqrt(math.fsum((rows[:, j] ** 2).tolist()) / max(1, len(rows))))
                sizes[feature.name] = float(f"{size:.2g}") if size > 0 else 1.0
            self.usual = self.usual._replace(sizes=dict(sizes))
        evaluator.judging_starts = evaluator.starts(rng, self._judged_starts(_JUDGEMENTS))
        if self.meaning.pole:
            self.stage = "swing_up"
            return
        for form, plain in self.meaning.plain:
            if self.meaning.has(plain):
                block = self.block(Structure(form, plain))
                self.racers.append((block.structure, Racer.of(block.one_law(), least=1.0)))
        self.stage = "race"

    def _swing_up(self, rng: Rng) -> None:
        """Search the few numbers of energy pumping with a regulator at the top, and keep the best."""
        assert self.meaning.pole is not None
        ((form, kinds),) = self.meaning.plain
        block = self._use(Structure(form, kinds).with_kinds((*kinds, ENERGY)))
        racers = [swing_up_racer(block, self.meaning.pole) for _ in range(_SWINGS)]
        steps = _SWING_UP * self.budget / _SWINGS
        for racer in racers:
            racer.run(self.evaluator, steps, 2 * steps, rng)
        tried = self._priced([self._judged(block.structure, one.found) for one in racers])
        self._climb(max(tried, key=lambda rung: rung.score))
        self.stage = "remove"

    def _race(self, rng: Rng) -> None:
        """Give the next racer its share of a round; at the end of a round keep the better half.

        After the first round, each of these races against itself with a derivative.
        """
        share = RACE / _ROUNDS * self.budget / len(self.racers)
        structure, racer = self.racers[self.turn]
        self._use(structure)
        racer.run(self.evaluator, share, 2 * share, rng)
        self.turn += 1
        if self.turn < len(self.racers):
            return
        tried = [self._judged(structure, racer.found) for structure, racer in self.racers]
        if self.round == 0:
            tried = self._priced(tried)
        for rung in tried:
            self._climb(rung)
        order = sorted(range(len(tried)), key=lambda i: -tried[i].score)
        kept = sorted(order[: max(1, len(order) // 2)])
        self.racers = [self.racers[i] for i in kept]
        if self.round == 0:
            self.racers += [self._with_derivative(tried[i]) for i in kept]
        self.round = self.round + 1
        self.turn = 0
        if self.round == _ROUNDS:
            self.stage = "all"

    def _priced(self, tried: list[Rung]) -> list[Rung]:
        """Give movement its price from now on, by the best of what was tried; returns that with its price."""
        self.evaluator.span = _MOVEMENT * abs(max(rung.score for rung in tried))
        return [rung.priced(self.evaluator.price) for rung in tried]

    def _with_derivative(self, rung: Rung) -> tuple[Structure, Racer]:
        """Return a racer that begins at a rung, with a derivative besides."""
        structure = rung.structure.with_kinds((*rung.structure.kinds, NEXT[rung.structure.form]))
        tree = self.block(structure).like(rung.tree, self.block(rung.structure))
        return structure, Racer.of(tree, step=0.3)

    def _all(self, rng: Rng) -> None:
        """Give the best structure of each form all kinds of features that there are."""
        more = self.meaning.more
        share = (ALL - RACE) * self.budget / (len(more) + 1)
        self._regulate(share, rng)
        for form in more:
            rung = max((one for one in self.rungs if one.structure.form == form), key=lambda one: one.score)
            kinds = [kind for kind in more[form] if self.meaning.has((kind,))]
            if self.usual.action:  # it is the constant
                kinds = [kind for kind in kinds if kind != CONSTANT]
            self._try(rung.structure.with_kinds((*rung.structure.kinds, *kinds)), rung, share, rng)
        self.stage = "remove"
        self.turn = 0
        self.racers = []

    def _regulate(self, steps: float, rng: Rng) -> None:
        """Search from the linear regulator of the plant, if it has one: its weights first, then its gains."""
        try:
            plant = linearise(self.meaning.problem)
        except SettingError:  # there are no equations, or no rest
            return
        self._count(plant.steps)
        block = self._use(lqr_structure(self.meaning, plant))
        racers = [lqr_racer(block, plant)]
        racers[0].run(self.evaluator, steps / 2, steps, rng)
        racers.append(Racer.of(racers[0].found, least=0.05, step=0.3))
        racers[1].run(self.evaluator, steps / 2, steps, rng)
        tried = [self._judged(block.structure, one.found) for one in racers]
        self._climb(max(tried, key=lambda rung: rung.score))

    def _count(self, steps: int) -> None:
        """Count steps of the plant that are not of an episode."""
        assert self.evaluator.runner is not None
        self.evaluator.runner.interactions.add(Phase.SEARCH, steps)
        self.evaluator.steps += steps

    def _remove(self, rng: Rng) -> None:
        """Remove each kind of feature: first of the rung with the highest score, then of the chosen one."""
        first = max(self.rungs, key=lambda one: one.score)
        rung = self.rungs[self.best] if self.turn else first
        self.turn += 1
        kinds = [kind for kind in rung.structure.kinds if kind in self.meaning.more[rung.structure.form]]
        if not kinds or self.spent >= REMOVE * self.budget:
            self.stage = "leaves"
            self._leaves(rng)
            return
        share = (REMOVE - ALL) * self.budget / 10
        for kind in kinds:
            left = [one for one in rung.structure.kinds if one != kind]
            self._try(rung.structure.with_kinds(left), rung, share, rng)
        if self.rungs[self.best] is rung:
            self.stage = "leaves"

    def _leaves(self, rng: Rng) -> None:
        """Cut the law in two."""
        rung = self.rungs[self.best]
        if self.settings.max_leaves > rung.tree.n_leaves and not self.meaning.pole:
            self._use(rung.structure)
            for _ in range(_SPLITS):
                found = self.evaluator.visited(rung.tree, 2000, rng)
                state = found[int(rng.integers(len(found)))]
                cut = random_cut(state, rng)
                tree = split(rung.tree, find_leaf(rung.tree, state), *cut)
                racer = Racer.of(tree, step=0.3)
                share = (LEAVES - REMOVE) * self.budget / _SPLITS
                racer.run(self.evaluator, share, 2 * share, rng)
                self._climb(self._judged(rung.structure, racer.found))
        self.stage = "choose"

    def _choose(self, rng: Rng) -> None:
        """Choose a rung by an evaluation of all of them from the same starts.

        They are fresh ones, if a tenth of the budget is enough: the best of the search may have been lucky.
        """
        evaluator = self.evaluator
        n = self._affordable(len(self.rungs))
        if n >= _JUDGED[0] or not len(evaluator.judging_starts):
            evaluator.judging_starts = evaluator.starts(rng, min(max(n, _JUDGED[0]), _JUDGED[1]))
            self.rungs = [self._judged(one.structure, one.tree) for one in self.rungs]
        self.rungs = [self._measured(one) for one in self.rungs]
        self.best = choose(self.rungs)
        rung = self.rungs[self.best]
        self.racers = [(rung.structure, Racer.of(rung.tree, step=0.3))]
        self.stage = "polish"

    def _judged_starts(self, judgements: int) -> int:
        """Return the number of starts of which so many judgements take a tenth of the budget."""
        return min(max(self._affordable(judgements), _JUDGED[0]), _JUDGED[1])

    def _affordable(self, judgements: int) -> int:
        return int(0.1 * self.budget / (judgements * self.evaluator.length))

    def _polish(self, rng: Rng) -> None:
        """Go on with the best rung, by more starts in each generation."""
        structure, racer = self.racers[0]
        self._use(structure)
        steps = min(0.06 * self.budget, POLISH * self.budget - self.spent)
        self._search(racer, steps, self.budget / 2, rng, _STARTS, LEAST_OF_BEST)
        self._replace(self._judged(structure, racer.found))
        if self.spent + self.evaluator.steps >= POLISH * self.budget:
            self.stage = "terms"

    def _terms(self, rng: Rng) -> None:
        """Remove terms that do not pay, unless the controller would rest elsewhere."""
        rung = self.rungs[self.best]
        block = self._use(rung.structure)
        left = TERMS * self.budget - self.spent
        assert rung.nominal is not None
        error = max(2 * rung.nominal.at_rest, 0.01 * self._largest_error())
        tree = simplify(
            self.evaluator,
            rung.tree,
            rung.score,
            left,
            SHARE * abs(rung.score),
            lambda tree: self._nominal(block, tree).at_rest <= error,
        )
        structure = block.plainer(tree)  # what no term uses is not part of it
        less = self.block(structure).like(tree, block)
        tree = replace(less, free=less.free & (less.numbers != 0.0))
        del self.rungs[self.best]  # it becomes the one with fewer terms
        self._climb(self._judged(structure, tree))
        self.digits = DIGITS
        self.stage = "last"

    def _last(self, rng: Rng) -> None:
        """Go on with the numbers that are left, and round them."""
        judgements = 4 * len(self.evaluator.judging_starts) * self.evaluator.judged_length  # also of digits
        self._go_on(self.budget - self.spent - judgements, rng)
        rung = self.rungs[self.best]
        self.digits = enough_digits(self.evaluator, rung.tree, rung.score, SHARE * abs(rung.score))
        self.stage = "done"

    def _done(self, rng: Rng) -> None:
        """Spend what is left of the budget on the best rung."""
        self._go_on(max(1, self.budget - self.spent), rng)

    def _go_on(self, steps: float, rng: Rng) -> None:
        """Search the numbers of the best rung for so many steps."""
        rung = self.rungs[self.best]
        self._use(rung.structure)
        racer = Racer.of(rung.tree, step=0.1)
        self._search(racer, steps, self.budget / 4, rng)
        self._replace(self._judged(rung.structure, racer.found))

    def _search(self, racer: Racer, steps: float, plan: float, rng: Rng, *starts: int) -> None:
        """Search the numbers of the best rung; a pole is swung up from hard starts again and again.

        A swing-up that is a little too fast fails from a few starts only. Judgements are without hard starts:
        rungs that are judged at different times are compared.
        """
        self.evaluator.keeps_hard_starts = self.meaning.pole is not None
        racer.run(self.evaluator, steps, plan, rng, *starts)
        self.evaluator.keeps_hard_starts = False

    # -- rungs ---------------------------------------------------------------------------------------------

    def _try(self, structure: Structure, source: Rung, steps: float, rng: Rng) -> None:
        """Search the numbers of a structure, beginning with those of a rung, and climb if it pays."""
        block = self._use(structure)
        racer = Racer.of(block.like(source.tree, self.block(source.structure)), step=0.3)
        racer.run(self.evaluator, steps, 2 * steps, rng)
        self._climb(self._judged(structure, racer.found))

    def _climb(self, rung: Rung) -> None:
        """Add a rung, or replace the one with its structure and as many leaves if it is better."""
        alike = [i for i, one in enumerate(self.rungs) if one.is_like(rung)]
        if not alike:
            self.rungs.append(rung)
        elif rung.score > self.rungs[alike[0]].score:
            self.rungs[alike[0]] = rung
        self.best = choose(self.rungs)

    def _replace(self, rung: Rung) -> None:
        """Replace the best rung by the same structure with better numbers."""
        if rung.score >= self.rungs[self.best].score:
            self.rungs[self.best] = rung
            self.digits = DIGITS
            self.best = choose(self.rungs)

    def _judged(self, structure: Structure, tree: CandidateTree) -> Rung:
        """Judge a controller: on the plant to design for, from the common starts, and on the plant itself."""
        block = self._use(structure)
        returns, changes = self._from_common_starts(tree)
        return Rung(
            structure,
            tree,
            block.parameters(tree),
            returns,
            changes,
            self.evaluator.price,
            self.settings.worst_weight,
            None if self.stage in BEFORE_CHOICE else self._nominal(block, tree),
        )

    def _measured(self, rung: Rung) -> Rung:
        """Return a rung with its measures in the plant's own episodes."""
        return replace(rung, nominal=self._nominal(self._use(rung.structure), rung.tree))

    def _from_common_starts(self, tree: CandidateTree) -> tuple[Floats, Floats]:
        """Return returns and priced changes of a controller from the common starts."""
        starts = self.evaluator.judging_starts
        vectors = tree.vector[np.newaxis]
        played = self.evaluator.play(tree, vectors, starts, Phase.OWN_PLAY, digits=DIGITS)
        return played.returns[0], played.changes[0]

    def _nominal(self, block: Block, tree: CandidateTree) -> Nominal:
        """Return the measures of a rung in the plant's own episodes."""
        evaluator = self.evaluator
        horizon = self.meaning.problem.horizon
        evaluator.plant = None
        begun = evaluator.starts(np.random.default_rng(0), _RESTED)
        played = evaluator.play(
            tree, tree.vector[np.newaxis], begun, Phase.OWN_PLAY, visited=_RESTED * horizon
        )
        evaluator.plant = self.design
        errors = [j for j, one in enumerate(block.features) if one.name in self.meaning.errors]
        return Nominal(
            math.fsum(played.returns[0].tolist()) / _RESTED,
            _rest_error(played.visited[:, errors], horizon),
            math.fsum(played.movement[0].tolist()) / max(1, played.steps),
            math.fsum(played.switches[0].tolist()) / _RESTED,
        )

    def _largest_error(self) -> float:
        return max(self.usual.sizes[name] for name in self.meaning.errors)

    def block(self, structure: Structure) -> Block:
        """Return the block of a structure."""
        return Block.of(self.meaning, structure, self.usual)

    def _use(self, structure: Structure) -> Block:
        """Return the block of a structure, and let the evaluator play with it."""
        block = self.block(structure)
        self.evaluator.frame = block.frame
        self.evaluator.units = block.units
        return block


def _rest_error(errors: Floats, horizon: int) -> float:
    """Return the largest mean error of the last quarter of an episode."""
    found = 0.0
    last = max(1, horizon // 4)
    for begin in range(0, len(errors), horizon):
        rows = errors[begin : begin + horizon][-last:]
        means = np.abs([math.fsum(rows[:, j].tolist()) / len(rows) for j in range(rows.shape[1])])
        found = max(found, float(means.max()))
    return found
