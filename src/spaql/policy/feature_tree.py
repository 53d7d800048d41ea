"""Rule trees over features, and their arrays for the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.kernels.controller import Floats, Ints
from spaql.policy.arrays import action_range, copied_nodes
from spaql.policy.feature_table import feature_names
from spaql.policy.features import Feature
from spaql.policy.leaves import Constants, Laws
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


def tree_table(tree: RuleTree) -> tuple[Ints, Floats, Ints]:
    """Return a tree as exported code writes it, and the number that each node compares (-1 for a leaf).

    A row of a node is `[threshold, weights]` of a cut, or `[offset, gains]` of a law. The children of a node
    are neighbours, and shared subtrees are copied.
    """
    order = copied_nodes(tree)
    inner = tree.feature[order] >= 0
    left = np.where(inner, 2 * np.cumsum(inner) - 1, -1)
    rows = len(tree.actions)
    numbers, leaves = np.zeros((len(order), rows, 1 + tree.dims)), tree.leaves
    for i, node in enumerate(order):
        j, row = int(tree.feature[node]), int(tree.leaf[node])
        if j >= 0:
            weights = np.eye(tree.dims)[j] if j < tree.dims else tree.combinations[j - tree.dims]
            numbers[i, 0] = np.append(tree.threshold[node], weights)
        elif isinstance(leaves, Laws):
            numbers[i] = np.concatenate([leaves.offset[row][:, np.newaxis], leaves.gain[row]], axis=1)
        else:
            assert isinstance(leaves, Constants)
            numbers[i, :, 0] = leaves.value[row]
    return left, numbers, tree.feature[order].astype(np.int64)
