"""The ladder: from the plainest controller with memory to one that does the job, and no further.

P, PD, PI and PID controllers are raced, in position and velocity form, and the linear regulator of the plant
is tried. The best of each form is given all that the problem declares, and loses again what does not pay: a
kind of feature that stays gains more than 1 %. Leaves are added by the same rule. Each structure that was
tried is a rung, and is printed. A pole that is to be swung up begins with energy pumping and a regulator at
the top instead, by few numbers, before all numbers are searched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.treesearch.evaluator import DIGITS, Evaluator
from spaql.algorithms.treesearch.finish import enough_digits, simplify
from spaql.algorithms.treesearch.lqr import lqr_racer, lqr_structure, swing_up_racer
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST, Racer
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.algorithms.treesearch.structures import ENERGY, NEXT, ORDER, Block, Meaning, Structure
from spaql.algorithms.treesearch.trees import CandidateTree, Rng, find_leaf, random_cut, split
from spaql.archive import number, typed
from spaql.classical import LinearPlant, linearise
from spaql.errors import ArchiveError, SettingError
from spaql.kernels.treesearch.candidates import Floats
from spaql.policy import FeatureController
from spaql.policy.feature_tree import POSITION
from spaql.problems import Dynamics
from spaql.problems.disturbances import Perturbation
from spaql.problems.perturbed import perturbed
from spaql.rollouts import EpisodeRunner, Phase

RACE, ALL, REMOVE, LEAVES, POLISH, TERMS = 0.2, 0.55, 0.75, 0.8, 0.86, 0.94
"""The shares of the budget at which the stages end; the rest is for the numbers that are left, and digits."""
_SWING_UP = 0.25
"""The share of the budget for the few numbers of a swing-up."""
_SWINGS = 2
"""So many times they are searched: one search alone may end in a swing-up that loses some starts."""
_ROUNDS = 3
"""Rounds of the race."""
_SHARE = 0.01
"""What a kind of feature, or a leaf, must gain, as a share of the return."""
_MOVEMENT = 30
"""The price of movement is a share of so many returns: 3 % for the whole range in every sample."""
_JUDGED = (30, 200)
"""Starts of a judgement, at least and at most."""
_JUDGEMENTS, _LAST_JUDGEMENTS = 40, 10
"""About so many judgements take a tenth of the budget, and so many when the best rung is polished."""
_STARTS = 128
"""Starts of a generation when the best rung is polished, if there is room for them."""
_RESTED = 16
"""Episodes by which the error at rest is measured."""
_MEASURED = 8
"""Random controllers by which features are measured."""
_SPLITS = 2
"""Trees of two leaves that are tried."""
STAGES = (
    *("measure", "swing_up", "race", "all", "remove", "leaves"),
    *("polish", "terms", "last", "done", "judge"),
)


@dataclass(frozen=True, eq=False)
class Rung:
    """A structure that was tried, with its best numbers."""

    structure: Structure
    tree: CandidateTree
    score: float
    mean: float
    """Mean return over the starts of judgements."""
    worst: float
    nominal: float
    """Mean return on the plant itself."""
    at_rest: float
    """The largest mean error of the last quarter of an episode, of the plant itself."""
    movement: float
    """Mean change of an action from one sample to the next, as a share of its range."""

    def is_like(self, other: Rung) -> bool:
        """Whether another rung has the same structure and as many leaves."""
        return self.structure == other.structure and self.tree.n_leaves == other.tree.n_leaves

    def row(self) -> dict[str, Any]:
        """Return what a person wants to know of it."""
        return {
            "structure": self.structure.name,
            "return": self.mean,
            "worst": self.worst,
            "nominal": self.nominal,
            "error at rest": self.at_rest,
            "movement": self.movement,
            "leaves": self.tree.n_leaves,
            "numbers": self.tree.n_numbers,
        }


class Ladder:
    """The state of a search for a controller with memory; each call of `advance` is an iteration."""

    def __init__(self, settings: TreeSearchSettings, evaluator: Evaluator, meaning: Meaning) -> None:
        self.settings, self.evaluator, self.meaning = settings, evaluator, meaning
        evaluator.keeps_hard_starts = False  # see `_search`
        plant = meaning.problem.dynamics
        self.design: Dynamics | Perturbation | None = None
        """The plant to design for, if it is not the plant itself: a perturbed one, unless there are no
        equations or the design is to be nominal; of a learned plant, how it is perturbed."""
        if plant is not None and not settings.nominal:
            self.design = perturbed(plant)
        self.budget, self.spent, self.stage = 0, 0, "measure"
        self.sizes: dict[str, float] = {}
        """Usual magnitudes of features."""
        self.racers: list[tuple[Structure, Racer]] = []
        self.round, self.turn = 0, 0
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
    def controller(self) -> FeatureController:
        """The best controller so far; before the first, an idle one."""
        if not self.rungs:
            block = self._block(Structure(*self.meaning.plain[0]))
            return block.controller(block.one_law())
        rung = self.rungs[self.best]
        return self._block(rung.structure).controller(rung.tree, self.digits)

    def rows(self) -> list[dict[str, Any]]:
        """Return what a person wants to know of each rung, the plainest first; the best is marked."""
        rows = [rung.row() | {"chosen": i == self.best} for i, rung in enumerate(self.rungs)]
        return sorted(rows, key=lambda row: (row["leaves"], row["numbers"]))

    def plan(self, budget: int) -> None:
        """Begin a search of so many steps, or go on from the best rung of a ladder that has been climbed."""
        self.budget, self.spent, self.round, self.turn = budget, 0, 0, 0
        self.stage = "measure"
        if self.rungs:
            self.stage = "polish" if len(self.evaluator.judging_starts) else "judge"
        self.racers = []
        if self.rungs:
            rung = self.rungs[self.best]
            self.racers = [(rung.structure, Racer.of(rung.tree, step=0.3))]

    def begin_at(self, other: Ladder) -> None:
        """Begin at the best rung of a ladder that was climbed in another form of the plant."""
        rung = other.rungs[other.best]
        self.rungs, self.best, self.sizes = [rung], 0, other.sizes
        self.evaluator.span, self.first_return = other.evaluator.span, other.first_return

    def consider(self, other: Ladder, runner: EpisodeRunner) -> None:
        """Judge the best controller of another ladder in this one's plant; it may be the best here, too."""
        evaluator, rung = self.evaluator, other.rungs[other.best]
        evaluator.runner, evaluator.plant = runner, self.design
        tree = self._block(rung.structure).like(rung.tree, other._block(rung.structure))
        best = self.rungs[self.best]
        self._climb(self._judged(rung.structure, Racer.of(tree)))
        if self.rungs[self.best] is not best:
            self.digits = DIGITS
        evaluator.runner = None

    def advance(self, runner: EpisodeRunner, rng: Rng) -> None:
        """Search for a part of the budget."""
        evaluator = self.evaluator
        evaluator.runner, evaluator.steps, evaluator.plant = runner, 0, self.design
        evaluator.check_starts()
        getattr(self, f"_{self.stage}")(rng)
        self.spent += evaluator.steps
        evaluator.runner = None

    # -- stages ------------------------------------------------------------------------------------------

    def _measure(self, rng: Rng) -> None:
        """Measure the usual magnitudes of features by random laws of the error, and make the racers."""
        evaluator = self.evaluator
        if self.meaning.pole:
            self._count(self.meaning.pole.plant)
        for form, more in self.meaning.more.items():
            base = next(kinds for one, kinds in self.meaning.plain if one == form)
            kinds = [kind for kind in (*base, *more) if self.meaning.has((kind,))]
            structure = Structure(form, base).with_kinds(kinds)
            seen, returns = [], list[float]()
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
                self.sizes[feature.name] = float(f"{size:.2g}") if size > 0 else 1.0
        evaluator.judging_starts = evaluator.starts(rng, self._judged_starts(_JUDGEMENTS))
        if self.meaning.pole:
            self.stage = "swing_up"
            return
        for form, plain in self.meaning.plain:
            if self.meaning.has(plain):
                block = self._block(Structure(form, plain))
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
        self._price_movement([self._judged(block.structure, one) for one in racers])
        self._climb(max((self._judged(block.structure, one) for one in racers), key=self._value))
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
        tried = [self._judged(*one) for one in self.racers]
        if self.round == 0:
            self._price_movement(tried)
            tried = [self._judged(*one) for one in self.racers]
        for rung in tried:
            self._climb(rung)
        order = sorted(range(len(tried)), key=lambda i: -self._value(tried[i]))
        kept = sorted(order[: max(1, len(order) // 2)])
        self.racers = [self.racers[i] for i in kept]
        if self.round == 0:
            self.racers += [self._with_derivative(tried[i]) for i in kept]
        self.round, self.turn = self.round + 1, 0
        if self.round == _ROUNDS:
            self.stage = "all"

    def _price_movement(self, tried: list[Rung]) -> None:
        """Give movement its price from now on, by the best of what was tried."""
        self.evaluator.span = _MOVEMENT * abs(max(rung.score for rung in tried))

    def _with_derivative(self, rung: Rung) -> tuple[Structure, Racer]:
        """Return a racer that begins at a rung, with a derivative besides."""
        structure = rung.structure.with_kinds((*rung.structure.kinds, NEXT[rung.structure.form]))
        tree = self._block(structure).like(rung.tree, self._block(rung.structure))
        return structure, Racer.of(tree, step=0.3)

    def _all(self, rng: Rng) -> None:
        """Give the best structure of each form all kinds of features that there are."""
        more = self.meaning.more
        share, before = (ALL - RACE) * self.budget / (len(more) + 1), self.best
        self._regulate(share, rng)
        for form in more:
            rung = max((one for one in self.rungs if one.structure.form == form), key=self._value)
            kinds = [kind for kind in more[form] if self.meaning.has((kind,))]
            self._try(rung.structure.with_kinds((*rung.structure.kinds, *kinds)), rung, share, rng)
        self.stage = "leaves" if self.best == before else "remove"
        self.racers = []

    def _regulate(self, steps: float, rng: Rng) -> None:
        """Search from the linear regulator of the plant, if it has one: its weights first, then its gains."""
        try:
            plant = linearise(self.meaning.problem)
        except SettingError:  # there are no equations, or no rest
            return
        self._count(plant)
        block = self._use(lqr_structure(self.meaning, plant))
        racers = [lqr_racer(block, plant)]
        racers[0].run(self.evaluator, steps / 2, steps, rng)
        racers.append(Racer.of(racers[0].found, least=0.05, step=0.3))
        racers[1].run(self.evaluator, steps / 2, steps, rng)
        self._climb(max((self._judged(block.structure, one) for one in racers), key=self._value))

    def _count(self, plant: LinearPlant) -> None:
        """Count the steps by which a plant was linearised."""
        assert self.evaluator.runner is not None
        self.evaluator.runner.interactions.add(Phase.SEARCH, plant.steps)
        self.evaluator.steps += plant.steps

    def _remove(self, rng: Rng) -> None:
        """Remove the kind of feature that costs least, if that is less than its share."""
        rung = self.rungs[self.best]
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
                self._climb(self._judged(rung.structure, racer))
        self.stage = "polish"
        rung = self.rungs[self.best]
        self.racers = [(rung.structure, Racer.of(rung.tree, step=0.3))]
        self._judge_by_more(rng)

    def _judge_by_more(self, rng: Rng) -> None:
        """Judge the best rung by more starts, which later ones are judged by: rare failures are seen."""
        evaluator, rung = self.evaluator, self.rungs[self.best]
        more = self._judged_starts(_LAST_JUDGEMENTS) - len(evaluator.judging_starts)
        if more > 0:
            starts, before = evaluator.starts(rng, more), evaluator.judging_starts
            evaluator.judging_starts = np.concatenate([before, starts]) if len(before) else starts
            self._replace(self._judged(rung.structure, Racer.of(rung.tree)), anyway=True)

    def _judged_starts(self, judgements: int) -> int:
        """Return the number of starts of which so many judgements take a tenth of the budget."""
        wanted = int(0.1 * self.budget / (judgements * self.evaluator.length))
        return min(max(wanted, _JUDGED[0]), _JUDGED[1])

    def _judge(self, rng: Rng) -> None:
        """Judge a rung of another ladder in this form of the plant."""
        self._use(self.rungs[self.best].structure)
        self._judge_by_more(rng)
        self.stage = "polish"

    def _polish(self, rng: Rng) -> None:
        """Go on with the best rung, by more starts in each generation."""
        structure, racer = self.racers[0]
        self._use(structure)
        steps = min(0.06 * self.budget, POLISH * self.budget - self.spent)
        self._search(racer, steps, self.budget / 2, rng, _STARTS, LEAST_OF_BEST)
        self._replace(self._judged(structure, racer))
        if self.spent + self.evaluator.steps >= POLISH * self.budget:
            self.stage = "terms"

    def _terms(self, rng: Rng) -> None:
        """Remove terms that do not pay, unless the controller would rest elsewhere."""
        rung = self.rungs[self.best]
        block = self._use(rung.structure)
        left = TERMS * self.budget - self.spent
        error = max(2 * rung.at_rest, 0.01 * self._largest_error())
        tree = simplify(
            self.evaluator,
            rung.tree,
            rung.score,
            left,
            _SHARE * abs(rung.score),
            lambda tree: self._at_rest(block, tree)[1] <= error,
        )
        structure = block.plainer(tree)  # what no term uses is not part of it
        less = self._block(structure).like(tree, block)
        tree = replace(less, free=less.free & (less.numbers != 0.0))
        self._replace(self._judged(structure, Racer.of(tree)), anyway=True)
        self.stage = "last"

    def _last(self, rng: Rng) -> None:
        """Go on with the numbers that are left, and round them."""
        judgements = 4 * len(self.evaluator.judging_starts) * self.evaluator.judged_length  # also of digits
        self._go_on(self.budget - self.spent - judgements, rng)
        rung = self.rungs[self.best]
        self.digits = enough_digits(self.evaluator, rung.tree, rung.score, _SHARE * abs(rung.score))
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
        self._replace(self._judged(rung.structure, racer))

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
        racer = Racer.of(block.like(source.tree, self._block(source.structure)), step=0.3)
        racer.run(self.evaluator, steps, 2 * steps, rng)
        self._climb(self._judged(structure, racer))

    def _climb(self, rung: Rung) -> None:
        """Add a rung, or replace the one with its structure and as many leaves if it is better.

        The best is the one whose additions pay, and that lacks nothing that would.
        """
        alike = [i for i, one in enumerate(self.rungs) if one.is_like(rung)]
        if not alike:
            self.rungs.append(rung)
        elif rung.score > self.rungs[alike[0]].score:
            self.rungs[alike[0]] = rung
        self.best = max(range(len(self.rungs)), key=lambda i: self._value(self.rungs[i]))

    def _replace(self, rung: Rung, *, anyway: bool = False) -> None:
        """Replace the best rung by the same structure with better numbers."""
        if anyway or rung.score >= self.rungs[self.best].score:
            self.rungs[self.best], self.digits = rung, DIGITS

    def _value(self, rung: Rung) -> float:
        """Return the score less the share that each kind of feature and each leaf must gain."""
        top = max((one.score for one in self.rungs), default=rung.score)
        size = len(rung.structure.kinds) + rung.tree.n_leaves
        return rung.score - _SHARE * abs(top) * size

    def _judged(self, structure: Structure, racer: Racer) -> Rung:
        """Judge a racer's controller: on the plant to design for, and at rest on the plant itself."""
        block = self._use(structure)
        found = self.evaluator.judge(racer.found)
        worst = float(found.values.min())
        return Rung(
            structure, racer.found, found.score, found.mean_return, worst, *self._at_rest(block, racer.found)
        )

    def _at_rest(self, block: Block, tree: CandidateTree) -> tuple[float, float, float]:
        """Return the mean return, the largest error at rest, and the movement on the plant itself."""
        evaluator, horizon = self.evaluator, self.meaning.problem.horizon
        evaluator.plant = None
        begun = evaluator.starts(np.random.default_rng(0), _RESTED)
        played = evaluator.play(
            tree, tree.vector[np.newaxis], begun, Phase.OWN_PLAY, visited=_RESTED * horizon
        )
        evaluator.plant = self.design
        errors = [j for j, one in enumerate(block.features) if one.name in self.meaning.errors]
        return (
            math.fsum(played.returns[0].tolist()) / _RESTED,
            _rest_error(played.visited[:, errors], horizon),
            math.fsum(played.movement[0].tolist()) / max(1, played.steps),
        )

    def _largest_error(self) -> float:
        return max(self.sizes[name] for name in self.meaning.errors)

    def _block(self, structure: Structure) -> Block:
        return Block.of(self.meaning, structure, self.sizes)

    def _use(self, structure: Structure) -> Block:
        """Return the block of a structure, and let the evaluator play with it."""
        block = self._block(structure)
        self.evaluator.block, self.evaluator.units = block.arrays, block.units
        return block

    # -- files ---------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return everything that is needed to go on."""
        evaluator = self.evaluator
        data = {
            name: getattr(self, name)
            for name in ("budget", "spent", "stage", "round", "turn", "digits", "first_return")
        }
        data |= {
            "sizes": self.sizes,
            "best": self.best,
            "length": evaluator.length,
            "judged_length": evaluator.judged_length,
            "span": evaluator.span,
            "racers": [[one.form, list(one.kinds)] for one, _ in self.racers],
            "rungs": [
                {
                    "form": rung.structure.form,
                    "kinds": list(rung.structure.kinds),
                    **{name: getattr(rung, name) for name in _MEASURES},
                }
                for rung in self.rungs
            ],
        }
        arrays = {"judging_starts": evaluator.judging_starts}
        if len(evaluator.hard):
            arrays |= {"hard": evaluator.hard, "hardness": evaluator.hardness}
        for i, (_, racer) in enumerate(self.racers):
            arrays |= {f"racer.{i}.{name}": array for name, array in racer.arrays().items()}
        for i, rung in enumerate(self.rungs):
            arrays |= {f"rung.{i}.{name}": array for name, array in rung.tree.arrays().items()}
        return data, arrays

    def restore(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`."""

        def part(prefix: str) -> dict[str, NDArray[Any]]:
            return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}

        def structure(form: Any, kinds: Any) -> Structure:
            if form not in self.meaning.more or not set(kinds) <= set(ORDER):
                raise ArchiveError(f"The file has a controller of the form {form!r} with {kinds!r}.")
            return Structure(form, tuple(kinds))

        for name in ("budget", "spent", "round", "turn", "digits", "best"):
            setattr(self, name, number(data, name, 0, whole=True))
        self.first_return, self.stage = number(data, "first_return"), str(data["stage"])
        if self.stage not in STAGES:
            raise ArchiveError(f"The file has a search in the stage {self.stage!r}, which there is not.")
        self.sizes = {str(name): float(number(data["sizes"], name, 0)) for name in data["sizes"]}
        evaluator = self.evaluator
        for name in ("length", "judged_length", "span"):
            setattr(evaluator, name, number(data, name, 0))
        for name in ("judging_starts", *(["hard", "hardness"] if "hard" in arrays else [])):
            setattr(evaluator, name, np.array(typed(arrays[name], np.float64), order="C"))
        kept = evaluator.judging_starts, evaluator.hard, evaluator.hardness
        if not all(np.isfinite(one).all() for one in kept):
            raise ArchiveError("The search in the file has starts that are not finite numbers.")
        if len(evaluator.hard) != len(evaluator.hardness):
            raise ArchiveError("The search in the file has hard starts that do not fit.")
        self.racers, self.rungs = [], []
        for i, (form, kinds) in enumerate(data["racers"]):
            block = self._block(structure(form, kinds))
            racer = Racer.from_arrays(part(f"racer.{i}."), block.one_law())
            self.racers.append((block.structure, racer))
        for i, one in enumerate(data["rungs"]):
            block = self._block(structure(one["form"], one["kinds"]))
            tree = CandidateTree.from_arrays(part(f"rung.{i}."), block.one_law())
            self.rungs.append(Rung(block.structure, tree, *(number(one, name) for name in _MEASURES)))
        if (self.rungs and self.best >= len(self.rungs)) or (self.stage == "race" and not self.racers):
            raise ArchiveError("The search in the file has too few rungs or racers.")


_MEASURES = ("score", "mean", "worst", "nominal", "at_rest", "movement")


def _rest_error(errors: Floats, horizon: int) -> float:
    """Return the largest mean error of the last quarter of an episode."""
    found, last = 0.0, max(1, horizon // 4)
    for begin in range(0, len(errors), horizon):
        rows = errors[begin : begin + horizon][-last:]
        means = np.abs([math.fsum(rows[:, j].tolist()) / len(rows) for j in range(rows.shape[1])])
        found = max(found, float(means.max()))
    return found
