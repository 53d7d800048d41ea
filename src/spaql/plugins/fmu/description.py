"""The description of an FMU: its variables with units and ranges, read from the file."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spaql.errors import BadEnvironmentError, MissingExtraError, SettingError, nearest

_WHOLE = {"Integer", "Enumeration", *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))}
_REAL = {"Real", "Float32", "Float64"}


def fmpy_module() -> Any:
    """Return the package fmpy; raises `MissingExtraError` if it is not installed."""
    try:
        import fmpy
        import fmpy.fmi2
        import fmpy.fmi3
        import fmpy.model_description
    except ImportError as error:
        raise MissingExtraError("FMUs need fmpy: pip install 'spaql[fmi]'.") from error
    return fmpy


@dataclass(frozen=True)
class Variable:
    """A scalar variable of an FMU."""

    name: str
    reference: int
    type: str
    """As the FMU declares it, such as Real, Float64 or Boolean."""
    causality: str
    initial: str
    unit: str
    range: tuple[float, float]
    """The least and the largest value; infinite where the FMU declares none."""

    @property
    def label(self) -> str:
        """The name with its unit.

        Examples
        --------
        >>> Variable("level", 1, "Real", "output", "", "m", (0.0, 2.0)).label
        'level [m]'
        """
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def is_real(self) -> bool:
        """Whether it is a real number; otherwise it is a whole number, a truth value, or no number."""
        return self.type in _REAL

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, or true and false."""
        return self.type in _REAL | _WHOLE | {"Boolean"}


@dataclass(frozen=True)
class Description:
    """What an FMU says of itself."""

    file: str
    version: int
    """2 or 3."""
    variables: dict[str, Variable]
    start_time: float
    stop_time: float | None
    step_size: float | None
    """Of the default experiment, in seconds."""
    model: Any = field(repr=False, compare=False)
    """The description as FMPy reads it."""

    def of_causality(self, *causalities: str) -> list[Variable]:
        """Return the variables that are inputs, outputs, parameters, and so on."""
        return [one for one in self.variables.values() if one.causality in causalities and one.is_number]

    def variable(self, name: str, where: str, among: Iterable[Variable] | None = None) -> Variable:
        """Return a variable by its name; one that is not there, or no number, is refused."""
        known = {one.name: one for one in among} if among is not None else self.variables
        if name not in known:
            other = self.variables.get(name)
            what = (
                "is no variable of"
                if other is None
                else f"is a variable ({other.causality}), but not for it, of"
            )
            guess = nearest(name, list(known)) if known else "there is none."
            raise SettingError(f"{where} names {name!r}, which {what} {self.file}: {guess}")
        if not known[name].is_number:
            raise SettingError(
                f"{where} names {name!r}, of the type {known[name].type} in {self.file}: only scalar numbers "
                "and truth values can be used."
            )
        return known[name]


def read_description(file: str | os.PathLike[str]) -> Description:
    """Return the description of an FMU for co-simulation; any other file is refused."""
    fmpy = fmpy_module()
    name = os.fspath(file)
    if not Path(file).is_file():
        raise BadEnvironmentError(f"There is no {name}: give the path of an FMU from the current folder.")
    try:
        model = fmpy.model_description.read_model_description(name, validate=False)
    except Exception as error:  # of FMPy, lxml or zipfile: the file may hold anything
        why = "it is no ZIP archive" if isinstance(error, zipfile.BadZipFile) else f"{error}"
        raise BadEnvironmentError(f"{name} cannot be read as an FMU: {why}.") from error
    if not model.fmiVersion.startswith(("2.", "3.")):
        raise BadEnvironmentError(
            f"{name} is an FMU of FMI {model.fmiVersion}: export it for FMI 2.0 or 3.0."
        )
    if model.coSimulation is None:
        raise BadEnvironmentError(
            f"{name} is for model exchange only, without a solver: export it for co-simulation."
        )
    default = model.defaultExperiment
    return Description(
        file=name,
        version=int(model.fmiVersion[0]),
        variables={one.name: _variable(one) for one in model.modelVariables},
        start_time=_number(default and default.startTime, 0.0),
        stop_time=_number(default and default.stopTime, None),
        step_size=_number(default and default.stepSize, None),
        model=model,
    )


def _variable(one: Any) -> Variable:
    kind = one.declaredType
    low, high, unit = (
        getattr(one, what) if getattr(one, what) is not None else kind and getattr(kind, what)
        for what in ("min", "max", "unit")
    )
    return Variable(
        name=one.name,
        reference=one.valueReference,
        type=f"array of {one.type}" if one.dimensions else one.type,
        causality=one.causality or "local",
        initial=one.initial or "",
        unit="" if unit in (None, "1") else unit,
        range=(0.0, 1.0) if one.type == "Boolean" else (_number(low, -math.inf), _number(high, math.inf)),
    )


def _number(text: Any, default: Any) -> Any:
    """Return a number of a description, which FMPy leaves as text."""
    try:
        return default if text is None else float(text)
    except ValueError:
        return default
