"""Conversion of candidate trees to controllers in raw units, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from spaql.algorithms.rule_learners import actions_of, in_pairs, observations_of, without_units
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.controllers import Controller, Difference, Feature, LastAction, Laws, Observed, SinceChange
from spaql.controllers.rules import Lock
from spaql.errors import SettingError
from spaql.kernels.numerics import Bools, Floats, Ints
from spaql.kernels.treesearch.candidates import Units
from spaql.problems import Problem
from spaql.simulate.play import check_sample_time

_LONG = 1000.0
"""Seconds since a discrete action changed, at most."""


def to_rules(tree: CandidateTree, units: Units, like: Controller, digits: int = 0) -> Controller:
    """Return a candidate as a controller with rounded numbers, and with the features of another."""
    first_child, allowed, both = tree.unfolded(tree.raw(units, digits))
    parts = rules_and_laws(first_child, allowed, both[0])
    rules = replace(like, **parts, hysteresis=(), locks=(), smallest=False, within=None)
    if not tree.locked.any():
        return rules
    boxes = [rules.box(leaf) for leaf in range(1, rules.n_leaves + 1)]
    fixed = set(rules.leaf[tree.locked].tolist())
    return replace(rules, locks=tuple(Lock(*box) for box in boxes if box[2] in fixed))


def rules_and_laws(first_child: Ints, allowed: Bools, numbers: Floats) -> dict[str, Any]:
    """Return the nodes, sums and laws of a controller; a cut along one number is a plain rule.

    Parameters
    ----------
    first_child
        The left child of each node, which its right one follows; -1 for a leaf.
    allowed
        Nodes × rows: which discrete actions a leaf may take.
    numbers
        Nodes × rows × (1 + inputs), in raw units: the threshold and weights of a cut in the first row,
        offsets and gains of laws.
    """
    inner = first_child >= 0
    inputs = numbers.shape[2] - 1
    feature = np.full(len(inner), -1)
    threshold = np.zeros(len(inner))
    left = np.where(inner, first_child, -1)
    right = np.where(inner, first_child + 1, -1)
    sums: list[Floats] = []
    for node in np.flatnonzero(inner):
        bound = float(numbers[node, 0, 0])
        weights = numbers[node, 0, 1:]
        used = np.flatnonzero(weights)
        if len(used) == 1 and weights[used[0]] == 1.0:
            feature[node] = used[0]
            threshold[node] = bound
        elif len(used) == 1:  # of -x < t the other side is x < u, with u the float after -t
            feature[node] = used[0]
            threshold[node] = np.nextafter(-bound, np.inf)
            left[node], right[node] = right[node], left[node]
        else:
            feature[node] = inputs + len(sums)
            threshold[node] = bound
            sums.append(weights)
    law = numbers[~inner]
    taken = allowed[~inner]
    return {
        "feature": feature,
        "threshold": threshold,
        "left": left,
        "right": right,
        "leaf": np.where(inner, -1, np.cumsum(~inner) - 1),
        "combinations": np.array(sums),
        "laws": Laws(
            np.where(taken[:, :, np.newaxis], law[:, :, 1:], 0.0), np.where(taken, law[:, :, 0], -np.inf)
        ),
    }


def from_rules(rules: Controller, units: Units, base: CandidateTree) -> CandidateTree:
    """Return a controller as a candidate; locked leaves and the cuts that lead to them are not free."""
    rules = in_pairs(rules)
    shape = (rules.n_nodes, *base.numbers.shape[1:])
    numbers = np.zeros(shape)
    exact = np.zeros(shape)
    free = np.zeros(shape, bool)
    allowed = np.ones(shape[:2], bool)
    for node in range(rules.n_nodes):
        j = int(rules.feature[node])
        if j >= 0:
            weights = np.eye(rules.dims)[j] if j < rules.dims else rules.combinations[j - rules.dims]
            exact[node, 0] = np.append(rules.threshold[node], weights)
            numbers[node, 0] = _in_units(float(rules.threshold[node]), weights, units)
            free[node, 0] = True
            free[node, 0, 1 + int(np.argmax(np.abs(numbers[node, 0, 1:])))] = False
            continue
        gain, offset, allowed[node] = _law(rules.laws, int(rules.leaf[node]))
        exact[node] = np.concatenate([offset[:, np.newaxis], gain], axis=1)
        numbers[node] = _law_in_units(gain, offset, units)
        free[node] = allowed[node][:, np.newaxis]
    locked = _locked_nodes(rules)
    free[locked] = False
    return CandidateTree(rules.left.astype(np.int64), numbers, free, allowed, locked, exact, base.listed)


def in_other_units(tree: CandidateTree, before: Units, units: Units) -> CandidateTree:
    """Return a tree of the units of a search in those of another."""
    numbers = tree.raw(before)[0]
    free = tree.free.copy()
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


def _law(laws: Laws, row: int) -> tuple[Floats, Floats, Bools]:
    """Return the gains, offsets and allowed actions of a law.

    Where it only takes one action, the search may try all others: they have lower scores.
    """
    gain = laws.gain[row]
    offset = laws.offset[row]
    allowed = laws.taken[row]
    if laws.constant[row] and np.count_nonzero(allowed) == 1 < len(allowed):
        return gain, np.where(allowed, 1.0, -1.0), np.ones_like(allowed)
    return gain, np.where(allowed, offset, 0.0), allowed


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


def _locked_nodes(rules: Controller) -> Bools:
    """Return which nodes are locked leaves, or cuts that lead to them."""
    locked = np.zeros(rules.n_nodes, bool)

    def visit(node: int, low: Floats, high: Floats) -> bool:
        j = int(rules.feature[node])
        if j < 0:
            locked[node] = any((np.maximum(low, x.low) < np.minimum(high, x.high)).all() for x in rules.locks)
        else:
            cut = rules.threshold[node]
            here = np.arange(len(low)) == j
            below = visit(int(rules.left[node]), low, np.where(here, np.minimum(high, cut), high))
            above = visit(int(rules.right[node]), np.where(here, np.maximum(low, cut), low), high)
            locked[node] = below or above
        return bool(locked[node])

    visit(0, np.full(rules.width, -np.inf), np.full(rules.width, np.inf))
    return locked


def check_source(rules: Controller, problem: Problem) -> None:
    """Refuse a controller at which no search of a problem can begin."""
    if len(rules.observations) != problem.states.dims or rules.action_space != problem.actions.space:
        raise SettingError(
            f"The controller maps {len(rules.observations)} numbers to {rules.action_space}, and "
            f"{problem.name} has {problem.states.dims} and {problem.actions.space}."
        )
    check_sample_time(rules, problem)


def idle_controller(problem: Problem, *, memory: bool = False) -> Controller:
    """Return a controller of one leaf that does nothing.

    With memory it also reads the change of each observation since the last sample, the last action, and the
    time since a discrete one changed.
    """
    space = problem.actions.space
    observations = observations_of(problem)
    actions = actions_of(problem)
    features: list[Feature] = []
    if memory:
        short = without_units(observations)
        features = [*map(Observed, short), *(Difference(f"change of {name}", name) for name in short)]
        if isinstance(space, Discrete):
            features += [LastAction("last action", "action"), SinceChange("since change", "action", _LONG)]
        else:
            features += [LastAction(f"last {name}", name) for name in without_units(actions)]
    inputs = len(features) or len(observations)
    return Controller(
        laws=Laws(np.zeros((1, len(actions), inputs)), np.zeros((1, len(actions)))),
        observation_space=problem.states.space,
        action_space=space,
        observations=observations,
        actions=actions,
        features=tuple(features),
        sample_time=(problem.sample_time or 1.0) if memory else None,
    )


def over_inputs(rules: Controller, like: Controller) -> Controller:
    """Return rules over the first inputs of a controller as rules over all of them."""
    more = like.dims - rules.dims
    gain = np.pad(rules.laws.gain, ((0, 0), (0, 0), (0, more)))
    return replace(
        like,
        feature=np.where(rules.feature >= rules.dims, rules.feature + more, rules.feature),
        threshold=rules.threshold,
        left=rules.left,
        right=rules.right,
        leaf=rules.leaf,
        combinations=np.pad(rules.combinations, ((0, 0), (0, more))),
        hysteresis=(),
        laws=Laws(gain, rules.laws.offset),
    )
