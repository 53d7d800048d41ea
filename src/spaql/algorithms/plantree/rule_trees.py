"""Conversion of trees over standardised states to controllers and back, also of mirrored halves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.replay import ActionCode, Scale
from spaql.algorithms.rule_learners import in_pairs
from spaql.algorithms.saved import Arrays
from spaql.controllers import Controller, Laws
from spaql.controllers.file import controller_from, controller_to
from spaql.controllers.minimise import minimised
from spaql.controllers.mirrored import Fold, folded
from spaql.controllers.rules import Nodes
from spaql.errors import ArchiveError
from spaql.kernels.numerics import Floats, Ints, weighted_sum
from spaql.kernels.plantree.controllers import ControllerTree, tidy
from spaql.kernels.plantree.rollout import Simulation
from spaql.problems import Problem


def to_rules(tree: ControllerTree, scale: Scale, code: ActionCode, problem: Problem) -> Controller:
    """Return a tree as a controller, with the standardisation absorbed in its numbers."""
    tree = tidy(tree)
    law = tree.law[tree.feature < 0]
    constant = code.raw_numbers(law[:, :, 0])
    if code.listed:
        laws = Laws.of_actions(constant[:, 0], code.space, problem.states.dims)
    else:
        gain = law[:, :, 1:] * code.half[:, np.newaxis] / scale.deviation
        laws = Laws(gain, constant - weighted_sum(gain, scale.mean))
    return with_laws(tree, laws, scale, problem)


def with_laws(tree: ControllerTree, laws: Laws, scale: Scale, problem: Problem) -> Controller:
    """Return a controller with the cuts of a tree, and a law in raw units for each of its leaves in turn."""
    inner = tree.feature >= 0
    column = np.maximum(tree.feature, 0)
    raw = tree.threshold * scale.deviation[column] + scale.mean[column]
    return Controller(
        feature=np.where(inner, tree.feature, -1),
        threshold=np.where(inner, raw, 0.0),
        left=np.where(inner, tree.left, -1),
        right=np.where(inner, tree.left + 1, -1),
        leaf=np.where(inner, -1, np.cumsum(~inner) - 1),
        laws=laws,
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
    )


def idle_rules(code: ActionCode, problem: Problem) -> Controller:
    """Return the untrained controller: the first Discrete action, or the centre of a Box."""
    action = code.raw_numbers(np.zeros(code.numbers))
    return Controller(
        laws=Laws.of_actions(action if code.listed else action[np.newaxis], code.space, problem.states.dims),
        observation_space=problem.states.space,
        action_space=code.space,
        observations=problem.states.names,
        actions=problem.actions.names,
    )


def from_rules(rules: Controller, scale: Scale, code: ActionCode) -> ControllerTree:
    """Return the tree of a controller made by `to_rules`, for the current standardisation."""
    inner = rules.feature >= 0
    column = np.maximum(rules.feature, 0)
    threshold = np.where(inner, (rules.threshold - scale.mean[column]) / scale.deviation[column], 0.0)
    row = np.maximum(rules.leaf, 0)
    gain = rules.laws.gain[row]
    offset = rules.laws.offset[row]
    if code.listed:
        law = offset.argmax(axis=1).astype(np.float64)[:, np.newaxis, np.newaxis]
    else:
        first = (offset + weighted_sum(gain, scale.mean) - code.middle) / code.half
        rest = gain * scale.deviation / code.half[:, np.newaxis]
        law = np.concatenate([first[:, :, np.newaxis], rest], axis=2)
    return ControllerTree(
        rules.feature.astype(np.int64), threshold, np.maximum(rules.left, 0).astype(np.int64), law
    )


def rules_to(rules: Controller) -> Arrays:
    """Return a controller as arrays (see `rules_from`)."""
    return controller_to(rules)[1]


def rules_from(arrays: Arrays, code: ActionCode, problem: Problem) -> Controller:
    """Return the controller of a problem with the arrays that `rules_to` made."""
    data, _ = controller_to(idle_rules(code, problem))
    rules = controller_from(data, arrays)
    if len(rules.combinations) or rules.locks or (code.listed and not rules.laws.constant.all()):
        raise ArchiveError("A controller in the file has sums, locks or laws that are not searched.")
    return rules


def within_space(rules: Controller) -> Controller:
    """Return the rules without nodes that no observation of the space reaches, and without equal leaves.

    Learned plants may leave the bounds of the space, so a controller keeps such nodes while it is improved
    and compared.
    """
    assert isinstance(rules.observation_space, Box)
    rows = rules.same_laws
    nodes = Nodes()

    def write(node: int, low: Floats, high: Floats) -> int:
        j = int(rules.feature[node])
        cut = float(rules.threshold[node])
        if j < 0:
            return nodes.leaf(int(rows[rules.leaf[node]]))
        here = np.arange(rules.dims) == j
        sides = []
        if low[j] < cut:
            last = np.nextafter(cut, -np.inf)
            sides.append(write(int(rules.left[node]), low, np.where(here, np.minimum(high, last), high)))
        if high[j] >= cut:
            sides.append(write(int(rules.right[node]), np.where(here, np.maximum(low, cut), low), high))
        return sides[0] if len(sides) == 1 else nodes.rule(j, cut, *sides)

    space = rules.observation_space
    root = write(0, space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel())
    kept: dict[str, Any] = nodes.arrays(root)
    used = np.unique(kept["leaf"][kept["feature"] < 0])
    kept["leaf"] = np.where(kept["feature"] < 0, np.searchsorted(used, kept["leaf"]), -1)
    return replace(rules, **kept, laws=Laws(rules.laws.gain[used], rules.laws.offset[used]))


@dataclass(frozen=True)
class Half:
    """The states of a mirrored plant in which one number, whose sign the mirror changes, is not negative."""

    mirror: Mirror
    side: int
    """The number."""

    def states(self, z: Floats) -> Floats:
        """Return standardised states, with their mirror images for those outside of the half."""
        return np.ascontiguousarray(np.where(z[:, [self.side]] < 0.0, self.mirror.states(z), z))

    def labels(self, z: Floats, q: Floats, code: ActionCode) -> tuple[Floats, Floats]:
        """Return states, and values of the actions considered, in the half."""
        tried = code.tried()
        images = [
            int(np.flatnonzero((tried == image).all(axis=1))[0]) for image in self.mirror.actions(tried)
        ]
        outside = z[:, [self.side]] < 0.0
        return self.states(z), np.ascontiguousarray(np.where(outside, q[:, images], q))

    def simulation(self, simulation: Simulation) -> Simulation:
        """Return a simulation of controllers for the half."""
        mirror = self.mirror
        return simulation._replace(
            starts=self.states(simulation.starts),
            fold=self.side,
            mirror=_signed(mirror.order, mirror.signs),
            action_mirror=_signed(mirror.action_order, mirror.action_signs),
        )

    def unfold(self, rules: Controller) -> Controller:
        """Return the rules of the half for all observations: below a cut at 0 are their mirror images."""
        mirror = self.mirror
        images = dict(enumerate(zip(mirror.order, mirror.signs, strict=True)))
        fold = Fold(rules, self.side, mirror.action_signs, images, dict(enumerate(mirror.action_order)))
        both = fold.unfolded(rules)
        assert both is not None  # all images are known
        return in_pairs(both)


def half_of(rules: Controller, side: int) -> Controller:
    """Return the rules of a half, if these are unfolded at this number, and else the rules themselves."""
    if rules.feature[0] != side or rules.threshold[0] != 0.0:
        return rules
    return in_pairs(rules, root=int(rules.right[0]))


def with_smallest_half(rules: Controller, mirror: Mirror | None) -> Controller:
    """Return rules that are their own mirror image with as few leaves for their half as do the same.

    Rules that are none, or that of another mirror, are returned as they are.
    """
    fold = folded(rules)
    if mirror is None or fold is None:
        return rules
    half = Half(mirror, fold.side)
    given = rules_to(rules)
    again = rules_to(within_space(half.unfold(fold.half)))
    if given.keys() != again.keys() or any(not np.array_equal(given[name], again[name]) for name in given):
        return rules
    low = np.where(np.arange(rules.dims) == fold.side, 0.0, -np.inf)
    small = minimised(fold.half, Box(low, np.full(rules.dims, np.inf), dtype=np.float64))
    return within_space(half.unfold(replace(small, smallest=False, within=rules.within)))


def _signed(order: tuple[int, ...], signs: tuple[int, ...]) -> Ints:
    """Return a map of numbers as `Simulation` has it; empty for Discrete actions, which have no signs."""
    return np.array([sign * (1 + j) for j, sign in zip(order, signs, strict=False)], np.int64)
