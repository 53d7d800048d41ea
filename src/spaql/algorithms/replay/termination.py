"""Fitting the termination tree: where in the state space episodes terminate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.replay.exact_sums import weighted_sum
from spaql.algorithms.replay.memory import Floats
from spaql.kernels.plantree.termination import grow_termination, logistic

_RIDGE = 0.01


def fit_termination(
    after: Floats, ended: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64], Floats, Floats]:
    """Fit a tree that predicts the probability that an episode terminates in a state.

    The tree may also test a score, quadratic in the state, by which logistic regression separates terminal
    states from others, so that a curved boundary, as the height of a linkage, needs one cut. Returns the
    nodes, the probabilities, and the weights of the score, which are empty if it is not tested.
    """
    if ended.any() and not ended.all():
        x = quadratic(after)
        weights = logistic(x, ended, _RIDGE)
        nodes = grow_termination(
            np.concatenate([after, weighted_sum(x, weights)[:, np.newaxis]], axis=1), ended
        )
        if (nodes[0] == after.shape[1]).any():
            return *nodes, weights
    return *grow_termination(after, ended), np.zeros(0)


def quadratic(z: Floats) -> Floats:
    """Return 1, z, and the pairwise products of its numbers, for each state."""
    first, second = np.triu_indices(z.shape[1])
    return np.concatenate([np.ones((len(z), 1)), z, z[:, first] * z[:, second]], axis=1)
