"""Controllers for one half of the states of a mirrored plant, and the same for all states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.plantree.rule_trees import rules_to, within_space
from spaql.algorithms.replay.encoding import ActionCode
from spaql.algorithms.replay.memory import Floats
from spaql.algorithms.rule_learners import in_pairs
from spaql.controllers import Controller, Laws
from spaql.controllers.file import NODES
from spaql.controllers.minimise import minimised
from spaql.controllers.mirrored import folded
from spaql.kernels.plantree.rollout import Simulation


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

    def unfold(self, rules: Controller, code: ActionCode) -> Controller:
        """Return the rules of the half for all observations: a cut at 0, below which are their mirror images.

        The image of `x < t` under a change of sign is `x > -t`, that is, not `x < u` with u the float after
        -t. At exactly 0 the rules of the half hold as they are.
        """
        mirror = self.mirror
        inner = rules.feature >= 0
        column = np.maximum(rules.feature, 0)
        turned = inner & (np.array(mirror.signs)[column] < 0)
        below = {
            "feature": np.where(inner, np.array(mirror.order)[column], -1),
            "threshold": np.where(turned, np.nextafter(-rules.threshold, np.inf), rules.threshold),
            "left": np.where(turned, rules.right, rules.left),
            "right": np.where(turned, rules.left, rules.right),
            "leaf": np.where(inner, -1, rules.leaf + len(rules.laws)),
        }
        first = {"feature": self.side, "threshold": 0.0, "left": 1, "right": 1 + len(inner), "leaf": -1}
        nodes: dict[str, Any] = {}
        for name in NODES:
            lower = below[name]
            upper = getattr(rules, name)
            if name in ("left", "right"):
                lower, upper = (
                    np.where(inner, part + shift, -1) for part, shift in ((lower, 1), (upper, 1 + len(inner)))
                )
            nodes[name] = np.concatenate([[first[name]], lower, upper])
        return in_pairs(replace(rules, **nodes, laws=_with_images(rules.laws, mirror, code)))


def half_of(rules: Controller, side: int) -> Controller:
    """Return the rules of a half, if these are unfolded at this number, and else the rules themselves."""
    if rules.feature[0] != side or rules.threshold[0] != 0.0:
        return rules
    return in_pairs(rules, root=int(rules.right[0]))


def with_smallest_half(rules: Controller, mirror: Mirror | None, code: ActionCode) -> Controller:
    """Return rules that are their own mirror image with as few leaves for their half as do the same.

    Rules that are none, or that of another mirror, are returned as they are.
    """
    fold = folded(rules)
    if mirror is None or fold is None:
        return rules
    half = Half(mirror, fold.side)
    given = rules_to(rules)
    again = rules_to(within_space(half.unfold(fold.half, code)))
    if given.keys() != again.keys() or any(not np.array_equal(given[name], again[name]) for name in given):
        return rules
    low = np.where(np.arange(rules.dims) == fold.side, 0.0, -np.inf)
    small = minimised(fold.half, Box(low, np.full(rules.dims, np.inf), dtype=np.float64))
    return within_space(half.unfold(replace(small, smallest=False, within=rules.within), code))


def _signed(order: tuple[int, ...], signs: tuple[int, ...]) -> NDArray[np.int64]:
    """Return a map of numbers as `Simulation` has it; empty for Discrete actions, which have no signs."""
    return np.array([sign * (1 + j) for j, sign in zip(order, signs, strict=False)], np.int64)


def _with_images(laws: Laws, mirror: Mirror, code: ActionCode) -> Laws:
    """Return a table of laws, followed by their mirror images."""
    order = list(mirror.action_order)
    gain = laws.gain[:, order][:, :, mirror.order] * np.array(mirror.signs, np.float64)
    offset = laws.offset[:, order]
    if not code.listed:
        factor = np.array(mirror.action_signs, np.float64) * (code.half / code.half[order])
        gain = factor[:, np.newaxis] * gain
        offset = code.middle + factor * (offset - code.middle[order])
    # A sum with 0 turns -0 into 0.
    return Laws(np.concatenate([laws.gain, gain + 0.0]), np.concatenate([laws.offset, offset + 0.0]))
