"""Scores of candidate trees, by episodes from fresh starts, hard starts and the starts of judgements."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spaql.algorithms.saved import Arrays, Data, State, require, restored
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.archive import number
from spaql.controllers.arrays import Frame
from spaql.errors import SettingError
from spaql.kernels.numerics import Floats, Rng, mean
from spaql.kernels.treesearch.candidates import WORST, Units, score_candidates
from spaql.problems import Dynamics
from spaql.problems.disturbances import Perturbation
from spaql.simulate import CandidateEpisodes, Candidates, EpisodeRunner, Phase
from spaql.stats import standard_error

_LENGTHS = ("length", "judged_length", "span")
DIGITS = 6
"""Significant digits of the numbers of a tree when it is judged; those that are returned have no more."""
_HARD = 32
"""The most hard starts to keep."""
_RECENT = 0.2
"""Weight of the last episodes in their mean length."""
_LARGEST = 1e290
"""Returns are cut to this, so that sums of them are finite: plants may explode."""
_HARD_SHARE = 8
"""One in so many starts of a generation is a hard one."""


@dataclass(frozen=True)
class Judgement:
    """The result of a judgement."""

    score: float
    mean_return: float
    values: Floats
    """The return from each start, less the price of movement."""

    def error_of_difference(self, other: Judgement) -> float:
        """Return the standard error of the mean difference to another judgement from the same starts."""
        with np.errstate(invalid="ignore"):
            return standard_error(self.values - other.values) if len(self.values) > 1 else 0.0


class CandidateEvaluator:
    """Plays candidates, and scores them.

    Hard starts are those from which the better half of a generation had the lowest return. They are kept, and
    played again, until easier for the candidates than others.
    """

    def __init__(self, settings: TreeSearchSettings, units: Units, horizon: int, frame: Frame) -> None:
        self.settings = settings
        self.units = units
        self.horizon = horizon
        self.frame = frame
        """What surrounds the trees."""
        self.runner: EpisodeRunner | None = None
        """Plays the episodes; set for the duration of an iteration."""
        self.steps = 0
        """Steps of this iteration."""
        self.length = float(horizon)
        """Mean length of the last episodes."""
        self.judged_length = float(horizon)
        """The same of judgements, whose trees are better than most: their episodes may be much shorter."""
        self.span = 0.0
        """The range of returns: how much better the best controller is than random ones."""
        self.weighs_worst = True
        """Whether the worst and the hard starts and the movement of actions count, as in the finish.

        What never fails, or moves little, may be far from the best.
        """
        self.keeps_hard_starts = True
        """Whether hard starts are kept and judged by; if not, all judgements are comparable."""
        self.hard: Floats = np.empty((0, 0))
        self.hardness: Floats = np.empty(0)
        """The mean return of good candidates from each hard start."""
        self.judging_starts: Floats = np.empty((0, 0))
        self.best_end = -_LARGEST
        """The highest return of an episode that ended before the horizon."""
        self.plant: Dynamics | Perturbation | None = None
        """The plant to design for, if it is not that of the problem."""

    @property
    def price(self) -> float:
        """The price of a change of the action by its whole range.

        A list of actions has none: where returns are limited, as CartPole's, it would be paid by controllers
        that switch less often, and that fail from some starts.
        """
        if self.frame.discrete or not self.weighs_worst:
            return 0.0
        return self.settings.movement_price * self.span / self.horizon

    @property
    def worst_weight(self) -> float:
        """The weight of the worst quarter of the starts."""
        return self.settings.worst_weight if self.weighs_worst else 0.0

    def play(
        self,
        tree: CandidateTree,
        starts: Floats,
        phase: Phase,
        *,
        vectors: Floats | None = None,
        visited: int = 0,
        digits: int = 0,
    ) -> CandidateEpisodes:
        """Play a tree, or candidates with its structure, from starts, and count the steps."""
        assert self.runner is not None
        parts = tree.unfolded(tree.raw(self.units, digits, vectors))
        candidates = Candidates.of(*parts, self.frame)
        found = self.runner.play_candidates(candidates, starts, phase, visited, self.plant)
        np.clip(
            np.nan_to_num(found.returns, copy=False, nan=-_LARGEST), -_LARGEST, _LARGEST, out=found.returns
        )
        self.steps += found.steps
        self.best_end = max(self.best_end, found.best_end)
        self.length += _RECENT * (found.steps / found.returns.size - self.length)
        return found

    def starts(self, rng: Rng, n: int) -> Floats:
        """Draw fresh starts."""
        assert self.runner is not None
        return self.runner.candidate_starts(rng, n, self.plant)

    def check_starts(self) -> None:
        """Refuse to go on in another form of the environment, whose starts are of another kind."""
        width = self.starts(np.random.default_rng(0), 1).shape[1]
        kept = [starts for starts in (self.hard, self.judging_starts) if len(starts)]
        if any(starts.shape[1:] != (width,) for starts in kept):
            raise SettingError(
                "The search began in another form of the environment, compiled or not: go on in that, or "
                "begin a new search."
            )

    def score(self, tree: CandidateTree, vectors: Floats, n: int, rng: Rng) -> tuple[Floats, float, float]:
        """Score a generation from n starts; returns scores, agreement (see the kernel) and mean length."""
        starts = self.mixed_starts(rng, n)
        found = self.play(tree, starts, Phase.SEARCH, vectors=vectors)
        scores, agreement = self.scores_of(found)
        if self.keeps_hard_starts:
            self._mine(starts, found.returns, scores)
        return scores, agreement, found.steps / found.returns.size

    def scores_of(self, found: CandidateEpisodes) -> tuple[Floats, float]:
        """Return the score of each candidate, and the agreement of two halves of the starts on them."""
        scores = np.empty(len(found.returns))
        weight = self.worst_weight
        return scores, score_candidates(found.returns, found.changes, self.price, weight, scores)

    def mixed_starts(self, rng: Rng, n: int) -> Floats:
        """Draw fresh starts and some of the hard ones."""
        starts = self.starts(rng, n)
        if not self.weighs_worst:
            return starts
        again = min(len(self.hard), n // _HARD_SHARE + (rng.random() < n % _HARD_SHARE / _HARD_SHARE))
        if again:
            starts[:again] = self.hard[rng.integers(len(self.hard), size=again)]
        return starts

    def begin_hard_starts(self, rng: Rng) -> None:
        """Begin the hard starts anew, with those at the corners of their distribution.

        Finding them takes no steps, and starts that fail are often there.
        """
        assert self.runner is not None
        self.hard = self.runner.corner_starts(rng, _HARD, self.plant)
        self.hardness = np.full(len(self.hard), -_LARGEST)

    def _mine(self, starts: Floats, returns: Floats, scores: Floats) -> None:
        """Keep the start from which the better half of a generation did worst."""
        better = np.argsort(-scores, kind="stable")[: max(1, len(scores) // 2)]
        means = [math.fsum(returns[better, i].tolist()) / len(better) for i in range(len(starts))]
        self.keep_hardest(starts, np.array(means))

    def keep_hardest(self, starts: Floats, means: Floats) -> None:
        """Keep the hardest of some starts; of those that were played again, keep the new return."""
        worst = int(np.argmin(means))
        if not len(self.hard):
            self.hard = starts[:0].copy()
            self.hardness = np.empty(0)
        same = (self.hard[:, np.newaxis] == starts).all(axis=2)
        for k in np.flatnonzero(same.any(axis=1)):
            self.hardness[k] = means[int(np.argmax(same[k]))]
        if not same[:, worst].any():
            self.hard = np.concatenate([self.hard, starts[worst : worst + 1]])
            self.hardness = np.append(self.hardness, means[worst])
        if len(self.hard) > _HARD:
            keep = np.sort(np.argsort(self.hardness, kind="stable")[:_HARD])
            self.hard = self.hard[keep]
            self.hardness = self.hardness[keep]

    def judge(self, tree: CandidateTree, share: float = 1.0, digits: int = DIGITS) -> Judgement:
        """Judge a tree from the starts of judgements, or a share of them, and from the hardest starts.

        The worst of the score are the worst of both: failures too rare for a judgement are among the hard
        ones. They change as the search goes on, so only judgements made one after the other are comparable.
        """
        weight = self.worst_weight
        starts = self.judging_starts[: max(1, int(share * len(self.judging_starts)))]
        n = len(starts)
        if self.keeps_hard_starts and len(self.hard) and weight > 0:
            hardest = np.argsort(self.hardness, kind="stable")[: max(1, n // 2)]
            starts = np.concatenate([starts, self.hard[hardest]])
        found = self.play(tree, starts, Phase.OWN_PLAY, digits=digits)
        self.judged_length += _RECENT * (found.steps / found.returns.size - self.judged_length)
        values = found.returns[0] - self.price * found.changes[0]
        worst = np.sort(values)[: max(1, n // WORST)]
        score = (1 - weight) * mean(values[:n]) + weight * mean(worst)
        return Judgement(score, mean(found.returns[0, :n]), values[:n])

    def visited(self, tree: CandidateTree, n: int, rng: Rng) -> Floats:
        """Return observations of episodes of a tree, in the units of the search."""
        found = self.play(tree, self.starts(rng, 8), Phase.SEARCH, visited=n)
        return (found.visited - self.units.centre) / self.units.scale

    def state(self) -> State:
        """Return everything that is needed to go on."""
        arrays = {"judging_starts": self.judging_starts, "hard": self.hard, "hardness": self.hardness}
        return {name: getattr(self, name) for name in _LENGTHS}, arrays

    def restore(self, data: Data, arrays: Arrays) -> None:
        """Restore the result of `state`; without hard starts there were none."""
        for name in _LENGTHS:
            setattr(self, name, number(data, name, 0))
        for name in {"judging_starts", "hard", "hardness"} & {*arrays}:
            setattr(self, name, restored(arrays, name))
        require("search", len(self.hard) == len(self.hardness))
