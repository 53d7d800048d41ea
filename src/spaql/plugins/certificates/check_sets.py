"""Sets for the checker of certificates: affine forms over many boxes at once, in NumPy.

This is a second implementation, by other means than the prover's, and imports nothing of it. A set holds
c + sum(g[k] * e[k]) + r * e0 for all e in [-1, 1], cut to the interval [lo, hi]; each is an array over boxes.
A set without finite bounds may also be infinite or NaN, and so may all that is computed from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_EPS = 2.0**-52
_TINY = 1e-290
_SINGLE = 2.0**-23
_SINGLE_MOST = 3.4e38


def _below(x: Floats) -> Floats:
    return np.nextafter(x - 2 * _EPS * np.abs(x), -np.inf)


def _above(x: Floats) -> Floats:
    return np.nextafter(x + 2 * _EPS * np.abs(x), np.inf)


@dataclass
class Sets:
    """One number on many boxes."""

    c: Floats
    g: Floats
    """Symbols × boxes."""
    r: Floats
    lo: Floats
    hi: Floats

    @property
    def spread(self) -> Floats:
        """Bounds of r + sum |g|."""
        return np.asarray((self.r + np.abs(self.g).sum(axis=0)) * (1 + 1e-13) + _TINY)

    @property
    def known(self) -> Mask:
        """Where it is a number, neither infinite nor NaN."""
        return np.isfinite(self.lo) & np.isfinite(self.hi)

    def taken(self, chosen: NDArray[np.int64] | Mask) -> Sets:
        """Return the sets of some boxes."""
        return Sets(self.c[chosen], self.g[:, chosen], self.r[chosen], self.lo[chosen], self.hi[chosen])


def joined(several: Sequence[Sets]) -> Sets:
    """Return the sets of some boxes and of others in one."""
    names = ("c", "g", "r", "lo", "hi")
    return Sets(*(np.concatenate([getattr(x, name) for x in several], axis=-1) for name in names))


def interval(lo: Floats, hi: Floats, symbols: int) -> Sets:
    """Return sets that are intervals, without symbols; anything where they are none."""
    bad = ~((lo <= hi) & np.isfinite(lo) & np.isfinite(hi))
    lo = np.where(bad, -np.inf, lo)
    hi = np.where(bad, np.inf, hi)
    c = np.where(bad, 0.0, 0.5 * np.where(bad, 0.0, lo) + 0.5 * np.where(bad, 0.0, hi))
    r = np.where(bad, np.inf, _above(_above(np.maximum(hi - c, c - lo))))
    return Sets(c, np.zeros((symbols, len(c))), r, lo, hi)


def anything(like: Sets) -> Sets:
    """Return sets of all numbers, infinities and NaN included, on as many boxes."""
    everywhere = np.full_like(like.lo, np.inf)
    return interval(-everywhere, everywhere, len(like.g))


def of_known(found: Sets, *operands: Sets) -> Sets:
    """Return a set, anything where an operand is not known: min, max, sin or % of NaN may be NaN."""
    known = np.all([x.known for x in operands], axis=0)
    return found if known.all() else where(known, found, anything(found))


def settled(c: Floats, g: Floats, r: Floats, size: Floats, lo: Floats, hi: Floats) -> Sets:
    """Return sets with a form, whose rounding errors are those of terms of a size, cut to intervals."""
    r = r + 32 * _EPS * size + _TINY
    total = (r + np.abs(g).sum(axis=0)) * (1 + 1e-13) + _TINY
    form_lo = _below(c - total)
    form_hi = _above(c + total)
    known = np.isfinite(form_lo) & np.isfinite(form_hi)
    lo = np.where(lo <= hi, lo, -np.inf)
    hi = np.where(lo <= hi, hi, np.inf)
    lo = np.where(known, np.fmax(lo, form_lo), lo)
    hi = np.where(known, np.fmin(hi, form_hi), hi)
    plain = ~known | (hi - lo < 1.9 * r)
    boxes = interval(lo, hi, len(g))
    return Sets(
        np.where(plain, boxes.c, c),
        np.where(plain, 0.0, g),
        np.where(plain, boxes.r, r),
        np.where(plain, boxes.lo, lo),
        np.where(plain, boxes.hi, hi),
    )


def constant(value: float, like: Sets) -> Sets:
    """Return a constant on as many boxes."""
    full = np.full(len(like.c), value)
    return Sets(full, np.zeros_like(like.g), np.zeros_like(full), full, full)


def added(x: Sets, y: Sets, sign: float = 1.0) -> Sets:
    """Return x + y, or x - y."""
    size = np.abs(x.c) + np.abs(y.c) + x.spread + y.spread
    lo, hi = (x.lo + y.lo, x.hi + y.hi) if sign > 0 else (x.lo - y.hi, x.hi - y.lo)
    least = np.where((sign > 0) & (x.lo >= 0) & (y.lo >= 0), 0.0, -np.inf)  # as for sqrt(x * x + y * y)
    lo = np.maximum(_below(lo), least)
    return settled(x.c + sign * y.c, x.g + sign * y.g, x.r + y.r, size, lo, _above(hi))


def negated(x: Sets) -> Sets:
    """Return -x."""
    return Sets(-x.c, -x.g, x.r, -x.hi, -x.lo)


def affine(x: Sets, slope: Floats, shift: Floats, error: Floats, lo: Floats, hi: Floats) -> Sets:
    """Return slope * x + shift, within an error."""
    size = np.abs(slope) * (np.abs(x.c) + x.spread) + np.abs(shift) + error + _EPS
    return settled(slope * x.c + shift, slope * x.g, np.abs(slope) * x.r + error, size, lo, hi)


def multiplied(x: Sets, y: Sets) -> Sets:
    """Return x * y."""
    sx = x.spread
    sy = y.spread
    corners = np.stack([x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi])
    lo = _below(corners.min(axis=0))
    hi = _above(corners.max(axis=0))
    size = (np.abs(x.c) + sx) * (np.abs(y.c) + sy)
    r = np.abs(x.c) * y.r + np.abs(y.c) * x.r + sx * sy
    return settled(x.c * y.c, x.c * y.g + y.c * x.g, r, size, lo, hi)


def squared(x: Sets) -> Sets:
    """Return x * x."""
    s = x.spread
    ends = np.stack([x.lo * x.lo, x.hi * x.hi])
    lo = np.where((x.lo <= 0) & (x.hi >= 0), 0.0, np.maximum(_below(ends.min(axis=0)), 0.0))
    r = 2 * np.abs(x.c) * x.r + 0.5 * s * s
    size = (np.abs(x.c) + s) ** 2
    return settled(x.c * x.c + 0.5 * s * s, 2 * x.c * x.g, r, size, lo, _above(ends.max(axis=0)))


def divided(x: Sets, y: Sets) -> Sets:
    """Return x / y, anything where y may be 0."""
    apart = (y.lo > 0) | (y.hi < 0)
    lo = np.where(apart, y.lo, 1.0)
    hi = np.where(apart, y.hi, 1.0)
    mid = 0.5 * (lo + hi)
    half = _above(0.5 * (hi - lo))
    least = np.minimum(np.abs(lo), np.abs(hi))
    error = half * half / least**3 * (1 + 1e-12) + 64 * _EPS / least
    inverse = affine(y, -1 / (mid * mid), 2 / mid, error, _below(1 / hi), _above(1 / lo))
    found = multiplied(x, inverse)
    corners = np.stack([x.lo / lo, x.lo / hi, x.hi / lo, x.hi / hi])
    low = np.where(apart, np.fmax(found.lo, _below(corners.min(axis=0))), -np.inf)
    high = np.where(apart, np.fmin(found.hi, _above(corners.max(axis=0))), np.inf)
    quotient = settled(found.c, found.g, np.where(apart, found.r, np.inf), np.zeros_like(mid), low, high)
    return of_known(quotient, x, y)


def larger(x: Sets, y: Sets) -> Sets:
    """Return max(x, y): one of them where it is clear, else y + max(x - y, 0) by a chord."""
    first = x.lo >= y.hi
    second = y.lo >= x.hi
    d = added(x, y, -1.0)
    a = np.minimum(d.lo, -_TINY)
    b = np.maximum(d.hi, _TINY)
    slope = b / (b - a)
    gap = _above(_above(slope * -a))
    chord = affine(d, slope, 0.5 * gap, 0.5 * gap * (1 + 1e-14), np.zeros_like(a), _above(b))
    both = added(chord, y)
    lo = np.maximum(x.lo, y.lo)
    hi = np.maximum(x.hi, y.hi)
    both = settled(both.c, both.g, both.r, np.zeros_like(a), np.fmax(both.lo, lo), np.fmin(both.hi, hi))
    return of_known(where(first, x, where(second, y, both)), x, y)


def where(mask: Mask, x: Sets, y: Sets) -> Sets:
    """Return the sets of x where a mask is set, those of y elsewhere."""
    pairs = ((x.c, y.c), (x.g, y.g), (x.r, y.r), (x.lo, y.lo), (x.hi, y.hi))
    return Sets(*(np.where(mask, a, b) for a, b in pairs))


def wave(x: Sets, function: Callable[[Floats], Floats], phase: float) -> Sets:
    """Return the sine or cosine; its extremes are at phase + pi k."""
    wide = ~((np.abs(x.lo) < 1e5) & (np.abs(x.hi) < 1e5)) | (x.hi - x.lo > 3.0)
    a = np.where(wide, 0.0, x.lo)
    b = np.where(wide, 0.0, x.hi)
    first = function(a)
    last = function(b)
    lo = np.minimum(first, last) - 8 * _EPS
    hi = np.maximum(first, last) + 8 * _EPS
    for k in (0, 1):  # sin has its maxima at pi / 2 + 2 pi k, and its minima half a turn later
        at = phase + k * math.pi
        holds = np.ceil((a - 1e-8 - at) / math.tau) * math.tau + at <= b + 1e-8
        hi = np.where(holds & (k == 0), 1.0, hi)
        lo = np.where(holds & (k == 1), -1.0, lo)
    lo = np.where(wide, -1.0, np.maximum(lo, -1.0))
    hi = np.where(wide, 1.0, np.minimum(hi, 1.0))
    mid = 0.5 * (a + b)
    half = _above(0.5 * (b - a))
    value = function(mid)
    slope = function(mid + math.pi / 2)
    error = 0.5 * half * half * np.maximum(np.abs(lo), np.abs(hi)) * (1 + 1e-13)
    error += 64 * _EPS * (1 + np.abs(mid)) * (1 + half)
    form = affine(x, slope, value - slope * mid, error, lo, hi)
    return of_known(where(wide, interval(lo, hi, len(x.g)), form), x)


def rising(
    x: Sets,
    function: Callable[[Floats], Floats],
    slope_of: Callable[[Floats, Floats], Floats],
    bend_of: Callable[[Floats, Floats], Floats],
    least: float = -math.inf,
    most: float = math.inf,
) -> Sets:
    """Return an ascending function, by its tangent and a bound of the second derivative over [lo, hi].

    It is anything where the argument may be outside of `least` and `most`.
    """
    allowed = (x.lo >= least) & (x.hi <= most) & x.known
    lo = np.where(allowed, x.lo, 1.0)
    hi = np.where(allowed, x.hi, 1.0)
    first = function(lo)
    last = function(hi)
    low = first - 8 * _EPS * np.abs(first) - _TINY
    high = last + 8 * _EPS * np.abs(last) + _TINY
    mid = 0.5 * (lo + hi)
    half = _above(0.5 * (hi - lo))
    value = function(mid)
    slope = slope_of(mid, value)
    error = 0.5 * half * half * bend_of(lo, hi) * (1 + 1e-12)
    error += 64 * _EPS * (np.abs(value) + (1 + np.abs(slope)) * (np.abs(mid) + half))
    known = np.isfinite(error) & np.isfinite(slope)
    slope = np.where(known, slope, 0.0)
    error = np.where(known, error, np.inf)
    form = affine(x, slope, value - slope * mid, error, low, high)
    found = where(known, form, interval(low, high, len(x.g)))
    return where(allowed, found, anything(x))


def rounded(x: Sets) -> Sets:
    """Return x, rounded to single precision or not."""
    size = np.abs(x.c) + x.spread
    lo, hi = (end + sign * (_SINGLE * np.abs(end) + 1e-44) for end, sign in ((x.lo, -1), (x.hi, 1)))
    lo = np.where(lo > -_SINGLE_MOST, lo, -np.inf)
    hi = np.where(hi < _SINGLE_MOST, hi, np.inf)
    found = settled(x.c, x.g, x.r + _SINGLE * size + 1e-44, size, lo, hi)
    inside = np.isfinite(lo) & np.isfinite(hi)
    return where(inside, found, interval(lo, hi, len(x.g)))


def widened(x: Sets, by: float) -> Sets:
    """Return x with an error of up to a bound."""
    by = by * (1 + 1e-12)
    return settled(x.c, x.g, x.r + by, np.abs(x.c), _below(x.lo - by), _above(x.hi + by))


def remainder(x: Sets, period: float, *, signed: bool) -> Sets:
    """Return x % period, or the remainder of C, which has the sign of x."""
    if signed:
        first = np.where(
            x.lo >= 0, np.maximum(np.floor(x.lo / period - 1e-8), 0), np.ceil(x.lo / period - 1e-8)
        )
        last = np.where(
            x.hi >= 0, np.floor(x.hi / period + 1e-8), np.minimum(np.ceil(x.hi / period + 1e-8), 0)
        )
        lo = np.where(x.lo < 0, -period, 0.0)
        hi = np.where(x.hi > 0, period, 0.0)
    else:
        first = np.floor(x.lo / period - 1e-8)
        last = np.floor(x.hi / period + 1e-8)
        lo = np.zeros_like(x.lo)
        hi = np.full_like(x.hi, period * (1 + 4 * _EPS))
    same = (first == last) & (np.abs(first) < 1e6)
    shift = np.where(same, -first * period, 0.0)
    form = affine(x, np.ones_like(lo), shift, 16 * _EPS * (np.abs(shift) + period), lo, hi)
    return of_known(where(same, form, interval(lo, hi, len(x.g))), x)


def table_value(x: Sets, points: Floats, values: Floats) -> Sets:
    """Return the value of a table that is linear between its points, by its least and most rise."""
    known = x.known
    lo = np.where(known, x.lo, 0.0)
    hi = np.where(known, x.hi, 0.0)
    first = np.interp(lo, points, values)
    last = np.interp(hi, points, values)
    inside = (points[:, None] > lo) & (points[:, None] < hi)
    at = np.where(inside, values[:, None], first)
    bottom = np.minimum(at.min(axis=0), last)
    top = np.maximum(at.max(axis=0), last)
    slope = np.where(hi > lo, (last - first) / np.where(hi > lo, hi - lo, 1.0), 0.0)
    gaps = np.where(inside, values[:, None] - (first + slope * (points[:, None] - lo)), 0.0)
    above = np.maximum(gaps.max(axis=0), 0.0)
    below = np.minimum(gaps.min(axis=0), 0.0)
    steep = np.abs(np.diff(values) / np.diff(points)).max() if len(points) > 1 else 0.0
    reach = np.abs(lo) + np.abs(hi) + np.abs(points).max()
    slack = 64 * _EPS * (np.abs(values).max() + (steep + np.abs(slope)) * reach) + _TINY
    shift = first - slope * lo + 0.5 * (above + below)
    form = affine(x, slope, shift, 0.5 * (above - below) + slack, bottom - slack, top + slack)
    return of_known(form, x)


def angle(y: Sets, x: Sets) -> Sets:
    """Return atan2(y, x) as an interval: on a box without the origin it has its extremes at corners."""
    clear = (x.lo > 0) | (y.lo > 0) | (y.hi < 0)
    corners = np.stack([np.arctan2(v, u) for v in (y.lo, y.hi) for u in (x.lo, x.hi)])
    most = math.pi * (1 + 4 * _EPS)
    lo = np.where(clear, corners.min(axis=0) - 64 * _EPS, -most)
    hi = np.where(clear, corners.max(axis=0) + 64 * _EPS, most)
    return of_known(interval(lo, hi, len(x.g)), y, x)


def narrowed(g: Sets, ranges: Floats) -> tuple[Floats, Mask]:
    """Return the ranges of the symbols where g <= 0 is possible, 2 × symbols × boxes, and where it is."""
    ranges = ranges.copy()
    size = np.abs(g.c) + g.spread
    slack = 256 * _EPS * size
    ends = np.stack([g.g * ranges[0], g.g * ranges[1]])
    least = ends.min(axis=0)
    total = g.c - g.r + least.sum(axis=0)
    possible = (g.lo <= 0) & ~(total > slack)
    usable = np.isfinite(g.r) & (g.hi > 0)
    for k in range(len(g.g)):
        slope = g.g[k]
        room = (least[k] - total + slack) / np.where(slope == 0, 1.0, slope)
        room = room + np.sign(slope) * 16 * _EPS * (1 + np.abs(room))
        ranges[1, k] = np.where(usable & (slope > 0), np.minimum(ranges[1, k], room), ranges[1, k])
        ranges[0, k] = np.where(usable & (slope < 0), np.maximum(ranges[0, k], room), ranges[0, k])
    return ranges, possible & (ranges[0] <= ranges[1]).all(axis=0)


def replaced(x: Sets, ranges: Floats) -> Sets:
    """Return x with its symbols replaced by others that range over [-1, 1] where they did over `ranges`."""
    mid = 0.5 * (ranges[0] + ranges[1])
    half = 0.5 * (ranges[1] - ranges[0]) * (1 + 16 * _EPS) + 16 * _EPS
    whole = (ranges[0] <= -1) & (ranges[1] >= 1)
    mid = np.where(whole, 0.0, mid)
    half = np.where(whole, 1.0, half)
    size = np.where(whole.all(axis=0), 0.0, np.abs(x.c) + x.spread)
    return settled(x.c + (x.g * mid).sum(axis=0), x.g * half, x.r, size, x.lo, x.hi)
