"""The features of a controller in its program, and what they remember."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaql.kernels import controller as kernels
from spaql.program.angles import arc_tangent, wrapped
from spaql.program.ir import (
    Assign,
    Binary,
    Compare,
    Expression,
    Flag,
    If,
    Name,
    Not,
    Number,
    SetFlag,
    Some,
    Statement,
    clamped,
    minus,
    plus,
    times,
)
from spaql.program.manual import manual_integrals
from spaql.program.specification import Specification


class Features:
    """Computed features: of the observation, of earlier ones and of what they remember."""

    def __init__(self, spec: Specification, gains: Sequence[tuple[int, int]]) -> None:
        self._spec = spec
        self._names = spec.names
        self._arrays = spec.controller.arrays
        self._gains = gains

    def statements(self) -> Iterator[Statement]:
        """Yield the statements that compute the features."""
        for i in range(len(self._spec.kinds)):
            yield from self._feature(i)

    def updates(self) -> Iterator[Statement]:
        """Yield the statements that update what features remember, after the action."""
        yield from self._integrals()
        for i in range(len(self._spec.kinds)):
            yield from self._update(i)

    def _value(self, column: int) -> Expression:
        return Name(self._names.x[column])

    def _slot(self, i: int, j: int = 0) -> str:
        return self._spec.memory_word(i, j)

    def _feature(self, i: int) -> Iterator[Statement]:
        place = self._arrays.feature[i]
        setting = self._arrays.setting[i]
        x = self._names.features[i]
        kind = self._spec.kinds[i]
        samples = int(place[kernels.SAMPLES])
        if kind in (kernels.INTEGRAL, kernels.SINCE_CHANGE):
            yield Assign(x, Name(self._slot(i)))
            return
        if kind == kernels.LAST_ACTION:
            yield Assign(x, Name(self._slot(i, samples - 1)))
            return
        here, other = (self._value(int(place[j])) for j in (kernels.FIRST, kernels.SECOND))
        parameter = Number(float(setting[kernels.PARAMETER]))
        if kind == kernels.ANGLE:
            yield from arc_tangent(x, here, other)
            return
        if kind == kernels.ANGLE_ERROR:
            yield from wrapped(x, here, other)
            return
        static = {kernels.ERROR: minus(here, other), kernels.PRODUCT: times(here, other)}
        static[kernels.SQUARE] = times(here, here)
        if kind in static:
            yield Assign(x, static[kind])
            return
        before = Name(self._slot(i))
        if kind == kernels.DIFFERENCE:
            yield _started(x, minus(here, before), Number(0.0))
        elif kind == kernels.LAG:
            yield _started(x, Name(self._slot(i, samples - 1)), here)
        elif kind == kernels.LOW_PASS:
            yield _started(x, plus(before, times(parameter, minus(here, before))), here)
        elif kind == kernels.DERIVATIVE:
            last = Name(self._slot(i, 1))
            share = Number(float(setting[kernels.BOUND]))
            quotient = Binary("/", minus(here, before), parameter)
            yield _started(x, plus(last, times(share, minus(quotient, last))), Number(0.0))

    def _integrals(self) -> Iterator[Statement]:
        """Yield the statements that update all integrals."""
        integrals = self._spec.integrals
        automatic = tuple(statement for i in integrals for statement in self._integrate(i))
        if not self._spec.manual or not automatic:
            yield from automatic
            return
        if by_hand := manual_integrals(self._spec):
            yield If(Flag("manual"), by_hand, automatic)
        else:
            yield If(Not(Flag("manual")), automatic)

    def _update(self, i: int) -> Iterator[Statement]:
        place = self._arrays.feature[i]
        x = self._names.features[i]
        kind = self._spec.kinds[i]
        if kind in (kernels.DIFFERENCE, kernels.DERIVATIVE):
            yield Assign(self._slot(i), self._value(int(place[kernels.FIRST])))
            if kind == kernels.DERIVATIVE:
                yield Assign(self._slot(i, 1), Name(x))
        elif kind == kernels.LOW_PASS:
            yield Assign(self._slot(i), Name(x))
        elif kind == kernels.SINCE_CHANGE:
            yield from self._passing(i)
        elif kind in (kernels.LAG, kernels.LAST_ACTION):
            lag = kind == kernels.LAG
            places = range(int(place[kernels.SAMPLES]) - 1, 0, -1)
            source = int(place[kernels.FIRST])
            here = self._value(source) if lag else self._spec.given[source]
            shift = tuple(Assign(self._slot(i, j), Name(self._slot(i, j - 1))) for j in places)
            if shift and lag:
                yield If(Flag("started"), shift, tuple(Assign(self._slot(i, j), here) for j in places))
            elif shift:
                yield from shift
            yield Assign(self._slot(i), here)

    def _passing(self, i: int) -> Iterator[Statement]:
        """Yield the statements that update the time since an action changed."""
        component = int(self._arrays.feature[i, kernels.FIRST])
        sample = Number(float(self._arrays.setting[i, kernels.PARAMETER]))
        slot = self._slot(i)
        changed = Compare("!=", self._spec.given[component], Name(self._names.last[component]))
        yield If(changed, (Assign(slot, sample),), (Assign(slot, plus(Name(slot), sample)),))
        yield from clamped(slot, None, Number(float(self._arrays.setting[i, kernels.BOUND])))

    def _integrate(self, i: int) -> Iterator[Statement]:
        """Yield the statements that update an integral, unless it would push a limited action further."""
        slot = self._slot(i)
        names = self._names
        setting = self._arrays.setting[i]
        here = self._value(int(self._arrays.feature[i, kernels.FIRST]))
        bound = float(setting[kernels.BOUND])
        add = (
            Assign(slot, plus(Name(slot), times(Number(float(setting[kernels.PARAMETER])), here))),
            *clamped(slot, Number(-bound), Number(bound)),
        )
        pushes = tuple(
            Compare(">", times(times(Name(names.cuts[k]), Name(names.gains[j, k])), here), Number(0.0))
            for j, k in self._gains
            if j == i
        )
        if not pushes:
            yield from add
            return
        yield SetFlag("waits", Some(pushes))
        yield If(Not(Flag("waits")), add)


def _started(name: str, later: Expression, first: Expression) -> Statement:
    """Return a statement that sets a number, to another value at the first sample."""
    return If(Flag("started"), (Assign(name, later),), (Assign(name, first),))
