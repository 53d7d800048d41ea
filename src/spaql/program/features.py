"""The features of a controller in its program, and what they remember."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaql.kernels import controller as kernels
from spaql.program.ir import (
    All,
    Assign,
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
)
from spaql.program.manual import manual_integrals
from spaql.program.specification import Specification

ANGLE_VARIABLES = ("angle_a", "angle_b", "angle_t", "angle_z", "angle_p", "angle_q")
ANGLE_FLAGS = ("angle_steep", "angle_turned")
"""The variables of `arc_tangent`."""
_P = (
    -8.750608600031904122785e-1,
    -1.615753718733365076637e1,
    -7.500855792314704667340e1,
    -1.228866684490136173410e2,
    -6.485021904942025371773e1,
)
_Q = (
    2.485846490142306297962e1,
    1.650270098316988542046e2,
    4.328810604912902668951e2,
    4.853903996359136964868e2,
    1.945506571482613964425e2,
)


def wrapped(x: str, setpoint: Expression, output: Expression) -> Iterator[Statement]:
    """Yield the statements of a wrapped error."""
    half = Number(3.141592653589793)
    turn = Number(6.283185307179586)
    above = Name(x) > half
    below = Name(x) < -3.141592653589793
    yield Assign(x, setpoint - output)
    up = If(below, (Assign(x, Name(x) + turn),))
    yield If(above, (Assign(x, Name(x) - turn),), (up,))


def arc_tangent(x: str, y: Expression, cosine: Expression) -> Iterator[Statement]:
    """Yield the statements of `spaql.kernels.angles.arc_tangent`."""
    a, b, t, z, p, q = (Name(name) for name in ANGLE_VARIABLES)
    zero = Number(0.0)
    one = Number(1.0)
    for name, value in (("angle_a", y), ("angle_b", cosine)):
        negative = value < zero
        yield If(negative, (Assign(name, zero - value),), (Assign(name, value),))
    steep = Flag("angle_steep")
    turned = Flag("angle_turned")
    poly: list[Statement] = [Assign("angle_z", t * t), Assign("angle_p", Number(_P[0]))]
    poly += [Assign("angle_p", p * z + c) for c in _P[1:]]
    poly += [Assign("angle_q", z + _Q[0])]
    poly += [Assign("angle_q", q * z + c) for c in _Q[1:]]
    angle = t + t * (z * p / q)
    body = (
        SetFlag("angle_steep", a > b),
        If(steep, (Assign("angle_t", b / a),), (Assign("angle_t", a / b),)),
        SetFlag("angle_turned", t > 0.66),
        If(turned, (Assign("angle_t", (t - one) / (t + one)),)),
        *poly,
        Assign(x, angle),
        If(turned, (Assign(x, Name(x) + 0.7853981633974483),)),
        If(steep, (Assign(x, Number(1.5707963267948966) - Name(x)),)),
        If(cosine < zero, (Assign(x, Number(3.141592653589793) - Name(x)),)),
        If(y < zero, (Assign(x, zero - Name(x)),)),
    )
    origin = All((a <= zero, b <= zero))
    yield If(origin, (Assign(x, zero),), body)


class FeatureWriter:
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
        static = {kernels.ERROR: here - other, kernels.PRODUCT: here * other}
        static[kernels.SQUARE] = here * here
        if kind in static:
            yield Assign(x, static[kind])
            return
        before = Name(self._slot(i))
        if kind == kernels.DIFFERENCE:
            yield _started(x, here - before, Number(0.0))
        elif kind == kernels.LAG:
            yield _started(x, Name(self._slot(i, samples - 1)), here)
        elif kind == kernels.LOW_PASS:
            yield _started(x, before + parameter * (here - before), here)
        elif kind == kernels.DERIVATIVE:
            last = Name(self._slot(i, 1))
            share = Number(float(setting[kernels.BOUND]))
            quotient = (here - before) / parameter
            yield _started(x, last + share * (quotient - last), Number(0.0))

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
        yield If(changed, (Assign(slot, sample),), (Assign(slot, Name(slot) + sample),))
        yield from clamped(slot, None, Number(float(self._arrays.setting[i, kernels.BOUND])))

    def _integrate(self, i: int) -> Iterator[Statement]:
        """Yield the statements that update an integral, unless it would push a limited action further."""
        slot = self._slot(i)
        names = self._names
        setting = self._arrays.setting[i]
        here = self._value(int(self._arrays.feature[i, kernels.FIRST]))
        bound = float(setting[kernels.BOUND])
        add = (
            Assign(slot, Name(slot) + Number(float(setting[kernels.PARAMETER])) * here),
            *clamped(slot, Number(-bound), Number(bound)),
        )
        pushes = tuple(
            Name(names.cuts[k]) * Name(names.gains[j, k]) * here > 0.0 for j, k in self._gains if j == i
        )
        if not pushes:
            yield from add
            return
        yield SetFlag("waits", Some(pushes))
        yield If(Not(Flag("waits")), add)


def _started(name: str, later: Expression, first: Expression) -> Statement:
    """Return a statement that sets a number, to another value at the first sample."""
    return If(Flag("started"), (Assign(name, later),), (Assign(name, first),))
