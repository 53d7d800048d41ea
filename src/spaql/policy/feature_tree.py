"""Rule trees over features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.kernels.controller import Floats
from spaql.policy.arrays import action_range
from spaql.policy.feature_table import feature_names
from spaql.policy.features import Feature
from spaql.policy.leaves import Laws
from spaql.policy.tree import RuleTree

POSITION, VELOCITY = "position", "velocity"
"""The forms of a controller: laws are the action, or its change in a sample."""


def law_bounds(action_space: Box, form: str) -> tuple[Floats, Floats]:
    """Return the bounds of laws: the range of the action, and none in velocity form."""
    low, high = action_range(action_space)
    return (np.full(len(low), -np.inf), np.full(len(low), np.inf)) if form == VELOCITY else (low, high)


def tree_over_features(
    features: Sequence[Feature],
    gain: Floats,
    offset: Floats,
    action_space: Box,
    observations: Sequence[str],
    actions: Sequence[str],
    form: str = POSITION,
    nodes: Mapping[str, NDArray[Any]] | None = None,
    combinations: Floats | tuple[()] = (),
) -> RuleTree:
    """Return a tree of laws over features, with the spaces and names that `FeatureController` asks for.

    Parameters
    ----------
    features, action_space, observations, actions, form
        As of the controller.
    gain, offset
        Of the laws: laws × numbers of an action × features, and laws × numbers of an action.
    nodes
        The arrays of the nodes of a `RuleTree`; by default it has one leaf.
    combinations
        The weights of sums of features that rules compare.
    """
    leaf = {"feature": [-1], "threshold": [0.0], "left": [-1], "right": [-1], "leaf": [0]}
    arrays: dict[str, Any] = {name: np.array(array) for name, array in (nodes or leaf).items()}
    low, high = law_bounds(action_space, form)
    shape = action_space.shape
    return RuleTree(
        **arrays,
        leaves=Laws(np.asarray(gain, np.float64), np.asarray(offset, np.float64), low, high),
        observation_space=Box(-np.inf, np.inf, (len(features),), np.float64),
        action_space=Box(low.reshape(shape), high.reshape(shape), shape, np.float64),
        observations=feature_names(features, observations, actions),
        actions=tuple(actions),
        combinations=np.asarray(combinations, np.float64),
    )
