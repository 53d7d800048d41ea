"""Why this action? What a policy can say of one observation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SettingError
from spaql.policy.text import number_text

Floats = NDArray[np.float64]
DIGITS = 4


@dataclass(frozen=True)
class Candidate:
    """Actions that share a ball of the partition, and what is known of them."""

    actions: str
    q: float
    visits: int


@dataclass(frozen=True)
class Deed:
    """What is done for one observation."""

    action: str
    """In words."""
    value: tuple[float, ...]
    """In numbers, as the environment takes them."""
    law: str = ""
    """What they are computed by, if they depend on where in its leaf the observation lies."""


@dataclass(frozen=True)
class Change:
    """A boundary at which another action begins, if one number of the observation moves and no other."""

    observation: str
    by: float
    to: float
    action: str
    """What is done beyond; by a law, what it begins with."""
    value: tuple[float, ...]
    """The same in numbers."""
    law: str
    """What is done by beyond, if the action is not the same all over that leaf."""

    def __str__(self) -> str:
        verb, to_where = ("rose", "to") if self.by > 0 else ("fell", "below")
        by, to = number_text(abs(self.by), DIGITS), number_text(self.to, DIGITS)
        return f"{self.action}, if {self.observation} {verb} by {by}, {to_where} {to}"


@dataclass(frozen=True)
class Explanation:
    """What is done for an observation, the rule that says so, and how near another action is."""

    observation: dict[str, float]
    outside: tuple[str, ...]
    """Which of its numbers the environment never gives, and what they lie between otherwise."""
    action: str
    value: tuple[float, ...]
    """The action in numbers, as the environment takes it."""
    law: str
    """What computes the action, if it is not the same all over the leaf."""
    leaf: str
    """Which leaf was reached."""
    conditions: tuple[str, ...]
    """What the rule asks; none if there is one leaf."""
    candidates: tuple[Candidate, ...]
    """The actions to choose from, best first, for a policy that keeps their values."""
    changes: tuple[Change, ...]
    """Of each number that can change the action alone, the nearest boundary at which it does; the nearest of
    all first. Of laws, boundaries at which another one begins, with an action other than the one played."""

    def __str__(self) -> str:
        lines = [f"{name} = {number_text(x, DIGITS)}" for name, x in self.observation.items()]
        lines += _block("beware", self.outside)
        lines += ["", *_block("does", [self.action])]
        lines += _block("by", [self.law] if self.law else [])
        everywhere = f"the same {'law holds' if self.law else 'is done'} everywhere"
        lines += _block("because", [*(self.conditions or (everywhere,)), f"({self.leaf})"])
        if self.candidates:
            width = max(len(candidate.actions) for candidate in self.candidates)
            lines += _block(
                "choices",
                [
                    f"{c.actions:{width}}  Q = {number_text(c.q, DIGITS)}, {c.visits:,} visits"
                    for c in self.candidates
                ],
            )
        what = "no other law that begins with another action" if self.law else "nothing"
        nothing = f"{what}, whichever number changes alone"
        nearest = [str(change) for change in self.changes]
        return "\n".join(lines + _block("instead", nearest or [nothing]))


def _block(word: str, rows: Sequence[str]) -> list[str]:
    return [f"{word if i == 0 else '':8} {row}" for i, row in enumerate(rows)]


def observed(observation: object, names: Sequence[str]) -> tuple[Floats, dict[str, float]]:
    """Bring one observation into numbers with names; anything else is refused."""
    point = np.asarray(observation, np.float64).ravel()
    if len(point) != len(names):
        raise SettingError(f"An observation has {len(names)} numbers ({', '.join(names)}), not {len(point)}.")
    if np.isnan(point).any():
        raise BadEnvironmentError(f"The observation holds NaN: {point}.")
    return point, dict(zip(names, point.tolist(), strict=True))


def conditions(
    low: Floats, high: Floats, names: Sequence[str], digits: int | None = DIGITS
) -> tuple[str, ...]:
    """Say what lies in a box, `low <= x < high`; dimensions without bounds are left out."""
    said = []
    for name, first, last in zip(names, low.tolist(), high.tolist(), strict=True):
        left = "" if first == -math.inf else f"{number_text(first, digits)} <= "
        right = "" if last == math.inf else f" < {number_text(last, digits)}"
        if left or right:
            said.append(f"{left}{name}{right}")
    return tuple(said)


def explain_cell(
    point: Floats,
    named: dict[str, float],
    low: Floats,
    high: Floats,
    leaf: str,
    cuts: Sequence[Floats],
    space: Box | Discrete,
    which: Callable[[Floats], NDArray[Any]],
    play: Callable[[Floats], NDArray[Any]],
    do: Callable[[Floats], Deed],
    candidates: tuple[Candidate, ...] = (),
) -> Explanation:
    """Explain what is done in the cell of an observation.

    Parameters
    ----------
    point, named
        The observation (see `observed`).
    low, high, leaf
        The bounds of its cell, and what the cell is called.
    cuts
        Where cells may end, in each dimension.
    space
        Of the observations.
    which
        Tells apart what the action comes from, such as the law of a leaf, one row an observation.
    play
        Gives the actions that are played, one row an observation.
    do
        Gives what is done for one observation.
    candidates
        What there is to choose from.
    """
    deed, names = do(point), list(named)
    law, played = (of(point[np.newaxis]) for of in (which, play))
    changes = []
    for j, row in enumerate(cuts):
        inside = row[(row > _low(space, j)) & (row <= _high(space, j))]
        if not len(inside):
            continue
        # The last number under a cut is below it, the cut itself is above.
        targets = np.where(inside > point[j], inside, np.nextafter(inside, -np.inf))
        beyond = np.repeat(point[np.newaxis], len(targets), axis=0)
        beyond[:, j] = targets
        # Another law may be cut to the same action, or give one that reads the same.
        other = np.any(which(beyond) != law, axis=1) & np.any(play(beyond) != played, axis=1)
        for i in sorted(np.flatnonzero(other), key=lambda i: abs(inside[i] - point[j])):
            new = do(beyond[i])
            if new.action != deed.action:
                by, to = float(inside[i] - point[j]), float(inside[i])
                way = abs(by) / (float(np.ptp(inside)) or 1.0)  # of the way from the first cut to the last
                changes.append((way, j, Change(names[j], by, to, new.action, new.value, new.law)))
                break
    return Explanation(
        observation=named,
        outside=_outside(named, space),
        action=deed.action,
        value=deed.value,
        law=deed.law,
        leaf=leaf,
        conditions=conditions(low, high, names),
        candidates=candidates,
        changes=tuple(change for *_, change in sorted(changes, key=lambda one: one[:2])),
    )


def _outside(named: dict[str, float], space: Box | Discrete) -> tuple[str, ...]:
    """Say which numbers of an observation lie out of its space; what float32 rounds to an end is inside."""
    said = []
    for j, (name, x) in enumerate(named.items()):
        low, high = _low(space, j), _high(space, j)
        if not low <= np.float32(x) <= high:
            ends = f"{number_text(low, DIGITS)} to {number_text(high, DIGITS)}"
            said.append(f"{name} is never {number_text(x, DIGITS)}: its range is {ends}")
    return tuple(said)


def _low(space: Box | Discrete, j: int) -> float:
    return float(space.low.ravel()[j]) if isinstance(space, Box) else float(space.start)


def _high(space: Box | Discrete, j: int) -> float:
    return float(space.high.ravel()[j]) if isinstance(space, Box) else float(space.start + space.n - 1)
