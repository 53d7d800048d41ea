"""Formatting of numbers for people."""

import math
import signal
from collections.abc import Iterable

_NEGLIGIBLE = 1e-6
"""An interval below this share of its mean counts as rounding: all values are equal."""
_LARGE = 1e6
"""From here on numbers are rounded before the decimal point."""
_HUGE, _TINY = 1e15, 9
"""From here on, and beyond this many decimal places, numbers have an exponent."""
_PLURALS = {"leaf": "leaves", "try": "tries"}
"""Irregular plurals."""


def counted(count: float, one: str, digits: int = 0) -> str:
    """Return a count with its noun, singular or plural.

    Examples
    --------
    >>> counted(1, "leaf"), counted(1307, "arm"), counted(1.5, "leaf", digits=1)
    ('1 leaf', '1,307 arms', '1.5 leaves')
    """
    word = one if count == 1 else _PLURALS.get(one, f"{one}s")
    return f"{count:,.{digits}f} {word}"


def process_end(code: int) -> str:
    """Return how a process ended, by its exit code, which is negative for a signal.

    Examples
    --------
    >>> process_end(3), process_end(-11)
    ('exit code 3', 'SIGSEGV, Segmentation fault')
    """
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"{signal.Signals(-code).name}, {signal.strsignal(-code)}"
    except ValueError:
        return f"signal {-code}"


def short(state: Iterable[float]) -> str:
    """Return the numbers of a state with four significant digits each.

    Examples
    --------
    >>> short([0.99971, -2.0, 0.00012345])
    '[0.9997, -2, 0.0001234]'
    """
    return f"[{', '.join(f'{x:.4g}' for x in state)}]"


def exact(x: float) -> str:
    """Return a number as a short text that is read as the same number.

    Examples
    --------
    >>> exact(2.0), exact(0.1), exact(1 / 3)
    ('2', '0.1', '0.3333333333333333')
    """
    short = f"{x:g}"
    return short if float(short) == x else repr(x)


def with_interval(mean: float, half: float) -> str:
    """Return a mean with the half-width of its interval, with as many digits as are significant.

    If the half-width is NaN, as for a single value, the mean alone is returned.

    Examples
    --------
    >>> with_interval(-146.42, 18.13), with_interval(0.0012, 0.0004), with_interval(-12345678.9, 1234567.8)
    ('-146.4 ± 18.1', '0.0012 ± 0.0004', '-12,350,000 ± 1,230,000')
    >>> with_interval(-146.42, math.nan)
    '-146.4'
    """
    digits = places(mean, half)
    if math.isnan(half):
        return number(mean, digits)
    return f"{number(mean, digits)} ± {number(half, digits)}"


def number(value: float, digits: int) -> str:
    """Return a number with some decimal places; negative ones round before the decimal point.

    Examples
    --------
    >>> number(1234.56, 1), number(1234567.0, -3), number(1.5e-12, 13)
    ('1234.6', '1,235,000', '1.5e-12')
    """
    if not math.isfinite(value):
        return str(value)
    if digits > _TINY or abs(value) >= _HUGE:
        return f"{value:.3g}"
    return f"{value:.{digits}f}" if digits > 0 else f"{round(value, digits):,.0f}"


def places(mean: float, half: float = 0.0) -> int:
    """Return the decimal places that a number needs, given the half-width of its interval, if any.

    One at the scale of most returns; more where one would print 0.0, negative for millions. Numbers that are
    compared, such as quantiles and their mean, have the same.

    Examples
    --------
    >>> places(-146.42, 18.13), places(0.0012, 0.0004), places(97.62, 0.03), places(0.5)
    (1, 4, 2, 1)
    """
    size = abs(mean)
    if not math.isfinite(size):
        return 1
    spread = math.isfinite(half) and half > _NEGLIGIBLE * size
    if max(size, half if spread else 0.0) >= _LARGE:
        return min(0, 2 - math.floor(math.log10(half))) if spread else 0
    if spread and (size < 1 or half < 0.05):
        return max(1, -math.floor(math.log10(half)))
    if not spread and 0 < size < 1:
        return next(n for n in range(1, 400) if abs(round(size, n) - size) <= 0.01 * size)
    return 1


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a time is printed, s, min or h, and its length in seconds.

    Examples
    --------
    >>> time_unit(90.0), time_unit(600.0), time_unit(7200.0)
    ((1.0, 's'), (60.0, 'min'), (3600.0, 'h'))
    """
    if abs(seconds) < 120.0:
        return 1.0, "s"
    return (60.0, "min") if abs(seconds) < 7200.0 else (3600.0, "h")


def duration(seconds: float) -> str:
    """Return a time with three significant digits, in s, min or h.

    Examples
    --------
    >>> duration(0.04), duration(119.0), duration(150.0), duration(7200.0), duration(360000.0)
    ('0.04 s', '119 s', '2.5 min', '2 h', '100 h')
    """
    length, unit = time_unit(seconds)
    return f"{seconds / length:.3g} {unit}"


def range_text(low: float, high: float, *, wider: bool) -> str:
    """Return a range with up to four significant digits each, rounded outwards if `wider`, else inwards.

    What is promised is printed wider, what is assumed narrower: the printed sentence then follows from the
    exact one. A range that would become empty inwards has more digits.

    Examples
    --------
    >>> range_text(-1.00045, 1.00045, wider=True), range_text(-1.00045, 1.00045, wider=False)
    ('-1.001 to 1.001', '-1 to 1')
    >>> range_text(0.1, math.inf, wider=True), range_text(1.00041, 1.00042, wider=False)
    ('0.1 to inf', '1.00041 to 1.00042')
    """
    from decimal import ROUND_CEILING, ROUND_FLOOR, Context  # the help, which imports this, need not wait

    for digits in range(4, 18):
        down = Context(digits, ROUND_FLOOR)
        up = Context(digits, ROUND_CEILING)
        first = float((down if wider else up).create_decimal(repr(float(low))))
        last = float((up if wider else down).create_decimal(repr(float(high))))
        if first <= last and (wider or first < last or low == high):
            break
    return f"{first:.{digits}g} to {last:.{digits}g}"
