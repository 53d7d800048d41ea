"""Where a search is: its units, stage, racers and incumbent, and the judgements that replace that."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.saved import Arrays, Data, State, part, prefixed, require, restored
from spaql.algorithms.treesearch.evaluator import DIGITS, CandidateEvaluator, Judgement
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.rule_trees import in_other_units
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.algorithms.treesearch.symmetry import basis_if_symmetric, mirror_from_data
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.archive import number
from spaql.kernels.numerics import Floats, Rng
from spaql.kernels.treesearch.candidates import Units

_LARGEST = 1e100
"""Observations beyond this are not measured: a plant may explode."""
_SCALE_DIGITS = 2
"""Significant digits of a scale."""
OBSERVATIONS = 4000
"""Observations of episodes through which cuts are drawn, at most."""
STRUCTURE_STAGES = ("measure", "race", "polish", "anew", "sharpen", "grow")
"""The stages in which neither the worst starts count, nor the movement of actions: they find a structure."""
_LAST_STAGES = ("refine", "pattern", "simplify", "done")
DOUBTS = {"": 0.0, "law": 1.0, "tree": 2.0}
"""By what the search began at: the standard errors by which another tree must be better."""
_JUDGEMENTS = 20
"""About so many judgements take a tenth of the budget."""
FEWEST_JUDGED = 24
"""Starts of a judgement, unless these would take more than `_JUDGED_SHARE` of the budget."""
_MOST_JUDGED = 2000
"""The most starts of a judgement."""
_JUDGED_SHARE = 0.02
"""The share of the budget that the fewest starts may take."""
_LEAST_JUDGED = 4
"""Starts of a judgement with any budget."""
_FIRST_JUDGED = 0.2
"""The share of the starts by which trees are compared first."""
_FEWEST_FIRST = 8
"""Starts of such a comparison, if these are no more than half."""


def measured(observations: Floats, units: Units, mirror: Mirror | None) -> Units:
    """Return units with the centre and the scale of each observation, with a few digits.

    In them a mirror changes signs only, and the order of numbers. Samples in which a number has its usual
    value do not count for its scale: that of a contact, which is nearly always 0, is 1.
    """
    scale = np.ones(observations.shape[1])
    if not len(observations):
        return units._replace(centre=np.zeros(len(scale)), scale=scale)
    centre = column_means(observations)
    usual = np.median(observations, axis=0)
    for j, column in enumerate(observations.T):
        others = column[column != usual[j]]
        if len(others):
            spread = math.sqrt(math.fsum(((others - centre[j]) ** 2).tolist()) / len(others))
            scale[j] = spread if spread > 0 else 1.0
    for j, x in enumerate(scale.tolist()):
        places = _SCALE_DIGITS - 1 - math.floor(math.log10(x))
        centre[j] = round(float(centre[j]), places)
        scale[j] = round(x, places)
    if mirror is not None:
        order = list(mirror.order)
        signs = np.array(mirror.signs, np.float64)
        centre = (centre + signs * centre[order]) / 2
        scale = (scale + scale[order]) / 2
    return units._replace(centre=centre, scale=scale)


def bounded(observations: Floats) -> Floats:
    """Return the observations of a plant that has not exploded."""
    return observations[(np.abs(observations) < _LARGEST).all(axis=1)]


def change_of_scale(before: Units, after: Units) -> float:
    """Return the largest factor between scales."""
    return float(max((before.scale / after.scale).max(), (after.scale / before.scale).max()))


def column_means(rows: Floats) -> Floats:
    """Return the mean of each column, added one row after the other."""
    return np.asarray(np.add.accumulate(rows, axis=0)[-1] / len(rows))


class SearchState:
    """The state of a search.

    The incumbent is the best tree by judgement so far: it is only replaced by a tree that is better from the
    same starts, which are used for nothing else.
    """

    def __init__(
        self, settings: TreeSearchSettings, evaluator: CandidateEvaluator, base: CandidateTree
    ) -> None:
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
        self.rung = 0
        """The rung of the race."""
        self.turn = 0
        """The racer whose turn it is."""
        self.restarts = 0
        """How often the race was begun anew in other scales."""
        self.raced_again = False
        self.incumbent: CandidateTree | None = None
        self.begun_at = ""
        """What the search began at, as long as that is the incumbent: a law, a tree, or none of these."""
        self.near_law: float | None = None
        """Returns up to this are near that of the first law, if there was one."""
        self.judgement = Judgement(-np.inf, 0.0, np.empty(0))
        """Of the incumbent; before there is one, with the mean return of random trees."""
        self.digits = 0
        """Significant digits of the incumbent's numbers; 0 for all, of a tree that was given."""
        self.stage = "measure"

    @property
    def best(self) -> CandidateTree:
        """The incumbent, once there is one."""
        assert self.incumbent is not None
        return self.incumbent

    @property
    def mean_return(self) -> float:
        """Of the incumbent, or of random trees."""
        return self.judgement.mean_return

    @property
    def size(self) -> dict[str, int]:
        """Leaves and numbers of the incumbent."""
        if self.incumbent is None:
            return {"leaves": 0, "numbers": 0}
        return {"leaves": self.incumbent.n_leaves, "numbers": self.incumbent.n_numbers}

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

    def units_along(self, tree: CandidateTree, rng: Rng) -> Units:
        """Return the units of what a tree visits."""
        now = self.evaluator.units
        visited = self.evaluator.visited(tree, OBSERVATIONS, rng)
        return measured(bounded(now.centre + now.scale * visited), now, self.mirror)

    def rescale(self, units: Units) -> None:
        """Go on in other units; racers are not converted."""
        before = self.evaluator.units
        if self.incumbent is not None:
            self.incumbent = in_other_units(self.incumbent, before, units)
        self.states = (before.centre + before.scale * self.states - units.centre) / units.scale
        self.evaluator.units = units

    def basis_of(self, tree: CandidateTree) -> Floats | None:
        """Return the basis with which a tree stays its own mirror image, if it is one."""
        return None if self.mirror is None else basis_if_symmetric(tree, self.mirror)

    def racer_at(self, tree: CandidateTree, step: float = 0.5) -> Racer:
        """Return a racer that begins at a tree; one that is its own mirror image stays so."""
        return Racer.of(tree, step=step, basis=self.basis_of(tree))

    def judge_racers(self, racers: list[Racer]) -> None:
        """Score racers by a part of the judgement."""
        for racer in racers:
            racer.score = self.first_score(racer.found)

    def value(self, score: float, tree: CandidateTree) -> float:
        """Return the score less a price for each leaf, so that of equals the smaller is taken."""
        return score - self.settings.leaf_price * self.evaluator.span * tree.n_leaves

    def compare(self, racer: Racer, rng: Rng, new: Judgement | None = None) -> bool:
        """Replace the incumbent if the racer's tree is no worse by judgement: it was searched for longer.

        A first law is only replaced by one that is better by a standard error of the difference, and a tree
        at which the search began, by two, and from enough starts. A tree that is not judged yet must first be
        no worse by a part of the judgement. Returns whether it is replaced.
        """
        found = racer.found
        old = self.incumbent
        if new is None:
            if old is not None and self.value(racer.score, found) < self.value(self.first_score(old), old):
                return False
            new = self.evaluator.judge(found)
        if old is not None:
            self.judge_incumbent()
            gain = self.value(new.score, found) - self.value(self.judgement.score, old)
            least = DOUBTS[self.begun_at]
            if least > 0.0:
                least *= new.error_of_difference(self.judgement)
            if not gain >= least or (self.begun_at and gain <= 0.0):
                return False
            if self.begun_at and len(self.evaluator.judging_starts) < FEWEST_JUDGED:
                if not self.judges_by(FEWEST_JUDGED, rng):
                    return False
                self.judge_racers([racer])
                return self.compare(racer, rng)
        self.incumbent = found
        self.judgement = new
        self.digits = DIGITS
        self.begun_at = ""
        return True

    def judges_by(self, count: int, rng: Rng) -> bool:
        """Judge from so many starts, if there is room for three such judgements; returns whether there is."""
        evaluator = self.evaluator
        if 3 * count * evaluator.judged_length > self.budget - self.spent - evaluator.steps:
            return False
        missing = count - len(evaluator.judging_starts)
        if missing > 0:
            more = evaluator.starts(rng, missing)
            evaluator.judging_starts = np.concatenate([evaluator.judging_starts, more])
        return True

    def first_score(self, tree: CandidateTree) -> float:
        """Return the score of a tree by a part of the judgement."""
        share = _FEWEST_FIRST / len(self.evaluator.judging_starts)
        return self.evaluator.judge(tree, max(_FIRST_JUDGED, min(share, 0.5))).score

    def judge_incumbent(self) -> None:
        """Judge the incumbent anew, and keep its hardest start."""
        if self.incumbent is not None:
            self.judgement = self.evaluator.judge(self.incumbent)
            self.evaluator.keep_hardest(self.evaluator.judging_starts, self.judgement.values)

    def n_judging_starts(self) -> int:
        """The number of starts of a judgement, by the mean length of its episodes."""
        room = self.budget / self.evaluator.judged_length
        wanted = int(0.1 * room / _JUDGEMENTS)
        few = max(_LEAST_JUDGED, int(_JUDGED_SHARE * room))
        return min(max(wanted, min(FEWEST_JUDGED, few)), _MOST_JUDGED)

    def state(self) -> State:
        """Return everything that is needed to go on."""
        evaluator = self.evaluator
        lengths, arrays = evaluator.state()
        data = {
            **{name: getattr(self, name) for name in ("budget", "spent", "rung", "turn", "restarts")},
            "raced_again": self.raced_again,
            "digits": self.digits,
            "begun_at": self.begun_at,
            "near_law": self.near_law,
            "stage": self.stage,
            "mirror": None if self.mirror is None else asdict(self.mirror),
            "score": None if self.incumbent is None else self.judgement.score,
            "mean_return": self.judgement.mean_return,
            "racers": len(self.racers),
            **lengths,
            "best_end": evaluator.best_end,
        }
        arrays |= {
            "states": self.states,
            "centre": evaluator.units.centre,
            "scale": evaluator.units.scale,
            "judged": self.judgement.values,
        }
        if self.incumbent is not None:
            arrays |= prefixed("incumbent", self.incumbent.arrays())
        for i, racer in enumerate(self.racers):
            arrays |= prefixed(f"racer.{i}", racer.arrays())
        return data, arrays

    def restore(self, data: Data, arrays: Arrays) -> None:
        """Restore the result of `state`."""
        for name in ("budget", "spent", "rung", "turn", "restarts", "digits"):
            setattr(self, name, number(data, name, 0, whole=True))
        self.stage = str(data["stage"])
        self.begun_at = str(data["begun_at"])
        self.raced_again = bool(data["raced_again"])
        self.near_law = None if data.get("near_law") is None else number(data, "near_law")
        mirror = data["mirror"]
        self.mirror = None if mirror is None else mirror_from_data(mirror, self.base)
        evaluator = self.evaluator
        evaluator.restore(data, arrays)
        evaluator.best_end = number(data, "best_end")
        dims = self.base.numbers.shape[2] - 1
        centre, scale = (restored(arrays, name, (dims,)) for name in ("centre", "scale"))
        evaluator.units = evaluator.units._replace(centre=centre, scale=scale)
        self.states = restored(arrays, "states", (None, dims))
        incumbent = part(arrays, "incumbent")
        self.incumbent = CandidateTree.from_arrays(incumbent, self.base) if incumbent else None
        score = -np.inf if self.incumbent is None else number(data, "score")
        self.judgement = Judgement(score, number(data, "mean_return"), restored(arrays, "judged"))
        count = number(data, "racers", 0, 64, whole=True)
        self.racers = [Racer.from_arrays(part(arrays, f"racer.{i}"), self.base) for i in range(count)]
        require(
            "search",
            self.begun_at in DOUBTS,
            self.stage in (*STRUCTURE_STAGES, *_LAST_STAGES),
            (scale > 0).all(),
            self.stage != "race" or 0 <= self.turn < count,
            self.stage not in ("polish", "anew", "sharpen", "grow", "refine") or count,
        )
