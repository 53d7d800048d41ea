"""Structures of controllers with memory: which features the laws of a plant with set-points may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spaql.algorithms.rule_learners import actions_of, ago, observations_of, without_units
from spaql.classical import LinearPlant, has_pole, linearise, pole_of
from spaql.controllers.arrays import action_range
from spaql.controllers.controller import POSITION, VELOCITY
from spaql.controllers.features import (
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
from spaql.errors import SettingError
from spaql.problems import Problem
from spaql.spaces import split_unit

ERROR = "error"
INTEGRAL = "integral"
DERIVATIVE = "derivative"
OTHERS = "other numbers"
CONSTANT = "constant"
CHANGE = "change of the error"
SECOND = "second change"
LAST = "last actions"
LOW_PASS = "low-pass"
SETPOINTS = "set-point weights"
NUMBERS = "regulator at the top"
ENERGY = "energy"
ANGLE = "angle"
SQUARE = "pole speed^2"
"""Names of features of a pole."""
LONGEST = 3
"""So many of the last actions."""
_SLOW = 3.0
"""The time constant of low-passes, in samples."""
_IDLE = 1e-4
"""A pole stands if the action that it needs is less, as a share of the range."""

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
    VELOCITY: (SECOND, OTHERS, LOW_PASS, SETPOINTS),
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
        ends = action_range(problem.actions.space)
        if not has_pole(plant) or (np.abs(plant.rest_action) > _IDLE * (ends.high - ends.low)).any():
            return None  # laws without a constant do not hold what has to be pushed
        names = without_units(observations)
        angle, speed = pole_of(plant)
        cosine, sine = plant.numbers[angle]
        others = [at[0] for j, at in enumerate(plant.numbers) if j not in (angle, speed)]
        rate = plant.numbers[speed][0]
        return cls(plant, names[cosine], names[sine], names[rate], tuple(names[at] for at in others))


@dataclass(frozen=True)
class PlantSignals:
    """What the numbers of a problem mean: outputs with their set-points, other numbers, and a pole."""

    problem: Problem
    observations: tuple[str, ...]
    actions: tuple[str, ...]
    pole: Pole | None

    @classmethod
    def of(cls, problem: Problem) -> PlantSignals | None:
        """Return the signals that a problem declares; None without set-points and without a pole."""
        observations = observations_of(problem)
        pole = Pole.of(problem, observations)
        return cls(problem, observations, actions_of(problem), pole) if pole or problem.setpoints else None

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
        return [name for name in without_units(self.observations) if name not in known]

    @property
    def sample_time(self) -> float:
        """Seconds between samples; 1 if it is not declared."""
        return self.problem.sample_time or 1.0

    def has(self, kinds: Sequence[str]) -> bool:
        """Whether the problem has numbers for all kinds of features."""
        return OTHERS not in kinds or bool(self.others)

    def features(self, structure: Structure, sizes: Mapping[str, float]) -> list[Feature]:
        """Return the features of a structure; `sizes` are the usual errors, by name."""
        dt = self.sample_time
        features = list[Feature]()
        kinds = structure.kinds
        if self.pole:
            return self._pole_features(self.pole, kinds)
        whole = self.problem.horizon * dt
        for y, r, of in self.pairs:
            error = f"error{of}"
            features.append(Error(error, r, y))
            if INTEGRAL in kinds:
                limit = float(f"{sizes.get(error, 1.0) * whole:.2g}")
                features.append(Integral(f"integral{of}", error, limit=limit))
            if DERIVATIVE in kinds:  # of the output: a step of the set-point does not pass it
                features.append(FilteredDerivative(f"derivative{of}", y, time_constant=dt))
            if CHANGE in kinds:
                features.append(Difference(f"change{of}", error))
            if SECOND in kinds:
                features.append(Difference(f"change of {y}", y))
                features.append(Difference(f"second change{of}", f"change of {y}"))
            if LOW_PASS in kinds:
                slow = f"slow error{of}"
                features.append(LowPass(slow, error, time_constant=_SLOW * dt))
                if structure.form == VELOCITY:
                    features.append(Difference(f"slow change{of}", slow))
        if OTHERS in kinds:
            features += [_read(name, structure.form) for name in self.others]
        if LAST in kinds:
            for action in without_units(self.actions):
                features += [
                    LastAction(f"{action} {ago(k)}", action, samples=k) for k in range(1, LONGEST + 1)
                ]
        if SETPOINTS in kinds:
            features += [_read(r, structure.form) for _, r, _ in self.pairs]
        return features

    def _pole_features(self, pole: Pole, kinds: Sequence[str]) -> list[Feature]:
        speed = pole.speed
        cosine = pole.cosine
        swing = f"{pole.speed} * {pole.cosine}"
        features: list[Feature] = [Observed(name) for name in (*pole.others, speed)]
        features += [Angle(ANGLE, pole.sine, cosine), Observed(cosine), Square(SQUARE, speed)]
        if ENERGY in kinds:
            features.append(Product(swing, speed, cosine))
            features.append(Product(f"{swing} * {cosine}", swing, cosine))
            features.append(Product(f"{swing} * {SQUARE}", swing, SQUARE))
        return features


def _read(name: str, form: str) -> Feature:
    """Return an observation, or in velocity form its change."""
    return Observed(name) if form == POSITION else Difference(f"change of {name}", name)
