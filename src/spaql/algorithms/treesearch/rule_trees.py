"""Conversion of candidate trees to rule trees in raw units, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.errors import SettingError
from spaql.kernels.treesearch.candidates import Bools, Floats, Ints, Units
from spaql.policy import Constants, Laws, RuleTree, SwitchingLaws
from spaql.policy.arrays import action_range
from spaql.policy.leaves import Leaves
from spaql.policy.tree import Lock
from spaql.problems import Problem


def to_rules(tree: CandidateTree, units: Units, problem: Problem, digits: int = 0) -> RuleTree:
    """Return a candidate as a rule tree with rounded numbers; a cut along one number is a plain rule."""
    first_child, allowed, both = tree.unfolded(tree.raw(tree.vector[np.newaxis], units, digits))
    numbers = both[0]
    inner = first_child >= 0
    dims = problem.states.dims
    feature, threshold = np.full(len(inner), -1), np.zeros(len(inner))
    left, right = np.where(inner, first_child, -1), np.where(inner, first_child + 1, -1)
    combinations: list[Floats] = []
    for node in np.flatnonzero(inner):
        bound, weights = float(numbers[node, 0, 0]), numbers[node, 0, 1:]
        used = np.flatnonzero(weights)
        if len(used) == 1 and weights[used[0]] == 1.0:
            feature[node], threshold[node] = used[0], bound
        elif len(used) == 1:  # of -x < t the other side is x < u, with u the float after -t
            feature[node], threshold[node] = used[0], np.nextafter(-bound, np.inf)
            left[node], right[node] = right[node], left[node]
        else:
            feature[node], threshold[node] = dims + len(combinations), bound
            combinations.append(weights)
    space = problem.actions.space
    leaves: Leaves
    if isinstance(space, Discrete):
        gain = np.where(allowed[~inner][:, :, np.newaxis], numbers[~inner][:, :, 1:], 0.0)
        offset = np.where(allowed[~inner], numbers[~inner][:, :, 0], -np.inf)
        leaves = SwitchingLaws(gain, offset, int(space.start))
    else:
        leaves = Laws(
            numbers[~inner][:, :, 1:], numbers[~inner][:, :, 0], *action_range(problem.actions.space)
        )
    assert isinstance(problem.states.space, Box)
    rules = RuleTree(
        feature=feature,
        threshold=threshold,
        left=left,
        right=right,
        leaf=np.where(inner, -1, np.cumsum(~inner) - 1),
        leaves=leaves,
        observation_space=problem.states.space,
        action_space=space,
        observations=problem.states.names,
        actions=problem.actions.names,
        combinations=np.array(combinations),
    )
    if not tree.locked.any():
        return rules
    boxes = [rules.box(leaf) for leaf in range(1, rules.n_leaves + 1)]
    fixed = set(rules.leaf[tree.locked & ~inner].tolist())
    return replace(rules, locks=tuple(Lock(*box) for box in boxes if box[2] in fixed))


def from_rules(rules: RuleTree, units: Units, base: CandidateTree) -> CandidateTree:
    """Return a rule tree as a candidate; locked leaves and the cuts that lead to them are not free."""
    order = [0]
    left: list[int] = []
    for node in order:  # which grows
        if rules.feature[node] < 0:
            left.append(-1)
        else:
            left.append(len(order))
            order += [int(rules.left[node]), int(rules.right[node])]
    rows, width = base.numbers.shape[1:]
    start = int(rules.action_space.start) if isinstance(rules.action_space, Discrete) else 0
    numbers, free = np.zeros((len(order), rows, width)), np.zeros((len(order), rows, width), bool)
    allowed, exact = np.ones((len(order), rows), bool), np.zeros((len(order), rows, width))
    for i, node in enumerate(order):
        j = int(rules.feature[node])
        if j >= 0:
            weights = np.eye(width - 1)[j] if j < width - 1 else rules.combinations[j - width + 1]
            exact[i, 0] = np.append(rules.threshold[node], weights)
            numbers[i, 0] = _in_units(float(rules.threshold[node]), weights, units)
            free[i, 0] = True
            free[i, 0, 1 + int(np.argmax(np.abs(numbers[i, 0, 1:])))] = False
            continue
        gain, offset, allowed[i] = _law(rules.leaves, int(rules.leaf[node]), (rows, width - 1), start)
        exact[i] = np.concatenate([offset[:, np.newaxis], gain], axis=1)
        numbers[i], free[i] = _law_in_units(gain, offset, units), allowed[i][:, np.newaxis]
    locked = np.zeros(len(order), bool)
    locked[_locked_nodes(rules, order, np.array(left))] = True
    free[locked] = False
    return CandidateTree(np.array(left), numbers, free, allowed, locked, exact, base.listed)


def in_other_units(tree: CandidateTree, before: Units, units: Units) -> CandidateTree:
    """Return a tree of the units of a search in those of another."""
    numbers, free = tree.raw(tree.vector[np.newaxis], before)[0], tree.free.copy()
    for node in range(len(numbers)):
        if tree.left[node] >= 0:
            numbers[node, 0] = _in_units(float(numbers[node, 0, 0]), numbers[node, 0, 1:], units)
            if not tree.locked[node]:
                free[node, 0, 1:] = numbers[node, 0, 1:] != 0.0
                free[node, 0, 1 + int(np.argmax(np.abs(numbers[node, 0, 1:])))] = False
        else:
            numbers[node] = _law_in_units(numbers[node, :, 1:], numbers[node, :, 0], units)
    return replace(tree, numbers=numbers, free=free)


def _in_units(bound: float, weights: Floats, units: Units) -> Floats:
    """Return a cut in the units of the search, whose largest weight is 1."""
    scaled = weights * units.scale
    size = float(np.abs(scaled).max())
    for weight, centre in zip(weights.tolist(), units.centre.tolist(), strict=True):
        bound -= weight * centre
    return np.append(bound, scaled) / size


def _law(leaves: Leaves, row: int, shape: tuple[int, int], start: int) -> tuple[Floats, Floats, Bools]:
    """Return the gains, offsets and allowed actions of a leaf, as a law or a switching law."""
    allowed = np.ones(shape[0], bool)
    if isinstance(leaves, Laws):
        return leaves.gain[row], leaves.offset[row], allowed
    if isinstance(leaves, SwitchingLaws):
        allowed = leaves.offset[row] > -np.inf
        return leaves.gain[row], np.where(allowed, leaves.offset[row], 0.0), allowed
    if isinstance(leaves, Constants):
        return np.zeros(shape), leaves.value[row], allowed
    chosen = np.arange(shape[0]) == int(leaves.number[row]) - start
    return np.zeros(shape), np.where(chosen, 1.0, -1.0), allowed


def _law_in_units(gain: Floats, offset: Floats, units: Units) -> Floats:
    """Return a law in the units of the search."""
    numbers = np.empty((len(gain), 1 + gain.shape[1]))
    for k in range(len(gain)):
        total = float(offset[k]) - float(units.action_centre[k])
        for weight, centre in zip(gain[k].tolist(), units.centre.tolist(), strict=True):
            total += weight * centre
        numbers[k, 0] = total / units.action_scale[k]
        numbers[k, 1:] = gain[k] * units.scale / units.action_scale[k]
    return numbers


def _locked_nodes(rules: RuleTree, order: list[int], left: Ints) -> list[int]:
    """Return the locked leaves, and the cuts that lead to them."""
    if not rules.locks:
        return []
    boxes = {0: (np.full(rules.width, -np.inf), np.full(rules.width, np.inf))}
    parent: dict[int, int] = {}
    found: set[int] = set()
    for i, node in enumerate(order):
        low, high = boxes[i]
        j = int(rules.feature[node])
        if j >= 0:
            cut = float(rules.threshold[node])
            below, above = high.copy(), low.copy()
            below[j], above[j] = min(high[j], cut), max(low[j], cut)
            boxes[int(left[i])], boxes[int(left[i]) + 1] = (low, below), (above, high)
            parent[int(left[i])] = parent[int(left[i]) + 1] = i
        elif any(np.all(np.maximum(low, one.low) < np.minimum(high, one.high)) for one in rules.locks):
            found.add(i)
            while i:
                i = parent[i]
                found.add(i)
    return sorted(found)


def check_source(rules: RuleTree, problem: Problem) -> None:
    """Refuse a tree that does not fit a problem."""
    if rules.dims != problem.states.dims or rules.action_space != problem.actions.space:
        raise SettingError(
            f"The tree maps {rules.dims} numbers to {rules.action_space}, and {problem.name} has "
            f"{problem.states.dims} and {problem.actions.space}."
        )
