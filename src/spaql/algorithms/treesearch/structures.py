"""Structures of controllers with memory: which features the laws of a plant with set-points may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from gymnasium.spaces import Box

from spaql.algorithms.treesearch.trees import CandidateTree, one_leaf, split
from spaql.classical import LinearPlant, has_pole, linearise, pole_of
from spaql.errors import SettingError
from spaql.kernels.features import Limiter
from spaql.kernels.treesearch.candidates import Bools, Floats, Units
from spaql.policy import FeatureController
from spaql.policy.feature_table import feature_table
from spaql.policy.feature_tree import POSITION, VELOCITY, tree_over_features
from spaql.policy.features import (
    Angle,
    Difference,
    Error,
    Feature,
    FilteredDerivative,
    Integral,
    LastAction,
    LowPass,
    Observed,
    Product,
    Square,
)
from spaql.problems import Problem
from spaql.rollouts import FeatureBlock, action_range
from spaql.spaces import action_names, observation_names, split_unit

ERROR, INTEGRAL, DERIVATIVE, OTHERS, CONSTANT = "error", "integral", "derivative", "other numbers", "constant"
CHANGE, SECOND, LAST, LOW_PASS = "change of the error", "second change", "last actions", "low-pass"
SETPOINTS = "set-points"
NUMBERS, ENERGY = "regulator at the top", "energy"
ANGLE, SQUARE = "angle", "pole speed^2"
"""Names of features of a pole."""
LONGEST = 3
"""So many of the last actions."""
_SLOW = 3.0
"""The time constant of low-passes, in samples."""
_IDLE = 1e-4
"""A pole stands if the action that it needs is less, as a share of the range."""
_INTEGRATED = 0.1
"""The usual integral of an error is its usual size for this share of an episode."""

PLAIN: tuple[tuple[str, tuple[str, ...]], ...] = (
    (POSITION, (ERROR,)),
    (POSITION, (ERROR, OTHERS)),
    (POSITION, (ERROR, INTEGRAL)),
    (VELOCITY, (ERROR, CHANGE)),
)
"""The structures that are raced first: P and PI, and PI in velocity form."""
NEXT = {POSITION: DERIVATIVE, VELOCITY: SECOND}
"""What the better half of them is given for the next round, by its form: PD and PID."""
MORE = {
    POSITION: (INTEGRAL, DERIVATIVE, OTHERS, LOW_PASS, LAST, SETPOINTS, CONSTANT),
    VELOCITY: (SECOND, OTHERS, LOW_PASS),
}
"""What the best of them may be given, by its form."""
POLE_PLAIN = ((POSITION, (NUMBERS,)),)
POLE_MORE = {POSITION: (ENERGY,)}
"""The same for a pole that is to be swung up: an energy is made of products of its speed and its cosine."""
ORDER = (
    *(ERROR, CHANGE, INTEGRAL, DERIVATIVE, SECOND, OTHERS, LOW_PASS, LAST, SETPOINTS, CONSTANT),
    *(NUMBERS, ENERGY),
)
"""All kinds of features, in the usual order."""


@dataclass(frozen=True)
class Structure:
    """The form of a controller, and the kinds of features in its laws."""

    form: str
    kinds: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name: that of an engineer where there is one."""
        named = {
            (ERROR,): "P",
            (ERROR, DERIVATIVE): "PD",
            (ERROR, INTEGRAL): "PI",
            (ERROR, INTEGRAL, DERIVATIVE): "PID",
            (ERROR, CHANGE): "PI, velocity form",
            (ERROR, CHANGE, SECOND): "PID, velocity form",
        }
        for kinds, name in sorted(named.items(), key=lambda pair: -len(pair[0])):
            if self.kinds[: len(kinds)] == kinds:
                return " + ".join([name, *self.kinds[len(kinds) :]])
        return " + ".join(self.kinds)

    def with_kinds(self, kinds: Sequence[str]) -> Structure:
        """Return the structure with other kinds of features, in the usual order."""
        return Structure(self.form, tuple(kind for kind in ORDER if kind in kinds))


@dataclass(frozen=True)
class Pole:
    """A pole that falls from where it is to stand, by the names of its numbers without their units."""

    plant: LinearPlant
    """The plant about the top."""
    cosine: str
    sine: str
    speed: str
    others: tuple[str, ...]
    """The other numbers of the plant."""

    @classmethod
    def of(cls, problem: Problem, observations: Sequence[str]) -> Pole | None:
        """Return the pole of a problem without set-points that declares an angle, if it has one."""
        if problem.setpoints or not problem.angles or problem.dynamics is None or problem.reference is None:
            return None
        try:
            plant = linearise(problem)
        except SettingError:  # it has a list of actions, or no rest
            return None
        ends = action_range(problem)
        if not has_pole(plant) or (np.abs(plant.rest_action) > _IDLE * (ends.high - ends.low)).any():
            return None  # laws without a constant do not hold what has to be pushed
        names = [split_unit(name)[0] for name in observations]
        angle, speed = pole_of(plant)
        cosine, sine = plant.numbers[angle]
        others = [at[0] for j, at in enumerate(plant.numbers) if j not in (angle, speed)]
        rate = plant.numbers[speed][0]
        return cls(plant, names[cosine], names[sine], names[rate], tuple(names[at] for at in others))


@dataclass(frozen=True)
class Meaning:
    """What the numbers of a problem mean: outputs with their set-points, other numbers, and a pole."""

    problem: Problem
    observations: tuple[str, ...]
    actions: tuple[str, ...]
    pole: Pole | None

    @classmethod
    def of(cls, problem: Problem) -> Meaning | None:
        """Return the meaning that a problem declares; None without set-points and without a pole."""
        seen = observation_names(problem.states.space, problem.states.names)
        actions = tuple(action_names(problem.actions.space, problem.actions.names))
        pole = Pole.of(problem, seen)
        return cls(problem, tuple(seen), actions, pole) if pole or problem.setpoints else None

    @property
    def plain(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The structures that are raced first."""
        return POLE_PLAIN if self.pole else PLAIN

    @property
    def more(self) -> Mapping[str, tuple[str, ...]]:
        """The kinds of features that the best of them may be given, by its form."""
        return POLE_MORE if self.pole else MORE

    @property
    def errors(self) -> list[str]:
        """The features that are to be 0 at rest."""
        if self.pole:
            return [*self.pole.others, ANGLE, self.pole.speed]
        return [f"error{of}" for _, _, of in self.pairs]

    @property
    def pairs(self) -> list[tuple[str, str, str]]:
        """Output, set-point, and what is added to the names of features, for each set-point."""
        declared = [(split_unit(y)[0], split_unit(r)[0]) for y, r in self.problem.setpoints.items()]
        return [(y, r, f" of {y}" if len(declared) > 1 else "") for y, r in declared]

    @property
    def others(self) -> list[str]:
        """Numbers that are neither an output nor a set-point."""
        known = {name for y, r, _ in self.pairs for name in (y, r)}
        return [name for one in self.observations if (name := split_unit(one)[0]) not in known]

    @property
    def sample_time(self) -> float:
        """Seconds between samples; 1 if it is not declared."""
        return self.problem.sample_time or 1.0

    def has(self, kinds: Sequence[str]) -> bool:
        """Whether the problem has numbers for all kinds of features."""
        return OTHERS not in kinds or bool(self.others)

    def features(self, structure: Structure, sizes: Mapping[str, float]) -> list[Feature]:
        """Return the features of a structure; `sizes` are the usual errors, by name."""
        dt, found, kinds = self.sample_time, list[Feature](), structure.kinds
        if self.pole:
            return self._pole_features(self.pole, kinds)
        whole = self.problem.horizon * dt
        for y, r, of in self.pairs:
            error = f"error{of}"
            found.append(Error(error, r, y))
            if INTEGRAL in kinds:
                limit = float(f"{sizes.get(error, 1.0) * whole:.2g}")
                found.append(Integral(f"integral{of}", error, limit=limit))
            if DERIVATIVE in kinds:
                found.append(FilteredDerivative(f"derivative{of}", error, time_constant=dt))
            if CHANGE in kinds:
                found.append(Difference(f"change{of}", error))
            if SECOND in kinds:
                found.append(Difference(f"second change{of}", f"change{of}"))
            if LOW_PASS in kinds:
                slow = f"slow error{of}"
                found.append(LowPass(slow, error, time_constant=_SLOW * dt))
                if structure.form == VELOCITY:
                    found.append(Difference(f"slow change{of}", slow))
        if OTHERS in kinds:
            for name in self.others:
                if structure.form == POSITION:
                    found.append(Observed(name))
                else:
                    found.append(Difference(f"change of {name}", name))
        if LAST in kinds:
            for action in self.actions:
                short = split_unit(action)[0]
                found += [LastAction(f"{short} {ago(k)}", short, samples=k) for k in range(1, LONGEST + 1)]
        if SETPOINTS in kinds:
            found += [Observed(r) for _, r, _ in self.pairs]
        return found

    def _pole_features(self, pole: Pole, kinds: Sequence[str]) -> list[Feature]:
        speed, cosine, swing = pole.speed, pole.cosine, f"{pole.speed} * {pole.cosine}"
        found: list[Feature] = [Observed(name) for name in (*pole.others, speed)]
        found += [Angle(ANGLE, pole.sine, cosine), Observed(cosine), Square(SQUARE, speed)]
        if ENERGY in kinds:
            found.append(Product(swing, speed, cosine))
            found.append(Product(f"{swing} * {cosine}", swing, cosine))
            found.append(Product(f"{swing} * {SQUARE}", swing, SQUARE))
        return found


@dataclass(frozen=True, eq=False)
class Block:
    """A structure with its features and the units in which the numbers of its laws are searched."""

    meaning: Meaning
    structure: Structure
    features: tuple[Feature, ...]
    arrays: FeatureBlock
    units: Units

    @classmethod
    def of(cls, meaning: Meaning, structure: Structure, sizes: Mapping[str, float]) -> Block:
        """Return the block of a structure; `sizes` are the usual magnitudes of features, by name."""
        features = meaning.features(structure, sizes)
        ends = action_range(meaning.problem)
        start = np.clip(0.0, ends.low, ends.high)
        table, memory = feature_table(
            features, meaning.observations, meaning.actions, meaning.sample_time, start.tolist()
        )
        free, none = np.full(len(ends.low), np.inf), np.zeros(len(ends.low))
        limiter = Limiter(ends.low, ends.high, free, none, start, structure.form == VELOCITY)
        scale = np.array([_size(one, sizes, meaning, ends.high - ends.low) for one in features])
        half = (ends.high - ends.low) / 2
        units = Units(np.zeros(len(features)), scale, np.zeros(len(half)), half)
        return cls(meaning, structure, tuple(features), FeatureBlock(table, limiter, memory), units)

    def one_law(self) -> CandidateTree:
        """Return a tree of one leaf with gains of 0; without a constant unless the structure has one."""
        tree = one_leaf(len(self.meaning.actions), len(self.features), listed=False)
        if CONSTANT not in self.structure.kinds:
            tree.free[:, :, 0] = False
        tree.free[:, :, 1:] &= ~self.even
        return tree

    @property
    def even(self) -> Bools:
        """Features that are the same on both sides of a pole: cuts use them, and laws the others."""
        pole = self.meaning.pole
        return np.array([pole is not None and one.name in (pole.cosine, SQUARE) for one in self.features])

    def with_cut(self, tree: CandidateTree, threshold: float) -> CandidateTree:
        """Return a law cut in two at a cosine of the pole: the left one is for below."""
        assert self.meaning.pole is not None
        names = [one.name for one in self.features]
        cut, free = np.zeros(1 + len(names)), np.array([True, *self.even])
        main = 1 + names.index(self.meaning.pole.cosine)
        cut[0], cut[main], free[main] = threshold / self.units.scale[main - 1], 1.0, False
        return split(tree, 0, cut, free)

    def like(self, tree: CandidateTree, other: Block) -> CandidateTree:
        """Return a tree of this block with the numbers of another's tree for features of the same name.

        Laws may use the features that the other block lacks, and cuts may not.
        """
        law, n = self.one_law(), len(tree.left)
        numbers, free = np.repeat(law.numbers, n, axis=0), np.repeat(law.free, n, axis=0)
        names, inner = [one.name for one in other.features], tree.left >= 0
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
        used = {one.name for j, one in enumerate(self.features) if tree.numbers[:, :, 1 + j].any()}
        kept = []
        for kind in self.structure.kinds:
            rest = [one for one in self.structure.kinds if one != kind]
            others = self.meaning.features(self.structure.with_kinds(rest), {})
            own = {one.name for one in self.features} - {one.name for one in others}
            constant = kind == CONSTANT and bool(tree.numbers[tree.left < 0][:, :, 0].any())
            if kind in (ERROR, NUMBERS) or own & used or constant:
                kept.append(kind)
        return self.structure.with_kinds(kept)

    def controller(self, tree: CandidateTree, digits: int = 0) -> FeatureController:
        """Return a candidate as a controller with memory; features that no number uses are left out."""
        problem = self.meaning.problem
        numbers = tree.raw(tree.vector[np.newaxis], self.units, digits)[0]
        used = self._used(numbers)
        columns = [0, *(1 + j for j in used)]
        features = [self.features[j] for j in used]
        numbers = numbers[:, :, columns]
        inner = tree.left >= 0
        nodes, sums = _nodes(tree, numbers)
        assert isinstance(problem.states.space, Box)
        assert isinstance(problem.actions.space, Box)
        laws = tree_over_features(
            features,
            numbers[~inner][:, :, 1:],
            numbers[~inner][:, :, 0],
            problem.actions.space,
            self.meaning.observations,
            self.meaning.actions,
            self.structure.form,
            nodes,
            sums,
        )
        return FeatureController(
            tuple(features),
            laws,
            problem.states.space,
            problem.actions.space,
            self.meaning.sample_time,
            self.meaning.observations,
            self.meaning.actions,
            self.structure.form,
        )

    def _used(self, numbers: Floats) -> list[int]:
        """Return the features that some number uses, or that those are computed from."""
        names = [one.name for one in self.features]
        used = {j for j in range(len(names)) if numbers[:, :, 1 + j].any()} or {0}
        for j in range(len(names) - 1, -1, -1):
            if j in used and not isinstance(self.features[j], Observed | LastAction):
                used |= {names.index(s) for s in _sources(self.features[j]) if s in names[:j]}
        return sorted(used)


def _sources(feature: Feature) -> list[str]:
    return [getattr(feature, source) for source in feature.sources]


def _nodes(tree: CandidateTree, numbers: Floats) -> tuple[dict[str, Floats], Floats]:
    """Return the nodes of a rule tree, and the sums that it compares."""
    inner, dims = tree.left >= 0, numbers.shape[2] - 1
    feature, threshold, sums = np.full(len(inner), -1), np.zeros(len(inner)), list[Floats]()
    for node in np.flatnonzero(inner):
        threshold[node], weights = numbers[node, 0, 0], numbers[node, 0, 1:]
        used = np.flatnonzero(weights)
        if len(used) == 1 and weights[used[0]] == 1.0:
            feature[node] = used[0]
        else:
            feature[node] = dims + len(sums)
            sums.append(weights)
    nodes = {
        "feature": feature,
        "threshold": threshold,
        "left": np.where(inner, tree.left, -1),
        "right": np.where(inner, tree.left + 1, -1),
        "leaf": np.where(inner, -1, np.cumsum(~inner) - 1),
    }
    return nodes, np.array(sums)


def _size(feature: Feature, sizes: Mapping[str, float], meaning: Meaning, span: Floats) -> float:
    """Return the usual magnitude of a feature: measured, but for integrals and actions."""
    if isinstance(feature, Integral):
        whole = meaning.problem.horizon * meaning.sample_time
        return float(f"{_INTEGRATED * sizes.get(feature.of, 1.0) * whole:.2g}")
    if isinstance(feature, LastAction):
        short = [split_unit(action)[0] for action in meaning.actions]
        return float(span[short.index(feature.of)] / 2)
    return sizes.get(feature.name, 1.0)


def ago(samples: int) -> str:
    """Return when a last action was given, for its name."""
    return "a sample before" if samples == 1 else f"{samples} samples before"
