"""Termination: where in the state space an episode ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.plantree.exact_sums import weighed
from spaql.algorithms.plantree.memory import Floats
from spaql.kernels.plantree.termination import grow_ends, logistic

_RIDGE = 0.01


def fit_ends(
    after: Floats, ended: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64], Floats, Floats]:
    """Fit a tree that gives the chance that an episode ends on coming to a state.

    The tree may also look at a score, quadratic in the state, by which logistic regression tells ends from
    other states: a bound that is no box, as the height of a linkage, is one cut then. Gives the nodes, the
    chances, and the weights of the score, or none if it is not looked at.
    """
    if ended.any() and not ended.all():
        x = quadratic(after)
        weights = logistic(x, ended, _RIDGE)
        nodes = grow_ends(np.concatenate([after, weighed(x, weights)[:, np.newaxis]], axis=1), ended)
        if (nodes[0] == after.shape[1]).any():
            return *nodes, weights
    return *grow_ends(after, ended), np.zeros(0)


def quadratic(z: Floats) -> Floats:
    """Give 1, z, and the products of two of its numbers, for each state."""
    first, second = np.triu_indices(z.shape[1])
    return np.concatenate([np.ones((len(z), 1)), z, z[:, first] * z[:, second]], axis=1)
