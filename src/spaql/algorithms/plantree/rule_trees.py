"""Conversion of controllers to rule trees in raw units, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.algorithms.plantree.encoding import ActionCode, Scale
from spaql.algorithms.plantree.exact_sums import weighted_sum
from spaql.archive import typed
from spaql.kernels.plantree.controllers import ControllerTree, tidy
from spaql.policy import Choices, Laws, RuleTree
from spaql.policy.leaves import first_equal
from spaql.policy.nodes import Nodes
from spaql.policy.tree_file import NODES, nodes_from
from spaql.problems import Problem


def to_rules(tree: ControllerTree, scale: Scale, code: ActionCode, problem: Problem) -> RuleTree:
    """Return a controller as a rule tree, with the standardisation absorbed in its parameters."""
    tree = tidy(tree)
    inner = tree.feature >= 0
    column = np.maximum(tree.feature, 0)
    raw = tree.threshold * scale.deviation[column] + scale.mean[column]
    leaf = np.cumsum(~inner) - 1
    if isinstance(code.space, Discrete):
        leaves: Choices | Laws = Choices(int(code.space.start) + tree.law[~inner, 0, 0].astype(np.int64))
    else:
        half = code.half[:, np.newaxis]
        gain = tree.law[~inner][:, :, 1:] * half / scale.deviation
        offset = code.middle + tree.law[~inner][:, :, 0] * code.half - weighted_sum(gain, scale.mean)
        leaves = Laws(gain, offset, code.middle - code.half, code.middle + code.half)
    nodes = {
        "feature": np.where(inner, tree.feature, -1),
        "threshold": np.where(inner, raw, 0.0),
        "left": np.where(inner, tree.left, -1),
        "right": np.where(inner, tree.left + 1, -1),
        "leaf": np.where(inner, -1, leaf),
    }
    return _rule_tree(nodes, leaves, code, problem)


def idle_rules(code: ActionCode, problem: Problem) -> RuleTree:
    """Return the untrained controller: the first Discrete action, or the centre of a Box."""
    if isinstance(code.space, Discrete):
        leaves: Choices | Laws = Choices(np.array([int(code.space.start)]))
    else:
        gain = np.zeros((1, len(code.middle), problem.states.dims))
        leaves = Laws(gain, code.middle[np.newaxis], code.middle - code.half, code.middle + code.half)
    alone = {"feature": -1, "threshold": 0.0, "left": -1, "right": -1, "leaf": 0}
    return _rule_tree({name: np.array([value]) for name, value in alone.items()}, leaves, code, problem)


def from_rules(rules: RuleTree, scale: Scale, code: ActionCode) -> ControllerTree:
    """Return the controller of a rule tree made by `to_rules`, for the current standardisation."""
    inner = rules.feature >= 0
    column = np.maximum(rules.feature, 0)
    threshold = np.where(inner, (rules.threshold - scale.mean[column]) / scale.deviation[column], 0.0)
    row = np.maximum(rules.leaf, 0)
    if isinstance(rules.leaves, Laws):
        gain, offset = rules.leaves.gain[row], rules.leaves.offset[row]
        first = (offset + weighted_sum(gain, scale.mean) - code.middle) / code.half
        rest = gain * scale.deviation / code.half[:, np.newaxis]
        law = np.concatenate([first[:, :, np.newaxis], rest], axis=2)
    else:
        assert isinstance(rules.leaves, Choices)
        assert isinstance(code.space, Discrete)
        law = (rules.leaves.number[row] - int(code.space.start)).astype(np.float64)[:, np.newaxis, np.newaxis]
    return ControllerTree(
        rules.feature.astype(np.int64), threshold, np.maximum(rules.left, 0).astype(np.int64), law
    )


def rules_to(rules: RuleTree) -> dict[str, NDArray[Any]]:
    """Return a rule tree as arrays (see `rules_from`)."""
    nodes = {name: np.array(getattr(rules, name)) for name in NODES}
    if isinstance(rules.leaves, Choices):
        return nodes | {"number": rules.leaves.number}
    assert isinstance(rules.leaves, Laws)
    return nodes | {"gain": rules.leaves.gain, "offset": rules.leaves.offset}


def rules_from(arrays: Mapping[str, NDArray[Any]], code: ActionCode, problem: Problem) -> RuleTree:
    """Return the rule tree of arrays made by `rules_to`."""
    if "number" in arrays:
        leaves: Choices | Laws = Choices(np.array(typed(arrays["number"], np.int64)))
    else:
        gain, offset = (np.array(typed(arrays[name], np.float64)) for name in ("gain", "offset"))
        leaves = Laws(gain, offset, code.middle - code.half, code.middle + code.half)
    return _rule_tree(nodes_from(arrays), leaves, code, problem)


def _rule_tree(
    nodes: Mapping[str, NDArray[Any]], leaves: Choices | Laws, code: ActionCode, problem: Problem
) -> RuleTree:
    assert isinstance(problem.states.space, Box)
    return RuleTree(
        feature=nodes["feature"],
        threshold=nodes["threshold"],
        left=nodes["left"],
        right=nodes["right"],
        leaf=nodes["leaf"],
        leaves=leaves,
        observation_space=problem.states.space,
        action_space=code.space,
        observations=problem.states.names,
        actions=problem.actions.names,
    )


def within_space(rules: RuleTree) -> RuleTree:
    """Return the rules without nodes that no observation of the space reaches, and without equal leaves.

    Learned plants may leave the bounds of the space, so a controller keeps such nodes while it is improved
    and compared.
    """
    assert isinstance(rules.observation_space, Box)
    rows, nodes = first_equal(rules.leaves), Nodes()

    def write(node: int, low: NDArray[np.float64], high: NDArray[np.float64]) -> int:
        j, cut = int(rules.feature[node]), float(rules.threshold[node])
        if j < 0:
            return nodes.leaf(int(rows[rules.leaf[node]]))
        here, sides = np.arange(rules.dims) == j, []
        if low[j] < cut:
            last = np.nextafter(cut, -np.inf)
            sides.append(write(int(rules.left[node]), low, np.where(here, np.minimum(high, last), high)))
        if high[j] >= cut:
            sides.append(write(int(rules.right[node]), np.where(here, np.maximum(low, cut), low), high))
        return sides[0] if len(sides) == 1 else nodes.rule(j, cut, *sides)

    space = rules.observation_space
    root = write(0, space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel())
    kept: dict[str, Any] = nodes.arrays(root)
    used, leaves = np.unique(kept["leaf"][kept["feature"] < 0]), rules.leaves
    kept["leaf"] = np.where(kept["feature"] < 0, np.searchsorted(used, kept["leaf"]), -1)
    if isinstance(leaves, Choices):
        return replace(rules, **kept, leaves=Choices(leaves.number[used]))
    assert isinstance(leaves, Laws)
    return replace(rules, **kept, leaves=replace(leaves, gain=leaves.gain[used], offset=leaves.offset[used]))


def in_pairs(rules: RuleTree) -> RuleTree:
    """Return the same rules with the right side of each next to its left side, as `from_rules` needs it."""
    order, left, i = [0], [], 0
    while i < len(order):
        node = order[i]
        inner = rules.feature[node] >= 0
        left.append(len(order) if inner else -1)
        order += [int(rules.left[node]), int(rules.right[node])] if inner else []
        i += 1
    sides = np.array(left)
    return replace(
        rules,
        feature=rules.feature[order],
        threshold=rules.threshold[order],
        left=sides,
        right=np.where(sides >= 0, sides + 1, -1),
        leaf=rules.leaf[order],
    )
