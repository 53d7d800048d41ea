"""A racer: CMA-ES on the free numbers of one tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from spaql.algorithms.saved import Arrays, require, restored
from spaql.algorithms.treesearch.evaluator import CandidateEvaluator
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.archive import typed
from spaql.kernels.numerics import Floats, Rng
from spaql.kernels.treesearch.cma import Distribution, ask, new_distribution, population_size, tell

_FEWEST = 6
"""The fewest starts of a generation, if there is room for them."""
_MOST = 512
"""The most."""
_GENERATIONS = 60
"""A generation has no more starts than leave about so many generations in all."""
_GENERATIONS_EACH = 8
"""The same for each number that is searched."""
_LEAST = 2
"""Starts of a generation of a race, if there is no room."""
LEAST_OF_BEST = 8
"""The same of the best tree, which fewer make worse."""
_FEWEST_GENERATIONS = 10
"""There is no room for starts with which there would be fewer generations in all."""
_FIRST_STEP = 0.5
_FADING = 3.0
"""The weight of a generation in the average grows with this power of its number."""


@dataclass
class Racer:
    """CMA-ES on the free numbers of one tree.

    Every generation has fresh starts, the same for all of its candidates, and some of the hard ones. Their
    number follows how well two halves of them agree on the candidates: fewer where they do, more where not.
    """

    tree: CandidateTree
    distribution: Distribution
    starts: float = 8.0
    """Starts of the next generation."""
    length: float = 0.0
    """Mean length of the last episodes."""
    score: float = field(default=-np.inf)
    """Of the last judgement."""
    laws: Callable[[Floats], Floats] = lambda vectors: vectors
    """Returns the free numbers of the tree for what is searched: these numbers, unless it is something else
    that they follow from, as the weights of a regulator."""
    basis: Floats | None = None
    """Orthogonal columns, if sums of them are searched and not the free numbers of the tree."""
    average: Floats = field(init=False)
    """Of the middles of the generations, of which the later weigh more: each follows its own starts."""

    def __post_init__(self) -> None:
        self.average = self.distribution.mean.copy()
        if (basis := self.basis) is not None:
            self.laws = lambda vectors: vectors @ basis.T

    @classmethod
    def of(
        cls, tree: CandidateTree, least: float = 0.2, step: float = _FIRST_STEP, basis: Floats | None = None
    ) -> Racer:
        """Return a racer that begins at a tree; every number is varied by a share of it, and `least`."""
        vector = tree.vector if basis is None else tree.vector @ basis / (basis * basis).sum(axis=0)
        return cls(tree, new_distribution(vector, least + 0.3 * np.abs(vector), step), basis=basis)

    @property
    def found(self) -> CandidateTree:
        """The tree in the middle of the distribution."""
        return self.tree.with_vector(self.laws(self.distribution.mean[np.newaxis])[0])

    def judge(self, score_of: Callable[[CandidateTree], float]) -> None:
        """Score the tree in the middle; the middle moves to the average, or that to it, if it is better."""
        middle = self.distribution.mean
        before = self.distribution.mean.copy()
        self.score = score_of(self.found)
        middle[:] = self.average
        score = score_of(self.found)
        if score > self.score:
            self.score = score
        else:
            middle[:] = before
            self.average = before

    def least_steps(self, length: float) -> float:
        """Return how many steps its generations take at least, by the mean length of an episode."""
        n = len(self.distribution.mean)
        return _generations(n) * population_size(n) * _LEAST * length

    def generation_steps(self, length: float) -> float:
        """Return how many steps a generation takes at least."""
        return population_size(len(self.distribution.mean)) * _LEAST * (self.length or length)

    def run(
        self,
        evaluator: CandidateEvaluator,
        steps: float,
        plan: float,
        rng: Rng,
        fewest: int = _FEWEST,
        least: int = _LEAST,
    ) -> None:
        """Search for so many steps, to half a generation; `plan` is what the racer will be given in all.

        A generation has `fewest` starts or more; without room for them less, if possible not below `least`.
        """
        n = len(self.distribution.mean)
        if n == 0:
            return
        generations = _generations(n)
        vectors = np.empty((population_size(n), n))
        last = evaluator.steps + steps
        cost = 0
        while evaluator.steps + cost / 2 < last:
            length = self.length or evaluator.length
            room = min(plan / generations, last - evaluator.steps) / (len(vectors) * length)
            most = max(_LEAST, plan / _FEWEST_GENERATIONS / (len(vectors) * length))
            count = int(max(min(least, most), min(_MOST, room, max(fewest, self.starts)))) // 2 * 2
            ask(self.distribution, rng, vectors)
            before = evaluator.steps
            scores, agreement, self.length = evaluator.score(self.tree, self.laws(vectors), count, rng)
            cost = evaluator.steps - before
            if agreement < 0.25:
                self.starts *= 1.1
            elif agreement > 0.6:
                self.starts *= 0.95
            self.starts = min(max(self.starts, _FEWEST), _MOST)
            tell(self.distribution, vectors, scores)
            weight = (_FADING + 1.0) / (self.distribution.scalars[1] + _FADING)
            self.average += weight * (self.distribution.mean - self.average)

    def arrays(self) -> Arrays:
        """Return everything as arrays (see `from_arrays`)."""
        own = np.array([self.starts, self.length, self.score])
        basis = {} if self.basis is None else {"basis": self.basis}
        found = {**self.distribution._asdict(), "average": self.average}
        return {**self.tree.arrays(), **found, "own": own, **basis}

    @classmethod
    def from_arrays(cls, arrays: Arrays, like: CandidateTree) -> Racer:
        """Return the racer of `arrays`, for the problem of another tree."""
        tree = CandidateTree.from_arrays(arrays, like)
        n = int(tree.free.sum())
        basis = restored(arrays, "basis", (n, None)) if "basis" in arrays else None
        n = n if basis is None else basis.shape[1]
        shapes = ((n,), (n, n), (n, n), (n,), (n,), (2,))
        distribution = Distribution(
            *(restored(arrays, name, shape) for name, shape in zip(Distribution._fields, shapes, strict=True))
        )
        starts, length, score = typed(arrays["own"], np.float64).tolist()
        require(
            "racer",
            (distribution.factor.diagonal() > 0).all(),
            distribution.scalars[0] > 0,
            math.isfinite(starts),
            math.isfinite(length),
        )
        racer = cls(tree, distribution, starts, length, score, basis=basis)
        racer.average = restored(arrays, "average", (n,))
        return racer


def _generations(n: int) -> int:
    """Return about how many generations a search of n numbers needs."""
    return max(_GENERATIONS, _GENERATIONS_EACH * n)
