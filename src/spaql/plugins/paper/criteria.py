"""The criteria by which the paper's claims are judged: each turns numbers into a finding on one sentence.

They are the same for all claims of a kind and for every study, and are printed with every verdict. A claim of
several parts is judged part by part. They were not chosen blindly: the final results of the study with the
authors' rules were known at that time, its returns at equal numbers of samples were not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.plugins.sweeps.table import interval, number_cell
from spaql.stats import mean_ci95, welch, wilson_ci95

Floats = NDArray[np.float64]

VERDICTS = ("agrees", "in part", "does not agree", "cannot tell")


@dataclass(frozen=True)
class Finding:
    """The finding on one part of a claim."""

    text: str
    holds: bool | None
    """None if the data cannot decide."""


def verdict(findings: Sequence[Finding]) -> str:
    """Return the verdict on a claim from the findings on its parts.

    It agrees if all parts hold, and in part if some do; it does not agree if none holds and one is
    contradicted, and else the data cannot tell.

    Examples
    --------
    >>> verdict([Finding("a", True), Finding("b", None)]), verdict([Finding("a", False), Finding("b", None)])
    ('in part', 'does not agree')
    >>> verdict([Finding("a", None)])
    'cannot tell'
    """
    found = [finding.holds for finding in findings]
    if found and all(found):
        return "agrees"
    if any(found):
        return "in part"
    return "does not agree" if False in found else "cannot tell"


def number(name: str, ours: Floats, published: tuple[float, float]) -> Finding:
    """Compare a mean with a published one, given with the half-width of its interval."""
    mean, half = mean_ci95(ours)
    return _near(name, mean, half, *published)


def about(name: str, wanted: float, low: float, high: float) -> Finding:
    """Compare a difference, given by its interval, with a number that the paper calls approximate."""
    return _near(name, (low + high) / 2, (high - low) / 2, wanted, 0.05 * abs(wanted))


def _near(name: str, mean: float, half: float, wanted: float, tolerance: float) -> Finding:
    apart = abs(mean - wanted)
    holds: bool | None = apart <= max(half, tolerance)
    if holds and not half <= abs(wanted) / 5:
        holds = None
    return Finding(f"{name} {interval(mean, half)}", holds)


def better(name: str, a: Floats, b: Floats) -> Finding:
    """Return whether a is better than b on average; `name` names the difference."""
    test = welch(a, b)
    text = f"{name} {number_cell(test.difference)}"
    if math.isnan(test.p):
        return Finding(f"{text} (no spread)", None)
    return Finding(
        f"{text} ({number_cell(test.low)} to {number_cell(test.high)})",
        True if test.low > 0 else False if test.high < 0 else None,
    )


def not_significant(name: str, a: Floats, b: Floats) -> Finding:
    """Return whether the difference of the means of a and b is not significant in Welch's test."""
    test = welch(a, b)
    text = f"{name} {number_cell(test.difference)}"
    if math.isnan(test.p):
        return Finding(f"{text} (no spread)", True if test.difference == 0 else None)
    p = f"p = {test.p:.0e}" if test.p < 0.001 else f"p = {test.p:.3f}"
    return Finding(f"{text} ({number_cell(test.low)} to {number_cell(test.high)}, {p})", test.p >= 0.05)


def small(name: str, effect: float, gap: float) -> Finding:
    """Return whether an effect is less than half of a difference, the gap."""
    return Finding(f"{name} {number_cell(effect)}", abs(effect) < gap / 2)


def at_least(name: str, ours: Floats, least: float) -> Finding:
    """Return whether a mean, with its whole interval, is at least `least`."""
    mean, half = mean_ci95(ours)
    holds = True if mean - half >= least else False if mean + half < least else None
    return Finding(f"{name} {interval(mean, half)}", holds)


def share(name: str, ours: tuple[int, int], published: tuple[int, int]) -> Finding:
    """Compare a number of successes, given with the number of trials, with a published one."""
    holds = any(
        low <= other[0] / other[1] <= high
        for (low, high), other in ((wilson_ci95(*ours), published), (wilson_ci95(*published), ours))
    )
    return Finding(f"{name} {ours[0]} of {ours[1]}", holds)
