"""What a user declares of an FMU, checked against its description: names, ranges, units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spaql.errors import SettingError
from spaql.plugins.fmu.description import Description, Variable
from spaql.spaces import split_unit
from spaql.values import real_number

Range = tuple[float, float]
Named = Sequence[str] | Mapping[str, Sequence[float]]
"""Names of variables, or names with their ranges."""


@dataclass(frozen=True)
class Quantity:
    """A number that is observed or acted on, with its range."""

    variable: Variable
    range: Range


@dataclass(frozen=True)
class SetPoint:
    """A set-point that is drawn for every episode, and observed."""

    name: str
    """Of the variable that is to follow it."""
    label: str
    range: Range


@dataclass(frozen=True)
class Declared:
    """An FMU as a plant."""

    inputs: tuple[Quantity, ...]
    outputs: tuple[Quantity, ...]
    setpoints: tuple[SetPoint, ...]
    followed: Mapping[str, str]
    """Labels of outputs with the labels of their set-points."""
    values: Mapping[str, Range]
    """Parameters, start values and inputs that an episode begins with; drawn where the ends differ."""
    step_size: float
    horizon: int | None

    @property
    def observations(self) -> tuple[str, ...]:
        """The names of the observed numbers, with units."""
        return (*(one.variable.label for one in self.outputs), *(one.label for one in self.setpoints))


def declared(
    fmu: Description,
    *,
    step_size: float | None,
    horizon: int | None,
    inputs: Named | None,
    outputs: Named | None,
    parameters: Mapping[str, Any],
    start: Mapping[str, Any],
    setpoints: Mapping[str, Any],
) -> Declared:
    """Return an FMU as a plant; whatever does not fit its description is refused."""
    size = fmu.step_size if step_size is None else real_number("step_size", step_size, above=0.0)
    if size is None or not size > 0:
        raise SettingError(
            f"{fmu.file} names no step size: give step_size, the seconds between two actions.",
            settings={"step_size": "SECONDS"},
        )
    if horizon is None and fmu.stop_time is not None:
        horizon = max(1, round((fmu.stop_time - fmu.start_time) / size))
    values = {name: _span(fmu, "parameters", name, x) for name, x in parameters.items()}
    for name, x in start.items():
        if name in values:
            raise SettingError(f"{name!r} is both in parameters and in start: give it once.")
        values[name] = _span(fmu, "start", name, x)
    free = [one for one in fmu.of_causality("input") if one.name not in values]
    acting = _quantities(fmu, "inputs", inputs, free, fmu.of_causality("input"))
    if not acting:
        raise SettingError(f"{fmu.file} has no input to act on: a controller needs one.")
    if fixed := [one.variable.name for one in acting if one.variable.name in values]:
        raise SettingError(f"{fixed[0]!r} is an input to act on, and has a value already: leave out one.")
    for one in acting:
        if not all(map(math.isfinite, one.range)):
            name = one.variable.name
            raise SettingError(
                f"The input {name} has no finite range in {fmu.file}: give one, as in inputs = "
                f"{{{name} = [0, 1]}}, or a value in parameters if it is not to be acted on."
            )
    seen = _quantities(fmu, "outputs", outputs, fmu.of_causality("output"), None)
    if not seen:
        raise SettingError(f"{fmu.file} has no output: name variables to observe in outputs.")
    drawn, followed = _setpoints(fmu, setpoints, seen)
    return Declared(tuple(acting), tuple(seen), tuple(drawn), followed, values, size, horizon)


def _quantities(
    fmu: Description,
    where: str,
    given: Named | None,
    default: Sequence[Variable],
    among: Sequence[Variable] | None,
) -> list[Quantity]:
    """Return variables with their ranges: as given, or else as the FMU declares them."""
    if given is None:
        return [Quantity(one, one.range) for one in default]
    if isinstance(given, str):
        raise SettingError(f"{where} is {given!r}, and must be a list of names, or names with ranges.")
    found = []
    for name in given:
        one = fmu.variable(name, where, among)
        ends = given[name] if isinstance(given, Mapping) else None
        found.append(Quantity(one, one.range if ends is None else _range(f"{where}.{name}", ends)))
    return found


def _setpoints(
    fmu: Description, given: Mapping[str, Any], outputs: Sequence[Quantity]
) -> tuple[list[SetPoint], dict[str, str]]:
    """Return the set-points to draw, and which output follows which."""
    drawn = []
    followed = {}
    by_name = {one.variable.name: one.variable for one in outputs}
    for name, goal in given.items():
        one = fmu.variable(name, "setpoints", by_name.values())
        if isinstance(goal, str):
            followed[one.label] = fmu.variable(goal, "setpoints", by_name.values()).label
            continue
        unit = split_unit(one.label)[1]
        label = f"{name} set-point" + (f" [{unit}]" if unit else "")
        drawn.append(SetPoint(name, label, _range(f"setpoints.{name}", goal)))
        followed[one.label] = label
    return drawn, followed


def _span(fmu: Description, where: str, name: str, x: Any) -> Range:
    """Return the least and the largest of the values that an episode begins with."""
    one = fmu.variable(name, where)
    if one.initial == "calculated" or one.causality in ("independent", "calculatedParameter"):
        raise SettingError(
            f"{where} names {name!r}, which {fmu.file} computes by itself: it cannot be set "
            f"(causality {one.causality}, initial {one.initial or 'not declared'})."
        )
    if isinstance(x, bool):
        return float(x), float(x)
    if isinstance(x, Sequence) and not isinstance(x, str):
        return _range(f"{where}.{name}", x)
    return (real_number(f"{where}.{name}", x),) * 2


def _range(what: str, ends: Any) -> Range:
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2 or not ends[0] < ends[1]:
        raise SettingError(f"{what} is {ends!r}, and must be two numbers, the lower one first.")
    low, high = (x if x in (-math.inf, math.inf) else real_number(f"An end of {what}", x) for x in ends)
    return float(low), float(high)
