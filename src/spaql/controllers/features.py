"""Features: what the rules and laws of a controller with memory read instead of the raw observation.

Each is declared once, by name. `spaql.kernels.controller` defines the arithmetic of all of them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from spaql.errors import SettingError
from spaql.formatting import exact
from spaql.kernels import controller as kernels
from spaql.kernels.controller import BOUND, PARAMETER, START
from spaql.spaces import given_names, split_unit
from spaql.values import real_number, whole_number

_MOST_SAMPLES = 1000
"""The longest lag: each sample of it takes a number of memory."""


@dataclass(frozen=True)
class Feature:
    """A number that is computed at every sample, from the observation, earlier features and memory."""

    name: str
    """Without its unit."""
    unit: str = dataclasses.field(default="", kw_only=True)
    """By default it follows from the units of what the feature is computed from."""
    kind: ClassVar[int]
    sources: ClassVar[tuple[str, ...]] = ("of",)
    """The fields that name a number of the observation, or an earlier feature."""
    remembered: ClassVar[int] = 0
    """How many numbers it remembers from sample to sample, unless it has a number of `samples`."""
    text: ClassVar[str]
    """How it is computed: what follows its name, as it is written (`formula`) and read (`rules`).

    In braces are its fields, {dt}, the sample time, {share}, that of a new value in its low-pass, and {ago},
    its number of samples. What is in brackets may be left out where it is read."""

    def __post_init__(self) -> None:
        given_names("A feature", [self.name], 1)
        if split_unit(self.name)[1]:
            raise SettingError(f"The feature {self.name!r} has a unit in its name: give it as unit=....")
        for source in self.sources:
            given_names(f"{source} of {self.name}", [getattr(self, source)], 1)

    def memory(self) -> int:
        """Return how many numbers it remembers from sample to sample."""
        return getattr(self, "samples", self.remembered)

    def numbers(self, sample_time: float) -> dict[int, float]:
        """Return its numbers in `Arrays.setting`, by column."""
        return {}

    def default_unit(self, *units: str) -> str:
        """Return the unit that follows from those of its sources."""
        return units[0]

    def formula(self, sample_time: float) -> str:
        """Return how it is computed: what follows its name."""
        fields = {name: exact(x) if isinstance(x, float) else x for name, x in vars(self).items()}
        fields |= {source: split_unit(getattr(self, source))[0] for source in self.sources}
        fields["dt"] = exact(sample_time)
        fields["share"] = f"{_share(getattr(self, 'time_constant', 0.0), sample_time):.4g}"
        fields["ago"] = _ago(getattr(self, "samples", 1))
        fields["counted"] = ", counted from 0" if fields.get("of") == "action" else ""
        return self.text.replace("[", "").replace("]", "").format(**fields)


@dataclass(frozen=True)
class Observed(Feature):
    """A number of the observation as it is; by default the one of the same name."""

    of: str = ""
    kind = kernels.OBSERVED
    text = "{of}"

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", self.of or self.name)
        super().__post_init__()


@dataclass(frozen=True)
class Error(Feature):
    """The set-point less the output."""

    setpoint: str
    output: str
    kind = kernels.ERROR
    sources = ("setpoint", "output")
    text = "{setpoint} - {output}"


@dataclass(frozen=True)
class AngleError(Error):
    """The set-point less the output of an angle in radians, the shorter way round.

    A turn is added or subtracted once, which is enough for angles from -pi to pi.
    """

    kind = kernels.ANGLE_ERROR
    text = "{setpoint} - {output}, less a turn above pi, plus a turn below -pi"


@dataclass(frozen=True)
class Integral(Feature):
    """The integral of a number over time, up to the sample before.

    It is clamped, and waits while it would push a limited action further (anti-windup).
    """

    of: str
    limit: float
    """Its largest magnitude, in its unit."""
    start: float = 0.0
    """Its value at a reset."""
    kind = kernels.INTEGRAL
    remembered = 1
    text = (
        "integral of {of} within -{limit} and {limit}[, from {start}][: += {dt} s * {of}; waits while it "
        "would push a limited action further]"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        limit = real_number(f"limit of {self.name}", self.limit, above=0)
        object.__setattr__(self, "limit", limit)
        start = real_number(f"start of {self.name}", self.start, least=-limit, most=limit)
        object.__setattr__(self, "start", start)

    def numbers(self, sample_time: float) -> dict[int, float]:
        """Return its numbers in `Arrays.setting`, by column."""
        return {PARAMETER: sample_time, BOUND: self.limit, START: self.start}

    def default_unit(self, *units: str) -> str:
        """Return the unit that follows from those of its sources."""
        return _product(units[0], "s")


@dataclass(frozen=True)
class Difference(Feature):
    """A number less its value at the sample before; 0 at the first sample."""

    of: str
    kind = kernels.DIFFERENCE
    remembered = 1
    text = "{of} - {of} a sample before[; 0 at the first sample]"


@dataclass(frozen=True)
class FilteredDerivative(Feature):
    """The difference quotient of a number, after a low-pass of the first order; 0 at the first sample."""

    of: str
    time_constant: float
    """Of the low-pass, in seconds; 0 for none."""
    kind = kernels.DERIVATIVE
    remembered = 2
    text = (
        "derivative of {of} filtered with {time_constant} s[: += {share} * (({of} - {of} a sample before) / "
        "{dt} s - {name}), from 0]"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_time_constant(self)

    def numbers(self, sample_time: float) -> dict[int, float]:
        """Return its numbers in `Arrays.setting`, by column."""
        return {PARAMETER: sample_time, BOUND: _share(self.time_constant, sample_time)}

    def default_unit(self, *units: str) -> str:
        """Return the unit that follows from those of its sources."""
        return f"{units[0] or '1'}/s"


@dataclass(frozen=True)
class Lag(Feature):
    """A number as it was some samples ago; its present value at the first sample."""

    of: str
    samples: int = 1
    kind = kernels.LAG
    text = "{of} {ago}[; before the first sample, its first value]"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_samples(self)


@dataclass(frozen=True)
class LowPass(Feature):
    """A number after a low-pass of the first order, which starts at the first value."""

    of: str
    time_constant: float
    """In seconds."""
    kind = kernels.LOW_PASS
    remembered = 1
    text = (
        "low-pass of {of} with {time_constant} s[: += {share} * ({of} - {name}), from the first value of "
        "{of}]"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_time_constant(self)

    def numbers(self, sample_time: float) -> dict[int, float]:
        """Return its numbers in `Arrays.setting`, by column."""
        return {PARAMETER: _share(self.time_constant, sample_time)}


@dataclass(frozen=True)
class LastAction(Feature):
    """A component of the action as it was given some samples ago; at a reset, the start of the controller.

    A discrete action counts from 0.
    """

    of: str
    """The name of the number of the action."""
    samples: int = 1
    kind = kernels.LAST_ACTION
    text = "{of} as given {ago}[{counted}; before the first sample, its start]"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_samples(self)


@dataclass(frozen=True)
class SinceChange(Feature):
    """The time since a discrete action changed, in seconds; at a reset its limit, as if long ago."""

    of: str
    """The name of the action: "action"."""
    limit: float
    """The longest time that is told apart, in seconds."""
    kind = kernels.SINCE_CHANGE
    remembered = 1
    text = "seconds since {of} changed, at most {limit}[; that before the first sample]"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "limit", real_number(f"limit of {self.name}", self.limit, above=0))

    def numbers(self, sample_time: float) -> dict[int, float]:
        """Return its numbers in `Arrays.setting`, by column."""
        return {PARAMETER: sample_time, BOUND: self.limit}

    def default_unit(self, *units: str) -> str:
        """Return the unit that follows from those of its sources."""
        return "s"


@dataclass(frozen=True)
class Product(Feature):
    """The product of two numbers."""

    of: str
    by: str
    kind = kernels.PRODUCT
    sources = ("of", "by")
    text = "{of} * {by}"

    def default_unit(self, *units: str) -> str:
        """Return the unit that follows from those of its sources."""
        return _product(*units)


@dataclass(frozen=True)
class Square(Feature):
    """The square of a number."""

    of: str
    kind = kernels.SQUARE
    text = "{of} * {of}"

    def default_unit(self, *units: str) -> str:
        """Return the unit that follows from those of its sources."""
        return f"({units[0]})^2" if units[0] else ""


@dataclass(frozen=True)
class Angle(Feature):
    """The angle of a sine and a cosine, from -pi to pi."""

    sine: str
    cosine: str
    kind = kernels.ANGLE
    sources = ("sine", "cosine")
    text = "atan2({sine}, {cosine})"

    def default_unit(self, *units: str) -> str:
        """Return the unit that follows from those of its sources."""
        return "rad"


FEATURES: dict[str, type[Feature]] = {
    "observed": Observed,
    "error": Error,
    "integral": Integral,
    "difference": Difference,
    "filtered derivative": FilteredDerivative,
    "lag": Lag,
    "low-pass": LowPass,
    "last action": LastAction,
    "since change": SinceChange,
    "product": Product,
    "square": Square,
    "angle": Angle,
    "angle error": AngleError,
}
"""Every kind of feature by the name that files have for it."""


def _product(*units: str) -> str:
    return " ".join(filter(None, units))


def _share(time_constant: float, sample_time: float) -> float:
    """Return the share of the new value in a low-pass (backward Euler)."""
    return sample_time / (sample_time + time_constant)


def _check_time_constant(feature: FilteredDerivative | LowPass) -> None:
    seconds = real_number(f"time_constant of {feature.name}", feature.time_constant, least=0)
    object.__setattr__(feature, "time_constant", seconds)


def _check_samples(feature: Lag | LastAction) -> None:
    samples = whole_number(f"samples of {feature.name}", feature.samples, least=1, most=_MOST_SAMPLES)
    object.__setattr__(feature, "samples", samples)


def _ago(samples: int) -> str:
    return "a sample before" if samples == 1 else f"{samples} samples before"
