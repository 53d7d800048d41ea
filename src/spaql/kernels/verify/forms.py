"""Sets of numbers: affine forms with an interval beside them, rounded outwards.

A number is known as c + sum(a[k] * e[k]) + r * e0, all e in [-1, 1], and at the same time as an interval
[low, high]: what is known is their intersection. Both are one row of a matrix: c, r, low, high, a[0], ...

All operations here round to nearest, so every result is followed by a slack: intervals are moved outwards by
more than an ulp, and r grows by a multiple of 2**-52 of a bound on all that was added. So a bounded row
holds what real arithmetic returns, and what the same operation returns in double precision for any numbers in
its operands: a proof is about the program that runs, and about the equations in it. `sin`, `exp` and so on of
the machine are taken to be right within 4 ulp. Single precision is an unknown relative error of 2**-23, which
covers rounding and none. A row that is not bounded may be infinite or NaN: nothing is known of it, nor of
what is computed from it.
"""

from __future__ import annotations

import math

from spaql.kernels.jit import njit_in_place
from spaql.kernels.verify.points import Floats

C = 0
R = 1
LOW = 2
HIGH = 3
A = 4
EPS = 2.0**-52
"""At least one ulp of 1, and twice the largest relative error of an operation, u = 2**-53."""
TINY = 1e-290
"""More than the error of an underflow, which is below 5e-324."""
SINGLE_EPS = 2.0**-23
"""Twice the largest relative error of rounding to single precision."""
SINGLE_TINY = 1e-44
"""More than the smallest number in single precision, 1.4e-45."""
SINGLE_MOST = 3.4e38
"""Below the largest number in single precision, 3.403e38: what is below does not overflow."""
LARGEST_ANGLE = 1e5
"""Beyond it the sine and cosine of a set are anything in [-1, 1]."""
ANGLE_ERROR = 1e-9
"""More than the error of a multiple of pi up to the largest angle, a few times 1e5 * EPS = 2e-11."""


@njit_in_place
def down(x: float) -> float:
    """Return a number below x, and below what x was rounded from.

    That is off by u |x| at most, and so is the result of the subtraction: together less than EPS |x| + TINY.
    """
    return x - (abs(x) * EPS + TINY)


@njit_in_place
def up(x: float) -> float:
    """Return a number above x, and above what x was rounded from."""
    return x + (abs(x) * EPS + TINY)


@njit_in_place
def copy_row(m: Floats, z: int, x: int) -> None:
    """Set row z to row x; an assignment to a slice would take longer than an operation."""
    for k in range(m.shape[1]):
        m[z, k] = m[x, k]


@njit_in_place
def spread(m: Floats, z: int) -> float:
    """Return an upper bound of r + sum |a|: n additions err by n u at most, and 64 EPS is enough for 128."""
    total = m[z, R]
    for k in range(A, m.shape[1]):
        total += abs(m[z, k])
    return float(total * (1.0 + 64 * EPS) + TINY)


@njit_in_place
def is_bounded(m: Floats, z: int) -> bool:
    """Return whether row z has finite bounds: then it is a number, neither infinite nor NaN."""
    return bool(m[z, LOW] > -math.inf and m[z, HIGH] < math.inf)


@njit_in_place
def put_interval(m: Floats, z: int, low: float, high: float) -> None:
    """Set row z to an interval, without a form; anything if it is not one."""
    for k in range(A, m.shape[1]):
        m[z, k] = 0.0
    if not low <= high:
        low = -math.inf
        high = math.inf
    if math.isfinite(low) and math.isfinite(high):
        m[z, C] = 0.5 * low + 0.5 * high
        m[z, R] = up(max(up(high - m[z, C]), up(m[z, C] - low)))
    else:
        m[z, C] = 0.0
        m[z, R] = math.inf
    m[z, LOW] = low
    m[z, HIGH] = high


@njit_in_place
def put_unknown(m: Floats, z: int) -> None:
    """Set row z to anything, NaN as well."""
    put_interval(m, z, -math.inf, math.inf)


@njit_in_place
def settle(m: Floats, z: int, low: float, high: float) -> None:
    """After the form of row z is written, let it and an interval narrow each other."""
    if not low <= high:
        low = -math.inf
        high = math.inf
    s = spread(m, z)
    form_low = down(m[z, C] - s)
    form_high = up(m[z, C] + s)
    if not (math.isfinite(form_low) and math.isfinite(form_high)):
        put_interval(m, z, low, high)
        return
    m[z, LOW] = max(low, form_low)
    m[z, HIGH] = min(high, form_high)
    if not m[z, LOW] <= m[z, HIGH]:
        m[z, LOW] = form_low
        m[z, HIGH] = form_high
    if m[z, HIGH] - m[z, LOW] < 1.9 * m[z, R]:  # the form tells no more than the interval
        put_interval(m, z, m[z, LOW], m[z, HIGH])


@njit_in_place
def add_slack(m: Floats, z: int, size: float) -> None:
    """Add rounding errors to r; size bounds the sum of all absolute terms that went into the row.

    Each coefficient, and r, is a sum of up to four products, whose error is at most 8 u of its absolute
    terms. 16 EPS = 32 u leaves room for the rounding of size and of r.
    """
    m[z, R] += 16 * EPS * size + TINY


@njit_in_place
def put_const(m: Floats, z: int, value: float) -> None:
    """Set row z to a constant."""
    for k in range(m.shape[1]):
        m[z, k] = 0.0
    m[z, C] = m[z, LOW] = m[z, HIGH] = value


@njit_in_place
def put_sum(m: Floats, z: int, x: int, y: int, sign: float) -> None:
    """Set row z to x + sign * y, for a sign of 1 or -1; z may be x or y."""
    size = abs(m[x, C]) + abs(m[y, C]) + spread(m, x) + spread(m, y)
    r = m[x, R] + m[y, R]
    if sign > 0.0:
        low = down(m[x, LOW] + m[y, LOW])
        high = up(m[x, HIGH] + m[y, HIGH])
        if m[x, LOW] >= 0.0 and m[y, LOW] >= 0.0:  # as for sqrt(x * x + y * y)
            low = max(low, 0.0)
    else:
        low = down(m[x, LOW] - m[y, HIGH])
        high = up(m[x, HIGH] - m[y, LOW])
    m[z, C] = m[x, C] + sign * m[y, C]
    for k in range(A, m.shape[1]):
        m[z, k] = m[x, k] + sign * m[y, k]
    m[z, R] = r
    add_slack(m, z, size)
    settle(m, z, low, high)


@njit_in_place
def put_product(m: Floats, z: int, x: int, y: int) -> None:
    """Set row z to x * y; z must be another row."""
    sx = spread(m, x)
    sy = spread(m, y)
    cx = m[x, C]
    cy = m[y, C]
    a = m[x, LOW] * m[y, LOW]
    b = m[x, LOW] * m[y, HIGH]
    c = m[x, HIGH] * m[y, LOW]
    d = m[x, HIGH] * m[y, HIGH]
    m[z, C] = cx * cy
    for k in range(A, m.shape[1]):
        m[z, k] = cx * m[y, k] + cy * m[x, k]
    m[z, R] = abs(cx) * m[y, R] + abs(cy) * m[x, R] + sx * sy
    add_slack(m, z, (abs(cx) + sx) * (abs(cy) + sy))
    if math.isnan(a + b + c + d):
        settle(m, z, -math.inf, math.inf)
    else:
        settle(m, z, down(min(min(a, b), min(c, d))), up(max(max(a, b), max(c, d))))


@njit_in_place
def put_square(m: Floats, z: int, x: int) -> None:
    """Set row z to x * x; z must be another row.

    With x = c + d it is c * c + 2 c d + d * d, and d * d lies in [0, s * s]: its middle goes to the centre.
    """
    s = spread(m, x)
    c = m[x, C]
    low = m[x, LOW]
    high = m[x, HIGH]
    most = max(low * low, high * high)
    least = 0.0 if low <= 0.0 <= high else min(low * low, high * high)
    m[z, C] = c * c + 0.5 * s * s
    for k in range(A, m.shape[1]):
        m[z, k] = 2.0 * c * m[x, k]
    m[z, R] = 2.0 * abs(c) * m[x, R] + 0.5 * s * s
    add_slack(m, z, (abs(c) + s) * (abs(c) + s))
    settle(m, z, max(down(least), 0.0), up(most))


@njit_in_place
def put_affine(
    m: Floats, z: int, x: int, slope: float, shift: float, error: float, low: float, high: float
) -> None:
    """Set row z to slope * x + shift within an error, known to be in an interval; z may be x."""
    size = abs(slope) * (abs(m[x, C]) + spread(m, x)) + abs(shift) + error + EPS
    m[z, C] = slope * m[x, C] + shift
    for k in range(A, m.shape[1]):
        m[z, k] = slope * m[x, k]
    m[z, R] = abs(slope) * m[x, R] + error
    add_slack(m, z, size)
    settle(m, z, low, high)


@njit_in_place
def put_negative(m: Floats, z: int, x: int) -> None:
    """Set row z to -x, which is exact; z may be x."""
    low = -m[x, HIGH]
    high = -m[x, LOW]
    m[z, C] = -m[x, C]
    m[z, R] = m[x, R]
    for k in range(A, m.shape[1]):
        m[z, k] = -m[x, k]
    m[z, LOW] = low
    m[z, HIGH] = high


@njit_in_place
def put_max(m: Floats, z: int, x: int, y: int, work: int) -> None:
    """Set row z to max(x, y) = y + max(x - y, 0), the last by its chord; uses a row of work."""
    if m[x, LOW] >= m[y, HIGH]:
        copy_row(m, z, x)
    elif m[y, LOW] >= m[x, HIGH]:
        copy_row(m, z, y)
    else:
        low = max(m[x, LOW], m[y, LOW])
        high = max(m[x, HIGH], m[y, HIGH])
        put_sum(m, work, x, y, -1.0)
        a = m[work, LOW]
        b = m[work, HIGH]
        if not (math.isfinite(a) and math.isfinite(b)):
            put_interval(m, z, low, high)
            return
        a = min(a, -TINY)
        b = max(b, TINY)
        slope = b / (b - a)
        gap = up(slope * -a) * (1.0 + 8 * EPS)
        # max(d, 0) lies below the chord slope * (d - a) over [a, b], and by -slope * a at most, where d = 0.
        middle = up(slope * -a) - 0.5 * gap
        error = 0.5 * gap * (1.0 + 8 * EPS)
        put_affine(m, work, work, slope, middle, error, 0.0, up(b))
        put_sum(m, z, work, y, 1.0)
        settle(m, z, low, high)


@njit_in_place
def put_min(m: Floats, z: int, x: int, y: int, work: int) -> None:
    """Set row z to min(x, y); uses four rows of work."""
    put_negative(m, work + 1, x)
    put_negative(m, work + 2, y)
    put_max(m, work + 3, work + 1, work + 2, work)
    put_negative(m, z, work + 3)


@njit_in_place
def holds_extreme(low: float, high: float, at: float) -> bool:
    """Return whether at + 2 pi k may lie in an interval."""
    turns = math.ceil((low - ANGLE_ERROR - at) / (2 * math.pi))
    return at + 2 * math.pi * turns <= high + ANGLE_ERROR


@njit_in_place
def put_wave(m: Floats, z: int, x: int, phase: float) -> None:
    """Set row z to sin(x + phase), for a phase of 0 or pi / 2."""
    a = m[x, LOW]
    b = m[x, HIGH]
    if not (abs(a) < LARGEST_ANGLE and abs(b) < LARGEST_ANGLE) or b - a >= 6.283:  # a whole turn
        put_interval(m, z, -1.0, 1.0)
        return
    first = math.sin(a) if phase == 0.0 else math.cos(a)
    last = math.sin(b) if phase == 0.0 else math.cos(b)
    low = max(min(first, last) - 4 * EPS, -1.0)
    high = min(max(first, last) + 4 * EPS, 1.0)
    if holds_extreme(a, b, 0.5 * math.pi - phase):
        high = 1.0
    if holds_extreme(a, b, -0.5 * math.pi - phase):
        low = -1.0
    if b - a > 3.0:  # about half a turn, over which no tangent is of use
        put_interval(m, z, low, high)
        return
    mid = 0.5 * (a + b)
    rad = up(max(b - mid, mid - a))
    value = math.sin(mid) if phase == 0.0 else math.cos(mid)
    slope = math.cos(mid) if phase == 0.0 else -math.sin(mid)
    # Taylor: the tangent errs by half the second derivative, which is minus the function, times rad**2. Slope
    # and shift are rounded, times numbers of at most |mid| + rad.
    bend = max(abs(low), abs(high))
    error = 0.5 * rad * rad * bend * (1 + 16 * EPS) + 16 * EPS * (1.0 + abs(mid) + rad)
    put_affine(m, z, x, slope, value - slope * mid, error, low, high)


@njit_in_place
def put_quotient(m: Floats, z: int, x: int, y: int, work: int) -> None:
    """Set row z to x / y, anything if y may be 0; uses a row of work."""
    low = m[y, LOW]
    high = m[y, HIGH]
    if not (low > 0.0 or high < 0.0) or not (math.isfinite(low) and math.isfinite(high)):
        put_unknown(m, z)
        return
    mid = 0.5 * (low + high)
    rad = up(max(high - mid, mid - low))
    least = min(abs(low), abs(high))
    # The tangent of 1 / y errs by half its second derivative, 2 / y**3, times rad**2.
    error = rad * rad / (least * least * least) * (1 + 64 * EPS) + 32 * EPS / least
    a = m[x, LOW] / low
    b = m[x, LOW] / high
    c = m[x, HIGH] / low
    d = m[x, HIGH] / high
    put_affine(m, work, y, -1.0 / (mid * mid), 2.0 / mid, error, down(1.0 / high), up(1.0 / low))
    put_product(m, z, x, work)
    if not math.isnan(a + b + c + d):
        bottom = down(min(min(a, b), min(c, d)))
        top = up(max(max(a, b), max(c, d)))
        settle(m, z, max(m[z, LOW], bottom), min(m[z, HIGH], top))


@njit_in_place
def put_single(m: Floats, z: int, x: int) -> None:
    """Set row z to x, rounded to single precision or not; z may be x."""
    size = abs(m[x, C]) + spread(m, x)
    low = m[x, LOW]
    high = m[x, HIGH]
    if not (low > -SINGLE_MOST and high < SINGLE_MOST):
        put_unknown(m, z)
        return
    copy_row(m, z, x)
    m[z, R] += SINGLE_EPS * size + SINGLE_TINY
    low = low - SINGLE_EPS * abs(low) - SINGLE_TINY
    high = high + SINGLE_EPS * abs(high) + SINGLE_TINY
    settle(m, z, low, high)


@njit_in_place
def put_hull(m: Floats, z: int, x: int) -> None:
    """Widen row z to hold x as well."""
    apart = 0.5 * abs(m[z, C] - m[x, C])
    size = abs(m[z, C]) + abs(m[x, C])
    for k in range(A, m.shape[1]):
        apart += 0.5 * abs(m[z, k] - m[x, k])
        size += abs(m[z, k]) + abs(m[x, k])
        m[z, k] = 0.5 * (m[z, k] + m[x, k])
    m[z, C] = 0.5 * (m[z, C] + m[x, C])
    m[z, R] = apart + max(m[z, R], m[x, R])
    add_slack(m, z, size + m[z, R])
    settle(m, z, min(m[z, LOW], m[x, LOW]), max(m[z, HIGH], m[x, HIGH]))
