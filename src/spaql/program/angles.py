"""Angles in programs: the functions of `spaql.kernels.controller`, written out."""

from __future__ import annotations

from collections.abc import Iterator

from spaql.program.ir import (
    All,
    Assign,
    Binary,
    Compare,
    Expression,
    Flag,
    If,
    Name,
    Number,
    SetFlag,
    Statement,
    minus,
    plus,
    times,
)

VARIABLES = ("angle_a", "angle_b", "angle_t", "angle_z", "angle_p", "angle_q")
FLAGS = ("angle_steep", "angle_turned")
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
    above = Compare(">", Name(x), half)
    below = Compare("<", Name(x), Number(-3.141592653589793))
    yield Assign(x, minus(setpoint, output))
    up = If(below, (Assign(x, plus(Name(x), turn)),))
    yield If(above, (Assign(x, minus(Name(x), turn)),), (up,))


def arc_tangent(x: str, y: Expression, cosine: Expression) -> Iterator[Statement]:
    """Yield the statements of `spaql.kernels.angles.arc_tangent`."""
    a, b, t, z, p, q = (Name(name) for name in VARIABLES)
    zero = Number(0.0)
    one = Number(1.0)
    for name, value in (("angle_a", y), ("angle_b", cosine)):
        negative = Compare("<", value, zero)
        yield If(negative, (Assign(name, minus(zero, value)),), (Assign(name, value),))
    steep = Flag("angle_steep")
    turned = Flag("angle_turned")
    poly: list[Statement] = [Assign("angle_z", times(t, t)), Assign("angle_p", Number(_P[0]))]
    poly += [Assign("angle_p", plus(times(p, z), Number(c))) for c in _P[1:]]
    poly += [Assign("angle_q", plus(z, Number(_Q[0])))]
    poly += [Assign("angle_q", plus(times(q, z), Number(c))) for c in _Q[1:]]
    angle = plus(t, times(t, Binary("/", times(z, p), q)))
    body = (
        SetFlag("angle_steep", Compare(">", a, b)),
        If(steep, (Assign("angle_t", Binary("/", b, a)),), (Assign("angle_t", Binary("/", a, b)),)),
        SetFlag("angle_turned", Compare(">", t, Number(0.66))),
        If(turned, (Assign("angle_t", Binary("/", minus(t, one), plus(t, one))),)),
        *poly,
        Assign(x, angle),
        If(turned, (Assign(x, plus(Name(x), Number(0.7853981633974483))),)),
        If(steep, (Assign(x, minus(Number(1.5707963267948966), Name(x))),)),
        If(Compare("<", cosine, zero), (Assign(x, minus(Number(3.141592653589793), Name(x))),)),
        If(Compare("<", y, zero), (Assign(x, minus(zero, Name(x))),)),
    )
    origin = All((Compare("<=", a, zero), Compare("<=", b, zero)))
    yield If(origin, (Assign(x, zero),), body)
