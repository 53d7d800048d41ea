"""The search: a race of random trees, growth of the winner, and a finish that makes it better and plainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.treesearch.evaluator import DIGITS, Evaluator, Judgement
from spaql.algorithms.treesearch.finish import enough_digits, pattern_search, simplify
from spaql.algorithms.treesearch.neighbours import changed_neighbour, neighbour
from spaql.algorithms.treesearch.racer import LEAST_OF_BEST, Racer
from spaql.algorithms.treesearch.rule_trees import in_other_units
from spaql.algorithms.treesearch.scales import bounded, change_of_scale, measured
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.algorithms.treesearch.symmetry import (
    basis_if_symmetric,
    mirror_from_data,
    symmetric_basis,
    usable_in_cuts,
)
from spaql.algorithms.treesearch.trees import CandidateTree, Rng, random_tree, switch_like, with_constants
from spaql.archive import number, typed
from spaql.errors import ArchiveError
from spaql.kernels.treesearch.candidates import Floats
from spaql.simulate import EpisodeRunner, Phase

RACE, POLISH, GROW, REFINE, PATTERN = 0.25, 0.35, 0.75, 0.87, 0.93
"""The shares of the budget at which the stages end; the rest is for making the tree plainer."""
_AGAIN = 0.75
"""Where trees do not grow, they race again if this much of the share for growth is left."""
_STAGES = ("measure", "race", "polish", "grow", "refine", "pattern", "simplify", "done")
_LISTED_WORST = _STAGES[_STAGES.index("refine") :]
"""The stages in which the worst starts count, for lists of actions."""
_WORST = (*_STAGES[: _STAGES.index("polish")], *_LISTED_WORST)
"""The same where actions are numbers: there all trees of a race may fail from some starts."""
_SIZES = (1, 2, 3, 4)
"""Leaves of the racers: for each size there are two."""
_SWITCHES = (2, 3)
"""Leaves of racers whose laws are constants, where actions are numbers."""
_LEAST = 0.2
"""The least by which a number of a random law is varied; laws of 0 are varied by 1."""
_RACED_SHARE = 0.8
"""Trees race if their numbers can be searched with this share of the budget."""
_STEPS = (0.3, 0.1, 0.03)
"""The first steps of racers at a tree that the search begins at: how near it is to the best is not known."""
_CLEAR = 2.0
"""The standard errors by which the best racer must be worse than the incumbent to begin there anew."""
_NEIGHBOURS = 3
"""Racers beside a tree that was given."""
_CHILDREN = 3
"""The most neighbours of the best tree in a round of growth."""
_OTHER, _RESTARTS = 2.0, 2
"""A factor by which a scale must have changed for a new race, and the most of these."""
_SCREENED = 150
"""The most neighbours of which these are the best."""
_FEW_STARTS, _MORE_STARTS, _PASS = 12, 48, 6
"""All of them are played from a few starts, and one in so many from more."""
_SCREENING = 0.5
"""The share of a round of growth for that, at most."""
_GROWTH_EPISODES = 1500
"""The fewest episodes for each tree in a round of growth."""
_SWITCH_STATES = 500
"""Observations by which a switch between constants is made."""
_ROUNDS = 5
"""The most rounds of growth."""
_NO_ROOM = 100
"""A first law, or the best of the first random trees, is only improved if the budget is fewer episodes."""
_DOUBTS = {"": 0.0, "law": 1.0, "tree": 2.0}
"""By what the search began at: the standard errors by which another tree must be better."""
_JUDGEMENTS = 40
"""About so many judgements take a tenth of the budget."""
_FEWEST_JUDGED, _MOST_JUDGED = 24, 2000
"""Starts of a judgement; fewer than the fewest if so many would take more than a share of the budget."""
_JUDGED_SHARE = 0.02
_LEAST_JUDGED = 4
_FIRST_JUDGED, _FEWEST_FIRST = 0.2, 8
"""The share of them by which trees are compared first; so many, if these are no more than half."""
_SIMPLIFIED = 200
"""The fewest starts by which a tree is made plainer: fewer would not see what that costs."""
_REFINED = 128
"""Starts of a generation when the best tree is refined, so that rare failures are seen."""
_OBSERVATIONS, _NEAR = 4000, 0.25
"""Observations of episodes through which cuts are drawn; of those that are nearer to each other only one."""


class Search:
    """The state of a search; each call of `advance` is an iteration.

    The incumbent is the best tree by judgement so far: it is only replaced by a tree that is better from the
    same starts, which are used for nothing else.
    """

    def __init__(self, settings: TreeSearchSettings, evaluator: Evaluator, base: CandidateTree) -> None:
        self.settings = settings
        self.evaluator = evaluator
        self.base = base
        self.budget = 0
        self.spent = 0
        self.states: Floats = np.empty((0, base.numbers.shape[2] - 1))
        """Observations, in the units of the search, through which the cuts of random trees are drawn."""
        self.mirror: Mirror | None = None
        """The mirror of the plant: racers that begin with laws of 0 are their own mirror images."""
        self.racers: list[Racer] = []
        self.rung, self.turn = 0, 0
        """The rung of the race, and whose turn it is."""
        self.restarts = 0
        """How often the race was begun anew in other scales."""
        self.raced_again = False
        self.incumbent: CandidateTree | None = None
        self.begun_at = ""
        """What the search began at, as long as that is the incumbent: a law, a tree, or none of these."""
        self.judgement = Judgement(-np.inf, 0.0, np.empty(0))
        """Of the incumbent; before there is one, with the mean return of random trees."""
        self.digits = 0
        """Significant digits of the incumbent's numbers; 0 for all, of a tree that was given."""
        self.stage = "measure"

    def plan(self, budget: int, tree: CandidateTree | None = None, begun_at: str = "") -> None:
        """Begin a search of so many steps, with a tree to beat if there is one, and what it is."""
        self.budget = max(budget, 0)
        self.spent = 0
        self.rung = 0
        self.turn = 0
        self.incumbent = tree
        self.begun_at = begun_at
        self.stage = "measure"
        self.racers = []
        self.raced_again = begun_at == "tree"

    def measure(self, observations: Floats) -> None:
        """Take the units of some observations, through which cuts are drawn."""
        units = measured(observations, self.evaluator.units, self.mirror)
        self.evaluator.units = units
        self.states = (observations - units.centre) / units.scale

    def advance(self, runner: EpisodeRunner, rng: Rng) -> None:
        """Search for a part of the budget."""
        evaluator = self.evaluator
        evaluator.runner = runner
        evaluator.steps = 0
        evaluator.check_starts()
        evaluator.weighs_worst = self.stage in (_LISTED_WORST if self.base.listed else _WORST)
        if self.stage != "done":  # nor is a tree chosen by starts that it has been chosen by before
            evaluator.judging_starts = evaluator.starts(rng, self._judged_starts)
        getattr(self, f"_{self.stage}")(rng)
        self.spent += evaluator.steps
        evaluator.runner = None

    # -- stages ------------------------------------------------------------------------------------------

    def _measure(self, rng: Rng) -> None:
        """Make the racers."""
        begun = self.incumbent is not None and self.begun_at != "tree"
        if begun and self.budget < _NO_ROOM * self.evaluator.horizon:
            self.stage = "done"
            self._done(rng)
            return
        self.evaluator.begin_hard_starts(rng)
        self._judge_incumbent()
        if self.incumbent is not None and self.begun_at == "tree":
            seen = self._apart(self.incumbent, rng)
            self.racers = [self._neighbour(self.incumbent, seen, rng) for _ in range(_NEIGHBOURS)]
            self.racers = list(filter(self._affords, self.racers))
        else:
            self.racers = self._random_racers(rng)
        if self.incumbent is not None and self.begun_at:
            self.racers = [self._racer(self.incumbent, step) for step in _STEPS] + self.racers
        self.stage = "race"
        self._race(rng)

    def _race(self, rng: Rng) -> None:
        """Give the next racer its share of a rung; at the end of a rung keep the better half."""
        rungs = max(1, (len(self.racers) - 1).bit_length()) + self.rung
        share = GROW - POLISH if self.raced_again else RACE
        share *= self.budget / rungs / len(self.racers)
        self.racers[self.turn].run(self.evaluator, share, 2 * share, rng)
        self.turn += 1
        if self.turn < len(self.racers):
            return
        self._judge(self.racers)
        self.racers.sort(key=lambda racer: -self._value(racer.score, racer.tree))
        if self.rung == 0:
            # by the one in the middle: the worst may be worse than anything that matters
            middle = self.racers[len(self.racers) // 2].score
            self.evaluator.span = max(self.evaluator.span, self.racers[0].score - middle)
        self.racers = self.racers[: (len(self.racers) + 1) // 2]
        self._compare(self.racers[0], rng)
        self.rung = self.rung + 1
        self.turn = 0
        early = self.spent + self.evaluator.steps < RACE * self.budget
        if early and self.restarts < _RESTARTS and self._begins_anew(rng):
            return
        if len(self.racers) == 1:
            self.evaluator.begin_hard_starts(rng)  # most were hard for those that lost
            self.stage = "polish"

    def _begins_anew(self, rng: Rng) -> bool:
        """Measure the scales where the best tree goes; returns whether they differ, and the race begins anew.

        Few numbers are searched well in scales that are wrong by much, as those of random trees may be.
        """
        assert self.incumbent is not None
        before = self.evaluator.units
        visited = self.evaluator.visited(self.racers[0].found, _OBSERVATIONS, rng)
        seen = bounded(before.centre + before.scale * visited)
        units = measured(seen, before, self.mirror)
        if change_of_scale(before, units) < _OTHER:
            return False
        self.incumbent = in_other_units(self.incumbent, before, units)
        self.states = (before.centre + before.scale * self.states - units.centre) / units.scale
        self.evaluator.units = units
        self.restarts += 1
        self.plan(self.budget - self.spent, self.incumbent, self.begun_at)
        return True

    def _polish(self, rng: Rng) -> None:
        """Go on with the winner of the race."""
        best = self.racers[0]
        share = (POLISH - RACE) / 4 * self.budget
        best.run(self.evaluator, share, self.budget / 2, rng, least=LEAST_OF_BEST)
        self._judge([best])
        self._compare(best, rng)
        if self.spent + self.evaluator.steps >= POLISH * self.budget:
            self.stage = "grow"

    def _grow(self, rng: Rng) -> None:
        """Race the best tree against neighbours: a leaf cut in two, or a cut replaced by another.

        Where no neighbour could be searched for long enough, other random trees race once more: all of the
        first ones may be far from any good tree.
        """
        room = GROW * self.budget - self.spent
        least = _GROWTH_EPISODES * self.evaluator.length
        children = min(_CHILDREN, int(room / least) - 1)
        if children > 0:
            best = self.racers[0]
            begun = self.evaluator.steps
            steps = max((GROW - POLISH) * self.budget / _ROUNDS, (1 + children) * least)
            field = [best, *self._switch(best.found, rng)]
            field += self._screened(best, 1 + children - len(field), _SCREENING * steps, rng)
            share = (steps - (self.evaluator.steps - begun)) / len(field)
            for racer in field:
                racer.run(self.evaluator, share, self.budget / 2, rng, least=LEAST_OF_BEST)
            self._judge(field)
            field.sort(key=lambda racer: -self._value(racer.score, racer.tree))
            self.racers = [field[0] if self._compare(field[0], rng) else best]
        elif not self.raced_again and room > _AGAIN * (GROW - POLISH) * self.budget:
            self.racers = self._random_racers(rng)
            self.rung = 0
            self.turn = 0
            self.raced_again = True
            self.stage = "race"
            self._race(rng)
        else:
            assert self.incumbent is not None
            new = self.evaluator.judge(self.racers[0].found)
            old = self.evaluator.judge(self.incumbent)
            if new.score < old.score - _CLEAR * new.error_of_difference(old):
                self.racers = [self._racer(self.incumbent, step=_STEPS[1])]
            self.stage = "refine"
            self._refine(rng)

    def _refine(self, rng: Rng) -> None:
        """Go on with the best tree."""
        best = self.racers[0]
        best.run(self.evaluator, 0.03 * self.budget, self.budget, rng, _REFINED, LEAST_OF_BEST)
        best.judge(self._first)
        self._compare(best, rng)
        if self.spent + self.evaluator.steps >= REFINE * self.budget:
            self.stage = "pattern"

    def _pattern(self, rng: Rng) -> None:
        assert self.incumbent is not None
        left = PATTERN * self.budget - self.spent
        best = self.racers[0]  # it may be better but for starts from which it fails
        begun = best if best.score > self._first(self.incumbent) else self._racer(self.incumbent)
        found = pattern_search(self.evaluator, begun, left, rng)
        racer = Racer.of(found)
        self._judge([racer])
        self._compare(racer, rng)
        self.stage = "simplify"

    def _simplify(self, rng: Rng) -> None:
        assert self.incumbent is not None
        evaluator = self.evaluator
        left = self.budget - self.spent
        price = self.settings.leaf_price * evaluator.span
        if len(evaluator.judging_starts) < _SIMPLIFIED:
            if not self._judges_by(_SIMPLIFIED, rng):
                self.stage = "done"
                self._done(rng)
                return
            self._judge_incumbent()
            left -= evaluator.steps
        self.incumbent = simplify(
            self.evaluator, self.incumbent, self.judgement.score, left, price, basis_of=self._basis
        )
        self._judge_incumbent()
        self.digits = enough_digits(self.evaluator, self.incumbent, self.judgement.score, price)
        self.stage = "done"

    def _done(self, rng: Rng) -> None:
        """Spend what is left of the budget on a search from the incumbent, or on its judgement."""
        assert self.incumbent is not None
        evaluator = self.evaluator
        left = self.budget - self.spent - self.evaluator.steps
        self.racers = [self._racer(self.incumbent, step=0.1)]
        judged = 3 * len(evaluator.judging_starts) * evaluator.judged_length
        if self.racers[0].generation_steps(evaluator.length) + judged > left:
            evaluator.judging_starts = evaluator.starts(rng, max(1, int(left / evaluator.judged_length)))
            self.judgement = evaluator.judge(self.incumbent)
            return
        self.racers[0].run(evaluator, left - judged, self.budget / 2, rng)
        self._judge(self.racers)
        self._compare(self.racers[0], rng)

    # -- judgement -----------------------------------------------------------------------------------------

    def _judge(self, racers: list[Racer]) -> None:
        for racer in racers:
            racer.score = self._first(racer.found)

    def _value(self, score: float, tree: CandidateTree) -> float:
        """Return the score less a price for each leaf, so that of equals the smaller is taken."""
        return score - self.settings.leaf_price * self.evaluator.span * tree.n_leaves

    def _compare(self, racer: Racer, rng: Rng) -> bool:
        """Replace the incumbent if the racer's tree is no worse by judgement: it was searched for longer.

        A first law is only replaced by one that is better by a standard error of the difference, and a tree
        at which the search began, by two, and from enough starts. Returns whether it is replaced.
        """
        found = racer.found
        old = self.incumbent
        if old is not None and self._value(racer.score, found) < self._value(self._first(old), old):
            return False
        new = self.evaluator.judge(found)
        if old is not None:
            self._judge_incumbent()
            gain = self._value(new.score, found) - self._value(self.judgement.score, old)
            least = _DOUBTS[self.begun_at]
            if least > 0.0:
                least *= new.error_of_difference(self.judgement)
            if not gain >= least or (self.begun_at and gain <= 0.0):
                return False
            if self.begun_at and len(self.evaluator.judging_starts) < _FEWEST_JUDGED:
                if not self._judges_by(_FEWEST_JUDGED, rng):
                    return False
                self._judge([racer])
                return self._compare(racer, rng)
        self.incumbent = found
        self.judgement = new
        self.digits = DIGITS
        self.begun_at = ""
        return True

    def _judges_by(self, count: int, rng: Rng) -> bool:
        """Judge from so many starts, if there is room for three such judgements; returns whether there is."""
        evaluator = self.evaluator
        if 3 * count * evaluator.judged_length > self.budget - self.spent - evaluator.steps:
            return False
        more = evaluator.starts(rng, count - len(evaluator.judging_starts))
        evaluator.judging_starts = np.concatenate([evaluator.judging_starts, more])
        return True

    def _first(self, tree: CandidateTree) -> float:
        """Return the score of a tree by a part of the judgement."""
        share = _FEWEST_FIRST / len(self.evaluator.judging_starts)
        return self.evaluator.judge(tree, max(_FIRST_JUDGED, min(share, 0.5))).score

    def _judge_incumbent(self) -> None:
        if self.incumbent is not None:
            self.judgement = self.evaluator.judge(self.incumbent)
            self.evaluator.keep_hardest(self.evaluator.judging_starts, self.judgement.values)

    @property
    def _judged_starts(self) -> int:
        """The number of starts of a judgement, by the mean length of its episodes."""
        room = self.budget / self.evaluator.judged_length
        wanted = int(0.1 * room / _JUDGEMENTS)
        few = max(_LEAST_JUDGED, int(_JUDGED_SHARE * room))
        return min(max(wanted, min(_FEWEST_JUDGED, few)), _MOST_JUDGED)

    def _racer(self, tree: CandidateTree, step: float = 0.5) -> Racer:
        """Return a racer that begins at a tree; one that is its own mirror image stays so."""
        return Racer.of(tree, step=step, basis=self._basis(tree))

    def _basis(self, tree: CandidateTree) -> Floats | None:
        return None if self.mirror is None else basis_if_symmetric(tree, self.mirror)

    def _random_racers(self, rng: Rng) -> list[Racer]:
        """Return racers of all sizes that the budget suffices for, and two of one leaf in any case."""
        sizes = [min(size, self.settings.max_leaves) for size in _SIZES]
        racers = [self._random(size, idle, rng) for size in sizes for idle in (True, False)]
        if not self.base.listed and self.settings.max_leaves >= 2:
            trees = [random_tree(self.base, size, self.states, rng) for size in _SWITCHES]
            racers += [Racer.of(with_constants(tree), least=_LEAST) for tree in trees]
        return racers[:2] + list(filter(self._affords, racers[2:]))

    def _affords(self, racer: Racer) -> bool:
        """Return whether the budget suffices to search the numbers of a tree."""
        return racer.least_steps(self.evaluator.length) <= _RACED_SHARE * self.budget

    def _random(self, size: int, idle: bool, rng: Rng) -> Racer:
        """Return a racer of random trees, with laws of 0 or random ones."""
        if idle and self.mirror is not None:
            return self._symmetric(size, self.mirror, rng)
        tree = random_tree(self.base, size, self.states, rng, idle=idle)
        return Racer.of(tree, least=1.0 if idle else _LEAST)

    def _symmetric(self, size: int, mirror: Mirror, rng: Rng) -> Racer:
        """Return a racer of trees that are their own mirror image; of one leaf if nothing can be cut so."""
        used = usable_in_cuts(mirror, -1)
        tree = random_tree(self.base, size if used.any() else 1, self.states, rng, idle=True, used=used)
        return Racer.of(tree, least=1.0, basis=symmetric_basis(tree, mirror))

    def _neighbour(self, tree: CandidateTree, seen: Floats, rng: Rng, *, changed: bool = False) -> Racer:
        """Return a racer at a neighbour of a tree; one that is its own mirror image may stay so."""
        symmetric = self._basis(tree) is not None and (tree.side >= 0 or rng.random() < 0.5)
        mirror = self.mirror if symmetric else None
        make = changed_neighbour if changed else neighbour
        found = make(tree, seen, self.settings.max_leaves, rng, mirror)
        return Racer.of(found, step=0.3, basis=None if mirror is None else symmetric_basis(found, mirror))

    def _screened(self, best: Racer, count: int, steps: float, rng: Rng) -> list[Racer]:
        """Return racers at a few neighbours of the best tree: the best of many, if there is room for them."""
        evaluator = self.evaluator
        tree = best.found
        seen = self._apart(tree, rng)
        tried = min(_SCREENED, int(steps / evaluator.length / (_FEW_STARTS + _MORE_STARTS / _PASS)))
        if tried < 2 * _PASS:
            return list(filter(self._affords, (self._neighbour(tree, seen, rng) for _ in range(count))))
        field = [self._neighbour(tree, seen, rng, changed=True) for _ in range(tried)]
        field = list(filter(self._affords, field))
        for n, kept in ((_FEW_STARTS, max(count, tried // _PASS)), (_MORE_STARTS, count)):
            starts = evaluator.starts(rng, n)
            for racer in field:
                played = evaluator.play(racer.tree, racer.tree.vector[np.newaxis], starts, Phase.SEARCH)
                racer.score = float(evaluator.scores_of(played)[0][0])
            field = sorted(field, key=lambda racer: -racer.score)[:kept]
        return field

    def _apart(self, tree: CandidateTree, rng: Rng) -> Floats:
        """Return observations of a tree that are not near each other: most episodes are at rest for long."""
        seen = self.evaluator.visited(tree, _OBSERVATIONS, rng)
        return seen[np.sort(np.unique(np.round(seen / _NEAR), axis=0, return_index=True)[1])]

    def _switch(self, tree: CandidateTree, rng: Rng) -> list[Racer]:
        """Return a racer that begins at a switch between two constants, which is like the tree.

        Laws are steep or gentle; where gentle actions pay, two constants are found more easily.
        """
        if tree.listed or tree.locked.any() or self.settings.max_leaves < 2:
            return []
        seen = self.evaluator.visited(tree, _OBSERVATIONS, rng)
        some = seen[rng.integers(len(seen), size=_SWITCH_STATES)]
        found = switch_like(tree, some, int(rng.integers(tree.numbers.shape[1])))
        return [] if found is None else [Racer.of(found, least=0.1, step=0.3)]

    # -- files ---------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return everything that is needed to go on."""
        evaluator = self.evaluator
        data = {
            "budget": self.budget,
            "spent": self.spent,
            "rung": self.rung,
            "turn": self.turn,
            "restarts": self.restarts,
            "raced_again": self.raced_again,
            "digits": self.digits,
            "begun_at": self.begun_at,
            "stage": self.stage,
            "mirror": None if self.mirror is None else asdict(self.mirror),
            "score": None if self.incumbent is None else self.judgement.score,
            "mean_return": self.judgement.mean_return,
            "racers": len(self.racers),
            "length": evaluator.length,
            "judged_length": evaluator.judged_length,
            "span": evaluator.span,
        }
        arrays = {
            "states": self.states,
            "centre": evaluator.units.centre,
            "scale": evaluator.units.scale,
            "hard": evaluator.hard,
            "hardness": evaluator.hardness,
            "judging_starts": evaluator.judging_starts,
            "judged": self.judgement.values,
        }
        if self.incumbent is not None:
            arrays |= {f"incumbent.{name}": array for name, array in self.incumbent.arrays().items()}
        for i, racer in enumerate(self.racers):
            arrays |= {f"racer.{i}.{name}": array for name, array in racer.arrays().items()}
        return data, arrays

    def restore(self, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of `state`."""

        def part(prefix: str) -> dict[str, NDArray[Any]]:
            return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}

        for name in ("budget", "spent", "rung", "turn", "restarts", "digits"):
            setattr(self, name, number(data, name, 0, whole=True))
        self.stage = str(data["stage"])
        self.begun_at = str(data["begun_at"])
        self.raced_again = bool(data["raced_again"])
        if self.begun_at not in _DOUBTS:
            raise ArchiveError(f"The file has a search that began at {self.begun_at!r}, which there is not.")
        mirror = data["mirror"]
        self.mirror = None if mirror is None else mirror_from_data(mirror, self.base)
        if self.stage not in _STAGES:
            raise ArchiveError(f"The file has a search in the stage {self.stage!r}, which there is not.")
        evaluator = self.evaluator
        dims = self.base.numbers.shape[2] - 1
        for name in ("length", "judged_length", "span"):
            setattr(evaluator, name, number(data, name, 0))
        floats = {
            name: _floats(arrays, name)
            for name in ("states", "centre", "scale", "hard", "hardness", "judging_starts", "judged")
        }
        if (
            floats["states"].shape[1:] != (dims,)
            or floats["centre"].shape != (dims,)
            or floats["scale"].shape != (dims,)
        ):
            raise ArchiveError("The search in the file does not match its problem.")
        if not (floats["scale"] > 0).all() or len(floats["hard"]) != len(floats["hardness"]):
            raise ArchiveError("The search in the file has units or hard starts that do not fit.")
        self.states = floats["states"]
        evaluator.units = evaluator.units._replace(centre=floats["centre"], scale=floats["scale"])
        evaluator.hard = floats["hard"]
        evaluator.hardness = floats["hardness"]
        evaluator.judging_starts = floats["judging_starts"]
        found = part("incumbent.")
        self.incumbent = CandidateTree.from_arrays(found, self.base) if found else None
        score = -np.inf if self.incumbent is None else number(data, "score")
        self.judgement = Judgement(score, number(data, "mean_return"), floats["judged"])
        count = number(data, "racers", 0, 64, whole=True)
        self.racers = [Racer.from_arrays(part(f"racer.{i}."), self.base) for i in range(count)]
        if (self.stage == "race" and not 0 <= self.turn < count) or (
            self.stage in ("polish", "grow", "refine") and not count
        ):
            raise ArchiveError("The search in the file has too few racers.")


def _floats(arrays: Mapping[str, NDArray[Any]], name: str) -> Floats:
    array = np.array(typed(arrays[name], np.float64), order="C")
    if not np.isfinite(array).all():
        raise ArchiveError(f"The search in the file has {name} that are not finite numbers.")
    return array
