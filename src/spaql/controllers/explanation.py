"""Explanations of the action for one observation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.controllers.arrays import copied_nodes
from spaql.controllers.mirrored import folded
from spaql.controllers.rules import Lock, bisect
from spaql.controllers.text import leaf_text
from spaql.controllers.wording import number_text, values_text
from spaql.errors import BadEnvironmentError, SettingError
from spaql.kernels.controller import LEAF, LEFT, PARENT, RIGHT
from spaql.kernels.numerics import Floats
from spaql.spaces import space_bounds

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller

DIGITS = 4
_ROUNDING = 1e-11
"""More than the relative error of a boundary that is computed from sums."""


@dataclass(frozen=True)
class Candidate:
    """Actions that share a ball of the partition, with its Q and visits."""

    actions: str
    q: float
    visits: int


@dataclass(frozen=True)
class ExplainedAction:
    """The action for one observation."""

    action: str
    """As text."""
    value: tuple[float, ...]
    """As numbers, as the environment takes them."""
    law: str = ""
    """The law that computes them, if they vary within the leaf."""


@dataclass(frozen=True)
class Change:
    """A boundary beyond which the action is another one, if only one number of the observation changes."""

    observation: str
    by: float
    to: float
    action: str
    """The action beyond the boundary; of a law, the one at the boundary."""
    value: tuple[float, ...]
    """The same in numbers."""
    law: str
    """The law beyond the boundary, if the action varies within that leaf."""

    def __str__(self) -> str:
        verb, to_where = ("rose", "to") if self.by > 0 else ("fell", "below")
        # Of a boundary at 0 that is computed from other numbers, a rounding error remains.
        place = 0.0 if abs(self.to) < 1e-12 * abs(self.by) else self.to
        by = number_text(abs(self.by), DIGITS)
        to = number_text(place, DIGITS)
        return f"{self.action}, if {self.observation} {verb} by {by}, {to_where} {to}"


@dataclass(frozen=True)
class Explanation:
    """The action for an observation, the rule that leads to it, and the nearest other actions."""

    observation: dict[str, float]
    outside: tuple[str, ...]
    """Numbers that lie outside the observation space, each with its range."""
    action: str
    value: tuple[float, ...]
    """The action as numbers, as the environment takes it."""
    law: str
    """The law that computes the action, if it varies within the leaf."""
    leaf: str
    """The leaf that was reached."""
    conditions: tuple[str, ...]
    """The conditions of the rule; none if there is one leaf."""
    candidates: tuple[Candidate, ...]
    """The actions to choose from, best first, for a policy with action values."""
    changes: tuple[Change, ...]
    """For each number that can change the action alone, the nearest boundary at which it does, sorted by
    distance. For affine laws, boundaries to another law whose action differs from the current one."""
    listed: bool = True
    """Whether the action is one of a list; otherwise it may vary without a boundary."""

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
        what = "no other law that begins with another action" if self.law and not self.listed else "nothing"
        nothing = f"{what}, whichever number changes alone"
        nearest = [str(change) for change in self.changes]
        return "\n".join(lines + _block("instead", nearest or [nothing]))


def _block(label: str, rows: Sequence[str]) -> list[str]:
    return [f"{label if i == 0 else '':8} {row}" for i, row in enumerate(rows)]


def observed(observation: object, names: Sequence[str]) -> tuple[Floats, dict[str, float]]:
    """Return one observation as an array and by name; anything else is refused."""
    point = np.asarray(observation, np.float64).ravel()
    if len(point) != len(names):
        raise SettingError(f"An observation has {len(names)} numbers ({', '.join(names)}), not {len(point)}.")
    if np.isnan(point).any():
        raise BadEnvironmentError(f"The observation holds NaN: {point}.")
    return point, dict(zip(names, point.tolist(), strict=True))


def conditions(
    low: Floats, high: Floats, names: Sequence[str], digits: int | None = DIGITS
) -> tuple[str, ...]:
    """Return the conditions of a box `low <= x < high` as text; dimensions without bounds are left out."""
    texts = []
    for name, first, last in zip(names, low.tolist(), high.tolist(), strict=True):
        left = "" if first == -math.inf else f"{number_text(first, digits)} <= "
        right = "" if last == math.inf else f" < {number_text(last, digits)}"
        if left or right:
            texts.append(f"{left}{name}{right}")
    return tuple(texts)


def explain_cell(
    point: Floats,
    named: dict[str, float],
    because: tuple[str, ...],
    leaf: str,
    cuts: Sequence[Floats],
    space: Box | Discrete,
    which: Callable[[Floats], NDArray[Any]],
    play: Callable[[Floats], NDArray[Any]],
    do: Callable[[Floats], ExplainedAction],
    candidates: tuple[Candidate, ...] = (),
    *,
    planes: tuple[Floats, Floats] | None = None,
    listed: bool = True,
) -> Explanation:
    """Return the explanation of the action in the cell of an observation.

    Parameters
    ----------
    point, named
        The observation (see `observed`).
    because, leaf
        The conditions of its cell (see `conditions`), and the name of the cell.
    cuts
        Boundaries of cells, in each dimension.
    space
        Of the observations.
    which
        Returns what identifies the origin of the action, such as the law of a leaf, one row per observation.
    play
        Returns the actions that are played, one row per observation.
    do
        Returns the outcome for one observation.
    candidates
        The actions to choose from.
    planes
        Further boundaries, of several numbers (see `planes_of`).
    listed
        Whether the actions are those of a list.
    """
    outcome = do(point)
    names = list(named)
    law, played = (of(point[np.newaxis]) for of in (which, play))
    changes = []
    low, high = (ends.tolist() for ends in space_bounds(space))
    for j, row in enumerate(cuts):
        bounds = low[j], high[j]
        inside = row[(row > bounds[0]) & (row <= bounds[1])]
        if planes is not None:
            inside = np.union1d(inside, _crossings(planes, point, j, bounds, which))
        if not len(inside):
            continue
        # The largest float below a cut lies under it, the cut itself above.
        targets = np.where(inside > point[j], inside, np.nextafter(inside, -np.inf))
        beyond = _moved(point, j, targets)
        # Another law may be clipped to the same action, or to one that is printed the same.
        other = np.any(which(beyond) != law, axis=1) & np.any(play(beyond) != played, axis=1)
        for i in sorted(np.flatnonzero(other), key=lambda i: abs(inside[i] - point[j])):
            new = do(beyond[i])
            if new.action != outcome.action:
                by = float(inside[i] - point[j])
                to = float(inside[i])
                way = abs(by) / (
                    float(np.ptp(inside)) or 1.0
                )  # relative to the distance between the first cut and the last
                changes.append((way, j, Change(names[j], by, to, new.action, new.value, new.law)))
                break
    return Explanation(
        observation=named,
        outside=_outside(named, space),
        action=outcome.action,
        value=outcome.value,
        law=outcome.law,
        leaf=leaf,
        conditions=because,
        candidates=candidates,
        changes=tuple(change for *_, change in sorted(changes, key=lambda entry: entry[:2])),
        listed=listed,
    )


def planes_of(controller: Controller, thresholds: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the boundaries w s + c = 0 of a controller that depend on several inputs s: w, one a row, and c.

    Those are its cuts of sums, for thresholds of each sum, and where two scores of a law for discrete actions
    are equal.
    """
    weights = [np.repeat(controller.combinations, [len(row) for row in thresholds], axis=0)]
    constants = [-np.concatenate([*thresholds, np.empty(0)])]
    if controller.discrete:
        gain = controller.laws.gain
        offset = controller.laws.offset
        first, second = np.triu_indices(offset.shape[1], 1)
        both = np.isfinite(offset[:, first]) & np.isfinite(offset[:, second])
        weights.append((gain[:, second] - gain[:, first])[both])
        constants.append(offset[:, second][both] - offset[:, first][both])
    return np.concatenate(weights), np.concatenate(constants)


def _crossings(
    planes: tuple[Floats, Floats],
    point: Floats,
    j: int,
    bounds: tuple[float, float],
    which: Callable[[Floats], NDArray[Any]],
) -> Floats:
    """Return where `which` changes, as number j of an observation changes alone, near some planes.

    Each is the least float on its upper side. It is looked for where the boundary is computed to be, within
    more than the rounding error.
    """
    crossed = planes[0][:, j] != 0.0
    weight = planes[0][crossed]
    with np.errstate(invalid="ignore", over="ignore"):
        terms = np.where(weight != 0.0, weight * point, 0.0)
        terms[:, j] = planes[1][crossed]
        place = -terms.sum(axis=1) / weight[:, j]
        error = _ROUNDING * (np.abs(terms).sum(axis=1) / np.abs(weight[:, j]) + np.abs(place))
        ends = np.stack([place - error, place + error])
    ends = ends[:, np.isfinite(ends).all(axis=0)]
    # Where the observation lies within the error, there may be a boundary on each of its sides.
    near = _moved(point, j, np.tile(np.clip(point[j], *ends), 2).clip(*bounds))
    far = _moved(point, j, ends.ravel().clip(*bounds))
    if not len(near):
        return np.empty(0)
    changes = bisect(which, near, far)
    return np.maximum(near[:, j], far[:, j])[changes]


def _moved(point: Floats, j: int, values: Floats) -> Floats:
    """Return copies of an observation, in which number j has other values."""
    rows = np.repeat(point[np.newaxis], len(values), axis=0)
    rows[:, j] = values
    return rows


def _outside(named: dict[str, float], space: Box | Discrete) -> tuple[str, ...]:
    """Return a text for each number outside its space; one that float32 rounds to a bound is inside."""
    texts = []
    bounds = (ends.tolist() for ends in space_bounds(space))
    for (name, x), low, high in zip(named.items(), *bounds, strict=True):
        if not low <= np.float32(x) <= high:
            ends = f"{number_text(low, DIGITS)} to {number_text(high, DIGITS)}"
            texts.append(f"{name} is never {number_text(x, DIGITS)}: its range is {ends}")
    return tuple(texts)


def explained(controller: Controller, inputs: Any, memory: Floats) -> Explanation:
    """Return the explanation of the action of a controller for its inputs, with a memory of one row."""
    point, named = observed(inputs, controller.inputs)
    number = controller.leaf_number(point)
    low, high, _ = controller.box(number)
    fold = folded(controller)
    thresholds = controller.thresholds
    kept = None
    if any(controller.hysteresis) and memory[0, LEAF] >= 0:
        last, kept = _kept(controller, int(memory[0, LEAF]))
        ends = zip(kept.low.tolist(), kept.high.tolist(), strict=True)
        thresholds = tuple(
            np.union1d(row, [end for end in both if abs(end) < math.inf])
            for row, both in zip(thresholds, ends, strict=True)
        )
        if kept.holds(controller.numbers(point[np.newaxis]))[0]:
            number = last
            low = kept.low
            high = kept.high

    def rows(batch: Floats) -> NDArray[np.int64]:
        laws = controller.find(batch)
        return laws if kept is None else np.where(kept.holds(controller.numbers(batch)), kept.row, laws)

    def play(batch: Floats) -> NDArray[Any]:
        return controller.decide(batch, memory)

    def law(batch: Floats) -> NDArray[Any]:
        return play(batch) if controller.discrete else controller.same_laws[rows(batch)][:, np.newaxis]

    def outcome(point: Floats) -> ExplainedAction:
        row = int(rows(point[np.newaxis])[0])
        text = "" if controller.laws.constant[row] else leaf_text(controller, row, DIGITS)
        done = tuple(play(point[np.newaxis])[0].tolist())
        if not controller.discrete:
            return ExplainedAction(values_text(controller.actions, done, DIGITS), done, text)
        place = int(done[0]) - controller.frame.first
        return ExplainedAction(controller.actions[place], (int(done[0]),), text)

    return explain_cell(
        point,
        named,
        conditions(low, high, controller.number_names(DIGITS)),
        f"leaf {number} of {controller.n_leaves}" if fold is None else fold.place(point),
        thresholds[: controller.dims],
        controller.input_space,
        law,
        play,
        outcome,
        planes=planes_of(controller, thresholds[controller.dims :]),
        listed=controller.discrete,
    )


def _kept(controller: Controller, node: int) -> tuple[int, Lock]:
    """Return the number of the leaf of the last sample, and the box in which hysteresis keeps it."""
    nodes = controller.arrays.arrays.node
    copied = copied_nodes(controller)
    number = 1
    while node > 0:
        parent = int(nodes[node, PARENT])
        if nodes[parent, RIGHT] == node:
            number += int(controller.sizes[copied[nodes[parent, LEFT]]])
        node = parent
    low, high, row = controller.box(number)
    margin = np.array(controller.hysteresis)
    return number, Lock(low - margin, high + margin, row)
