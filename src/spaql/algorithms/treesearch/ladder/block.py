"""Blocks: the features of a structure, and the units in which the numbers of its laws are searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from spaql.algorithms.rule_learners import without_units
from spaql.algorithms.treesearch.ladder.structures import (
    CONSTANT,
    ERROR,
    NUMBERS,
    SQUARE,
    PlantSignals,
    Structure,
)
from spaql.algorithms.treesearch.rule_trees import rules_and_laws
from spaql.algorithms.treesearch.trees import CandidateTree, one_leaf, split
from spaql.classical import OperatingPoint
from spaql.controllers import Controller
from spaql.controllers.arrays import Frame, action_range, limits_of
from spaql.controllers.controller import VELOCITY
from spaql.controllers.feature_table import feature_table, with_sources
from spaql.controllers.features import Feature, Integral, LastAction, Observed
from spaql.kernels.controller import RESET
from spaql.kernels.numerics import Bools, Floats
from spaql.kernels.treesearch.candidates import Units
from spaql.values import rounded

_DIGITS = 4
"""Significant digits of the operating point: the solver's last ones differ from version to version."""
_INTEGRATED = 0.1
"""The usual integral of an error is its usual size for this share of an episode."""


class Usual(NamedTuple):
    """Usual values: in their units, and about them, the numbers of laws are searched."""

    sizes: Mapping[str, float]
    """Usual magnitudes of features, by name."""
    observation: tuple[float, ...] = ()
    """At the operating point of the plant; empty if none is known."""
    action: tuple[float, ...] = ()
    """What holds the plant there."""

    @classmethod
    def about(cls, point: OperatingPoint | None) -> Usual:
        """Return the values at an operating point, with a few digits."""
        if point is None:
            return cls({})
        rows = (point.observation, point.action)
        return cls({}, *(tuple(rounded(row, _DIGITS).tolist()) for row in rows))


@dataclass(frozen=True, eq=False)
class Block:
    """A structure with its features and the units in which the numbers of its laws are searched."""

    signals: PlantSignals
    structure: Structure
    features: tuple[Feature, ...]
    frame: Frame
    units: Units

    @classmethod
    def of(cls, signals: PlantSignals, structure: Structure, usual: Usual) -> Block:
        """Return the block of a structure, in which numbers of 0 hold the plant at its operating point."""
        sizes = usual.sizes
        features = signals.features(structure, sizes)
        ends = action_range(signals.problem.actions.space)
        velocity = structure.form == VELOCITY
        held = np.array(usual.action) if usual.action else np.zeros(len(ends.low))
        start = np.clip(held if velocity else 0.0, ends.low, ends.high)
        table = feature_table(
            features, signals.observations, signals.actions, signals.sample_time, start.tolist()
        )
        frame = Frame(
            len(signals.observations),
            limits_of(ends.low, ends.high, start),
            table.columns,
            len(ends.low),
            feature=table.rows,
            setting=table.settings,
            velocity=velocity,
            remembers=True,
            memory=table.memory,
            setpoints=np.array([r for _, r in signals.problem.setpoint_places], np.int64),
        )
        scale = np.array([_size(feature, sizes, signals, ends.high - ends.low) for feature in features])
        half = (ends.high - ends.low) / 2
        centre = np.array([_centre(feature, usual, signals) for feature in features])
        units = Units(centre, scale, np.zeros(len(held)) if velocity else held, half)
        return cls(signals, structure, tuple(features), frame, units)

    def one_law(self) -> CandidateTree:
        """Return a tree of one leaf with gains of 0.

        It has a constant if the structure has one, or to begin at what holds the plant.
        """
        tree = one_leaf(len(self.signals.actions), len(self.features), listed=False)
        if CONSTANT not in self.structure.kinds:
            tree.free[:, :, 0] = self.units.action_centre != 0.0
        tree.free[:, :, 1:] &= ~(self.even | self._between)
        return tree

    @property
    def _between(self) -> Bools:
        """Features that laws do not use: others are computed from them."""
        outputs = [f"change of {y}" for y, _, _ in self.signals.pairs]
        return np.array([feature.name in outputs for feature in self.features])

    def parameters(self, tree: CandidateTree) -> int:
        """Return how many numbers the controller of a tree has, constants included."""
        return int((tree.raw(self.units) != 0.0).sum())

    @property
    def even(self) -> Bools:
        """Features that are the same on both sides of a pole: cuts use them, and laws the others."""
        pole = self.signals.pole
        return np.array(
            [pole is not None and feature.name in (pole.cosine, SQUARE) for feature in self.features]
        )

    def with_cut(self, tree: CandidateTree, threshold: float) -> CandidateTree:
        """Return a law cut in two at a cosine of the pole: the left one is for below."""
        assert self.signals.pole is not None
        names = [feature.name for feature in self.features]
        cut = np.zeros(1 + len(names))
        free = np.array([True, *self.even])
        main = 1 + names.index(self.signals.pole.cosine)
        cut[0] = threshold / self.units.scale[main - 1]
        cut[main] = 1.0
        free[main] = False
        return split(tree, 0, cut, free)

    def like(self, tree: CandidateTree, other: Block) -> CandidateTree:
        """Return a tree of this block with the numbers of another's tree for features of the same name.

        Laws may use the features that the other block lacks, and cuts may not.
        """
        law = self.one_law()
        n = len(tree.left)
        numbers = np.repeat(law.numbers, n, axis=0)
        free = np.repeat(law.free, n, axis=0)
        names = [feature.name for feature in other.features]
        inner = tree.left >= 0
        free[inner] = False
        for j, feature in enumerate(self.features):
            if feature.name in names:
                k = names.index(feature.name)
                ratio = self.units.scale[j] / other.units.scale[k]
                numbers[:, :, 1 + j] = tree.numbers[:, :, 1 + k] * ratio
                free[inner, :, 1 + j] = tree.free[inner, :, 1 + k]
        numbers[:, :, 0] = np.where(inner[:, None] | free[:, :, 0], tree.numbers[:, :, 0], 0.0)
        free[inner, :, 0] = tree.free[inner, :, 0]
        return replace(tree, numbers=numbers, free=free, exact=np.zeros_like(numbers))

    def plainer(self, tree: CandidateTree) -> Structure:
        """Return the structure without the kinds of features that a tree does not use."""
        used = {feature.name for j, feature in enumerate(self.features) if tree.numbers[:, :, 1 + j].any()}
        kept = []
        for kind in self.structure.kinds:
            rest = [other for other in self.structure.kinds if other != kind]
            others = self.signals.features(self.structure.with_kinds(rest), {})
            own = {feature.name for feature in self.features} - {feature.name for feature in others}
            constant = kind == CONSTANT and bool(tree.numbers[tree.left < 0][:, :, 0].any())
            if kind in (ERROR, NUMBERS) or own & used or constant:
                kept.append(kind)
        return self.structure.with_kinds(kept)

    def controller(self, tree: CandidateTree, digits: int = 0) -> Controller:
        """Return a candidate as a controller with memory; features that no number uses are left out."""
        numbers = tree.raw(self.units, digits)[0]
        used = with_sources({*np.flatnonzero(numbers[:, :, 1:].any(axis=(0, 1)))} or {0}, self.features)
        columns = [0, *(1 + j for j in used)]
        problem = self.signals.problem
        return Controller(
            **rules_and_laws(tree.left, tree.allowed, numbers[:, :, columns]),
            observation_space=problem.states.space,
            action_space=problem.actions.space,
            observations=self.signals.observations,
            actions=self.signals.actions,
            features=tuple(self.features[j] for j in used),
            sample_time=self.signals.sample_time,
            form=self.structure.form,
            start=tuple(self.frame.limit[RESET].tolist()),
        )


def _size(feature: Feature, sizes: Mapping[str, float], signals: PlantSignals, span: Floats) -> float:
    """Return the usual magnitude of a feature: measured, but for integrals and actions."""
    if isinstance(feature, Integral):
        whole = signals.problem.horizon * signals.sample_time
        return float(f"{_INTEGRATED * sizes.get(feature.of, 1.0) * whole:.2g}")
    if isinstance(feature, LastAction):
        return float(span[without_units(signals.actions).index(feature.of)] / 2)
    return sizes.get(feature.name, 1.0)


def _centre(feature: Feature, usual: Usual, signals: PlantSignals) -> float:
    """Return a feature at the operating point: 0 but for what is observed, and for last actions."""
    if isinstance(feature, Observed) and usual.observation:
        return usual.observation[without_units(signals.observations).index(feature.of)]
    if isinstance(feature, LastAction) and usual.action:
        return usual.action[without_units(signals.actions).index(feature.of)]
    return 0.0
