"""Rungs: structures that were tried, evaluated from common starts, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spaql.algorithms.treesearch.ladder.structures import Structure
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.kernels.numerics import Floats, mean
from spaql.kernels.treesearch.candidates import WORST
from spaql.stats import standard_error, t975

SHARE = 0.01
"""What a kind of feature, or a leaf, must gain, as a share of the best score."""
_DIVERGED = -1e280
"""Values below are of episodes in which the plant left the finite numbers."""


class Nominal(NamedTuple):
    """Measures of a controller in the plant's own episodes."""

    mean: float
    """Mean return."""
    at_rest: float
    """The largest mean error of the last quarter of an episode."""
    movement: float
    """Mean change of an action from one sample to the next, as a share of its range."""
    switches: float
    """Switches between leaves without a change of a set-point, per episode."""


@dataclass(frozen=True, eq=False)
class Rung:
    """A structure that was tried, with its best numbers."""

    structure: Structure
    tree: CandidateTree
    parameters: int
    """How many numbers the controller has."""
    returns: Floats
    """From each of the common starts."""
    changes: Floats
    """From each of them, the changes of the action in shares of its range, and the switches of leaves."""
    price: float
    """Of a change."""
    worst_weight: float
    nominal: Nominal | None = None
    """Measures in the plant's own episodes; none before a rung is chosen."""

    @cached_property
    def parts(self) -> Floats:
        """What each start adds to the score, which is their mean: the worst quarter weighs more."""
        values = self.returns - self.price * self.changes
        n = len(values)
        worst = np.argsort(values, kind="stable")[: max(1, n // WORST)]
        weights = np.full(n, 1.0 - self.worst_weight)
        weights[worst] += self.worst_weight * n / len(worst)
        return np.asarray(weights * values)

    @cached_property
    def score(self) -> float:
        """The mean return less the price of changes, mixed with that of the worst quarter of the starts."""
        return mean(self.parts)

    @property
    def mean(self) -> float:
        """Mean return."""
        return mean(self.returns)

    @property
    def size(self) -> int:
        """Kinds of features and leaves: each must pay."""
        return len(self.structure.kinds) + self.tree.n_leaves

    def is_like(self, other: Rung) -> bool:
        """Whether another rung has the same structure and as many leaves."""
        return self.structure == other.structure and self.tree.n_leaves == other.tree.n_leaves

    def beats(self, other: Rung, share: float) -> bool:
        """Return whether this rung is to be preferred to another one, from the same starts.

        One that is no larger must have the higher score. A larger one must gain the share for each kind of
        feature and each leaf that it has more, and win a paired test (Student's, 97.5 %, one-sided).
        """
        if self._diverges != other._diverges:
            return other._diverges
        gains = self.parts - other.parts
        gain = mean(gains)
        more = self.size - other.size
        n = len(gains)
        if more <= 0:
            return gain > 0
        with np.errstate(over="ignore", invalid="ignore"):  # both may diverge
            error = standard_error(gains) if n > 1 else math.inf
        return gain > share * more and gain > t975(max(1, n - 1)) * error

    @property
    def _diverges(self) -> bool:
        return bool(self.returns.min() < _DIVERGED)

    def row(self) -> dict[str, Any]:
        """Return what a person wants to know of it; measures of the plant's own episodes may be None."""
        own = self.nominal._asdict() if self.nominal else dict.fromkeys(Nominal._fields)
        return {
            "structure": self.structure.name,
            "score": self.score,
            "return": self.mean,
            "worst": float(self.returns.min()),
            "nominal": own["mean"],
            "error at rest": own["at_rest"],
            "movement": own["movement"],
            "switches": own["switches"],
            "leaves": self.tree.n_leaves,
            "numbers": self.parameters,
        }


def choose(rungs: Sequence[Rung]) -> int:
    """Return the place of the plainest rung that no other beats.

    There is one, because nothing beats the highest score; and what is chosen is worse than no plainer rung.
    """
    share = SHARE * abs(max(rung.score for rung in rungs))
    unbeaten = [i for i, rung in enumerate(rungs) if not any(other.beats(rung, share) for other in rungs)]
    return min(unbeaten, key=lambda i: (rungs[i].size, -rungs[i].score))
