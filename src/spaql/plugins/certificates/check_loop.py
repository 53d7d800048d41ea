"""The closed loop of a certificate on many sets at once: read from the file, and stepped by `check_sets`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import is_tree, number, typed
from spaql.errors import ArchiveError
from spaql.plugins.certificates import check_sets as sets
from spaql.plugins.certificates.check_sets import Floats, Sets
from spaql.plugins.certificates.check_tape import (
    MOST_CONDITIONS,
    Arrays,
    CheckedTape,
    Ints,
    operation,
    require,
)

_NARROW = 0.3
_TURN_SLACK = 1e-12
_EPS = 2.0**-52
_PERIODS = (0.0, math.tau, 360.0)
_MOST_LEAVES = 4096
_MEMORY = 2**26
"""Most numbers that a step takes at a time."""
_WORK = 400_000
_WORK_OF_A_BYTE = 20
"""Operations on up to 1,000 sets that are spent on any file, and on each of its bytes."""


class Work:
    """What may still be spent on a file, so that none takes longer than its size explains."""

    def __init__(self, size: int) -> None:
        self._left = float(_WORK + _WORK_OF_A_BYTE * size)

    def spend(self, operations: int, on: int) -> None:
        """Count operations on a number of sets."""
        self._left -= operations * (1.0 + on / 1_000.0)
        if self._left < 0.0:
            raise ArchiveError("The certificate takes more work to check than one of its size may.")


@dataclass
class Parts:
    """Sets of states that are followed, each with the number of the box that it comes from."""

    states: list[Sets]
    """Each state variable; symbols are one for each variable, then one for the error of each."""
    owner: Ints

    @property
    def lo(self) -> Floats:
        """The lower ends, variables × parts."""
        return np.stack([x.lo for x in self.states])

    @property
    def hi(self) -> Floats:
        """The upper ends, variables × parts."""
        return np.stack([x.hi for x in self.states])

    def taken(self, chosen: Ints) -> Parts:
        """Return some of them."""
        return Parts([x.taken(chosen) for x in self.states], self.owner[chosen])


def boxes(lo: Floats, hi: Floats, owner: Ints) -> Parts:
    """Return boxes, variables × boxes, with a symbol for each variable."""
    like = sets.interval(lo[0], hi[0], 2 * len(lo))
    states = [Sets(like.c, like.g, like.r, *ends) for ends in zip(lo, hi, strict=True)]
    return Parts(_boxed(states, np.ones(len(owner), np.bool_)), owner)


def joined(parts: list[Parts]) -> Parts:
    """Return the parts of several in one."""
    states = [sets.joined(same) for same in zip(*(part.states for part in parts), strict=True)]
    return Parts(states, np.concatenate([part.owner for part in parts]))


@dataclass(frozen=True)
class Law:
    """What the leaves of a tree compute."""

    discrete: bool
    """Whether it is a score for each action of a list."""
    start: int
    """The first action of a list."""
    gain: Floats
    offset: Floats
    low: Floats
    high: Floats

    @classmethod
    def read(cls, data: Mapping[str, Any], arrays: Arrays, seen: int) -> Law:
        """Return the laws of a file; laws that are not valid are refused."""
        gain, offset, low, high = (
            typed(arrays[f"tree.{name}"], np.float64) for name in ("gain", "offset", "low", "high")
        )
        discrete = data["tree_discrete"]
        require(isinstance(discrete, bool), "the actions are neither a list nor numbers")
        law = cls(discrete, number(data, "tree_start", -(2**31), 2**31, whole=True), gain, offset, low, high)
        require(offset.ndim == 2 and offset.shape[1] > 0, "laws have no numbers")
        require(gain.shape == (*offset.shape, seen), "laws have other observations")
        require(low.shape == high.shape == offset.shape[1:], "laws have other bounds")
        never = (offset == -math.inf) & discrete
        known = np.isfinite(gain).all() and np.all(np.isfinite(offset) | never) and np.all(low <= high)
        require(bool(known) and not never.all(axis=1).any(), "a law is not finite")
        return law

    @property
    def wide(self) -> int:
        """How many numbers the plant takes as an action."""
        return 1 if self.discrete else self.offset.shape[1]


class Loop:
    """The closed loop of a certificate."""

    def __init__(self, data: Mapping[str, Any], arrays: Arrays) -> None:
        self.period, self.noise, self.push = (
            typed(arrays[name], np.float64) for name in ("period", "noise", "push")
        )
        n = self.n = len(self.period)
        seen = len(self.noise)
        shapes = self.period.ndim == self.noise.ndim == 1 and self.push.shape == (n,)
        require(shapes and 1 <= n <= 8 and seen > 0, "the state has no numbers")
        bounds = np.concatenate([self.noise, self.push])
        require(bool(np.all(np.isfinite(bounds) & (bounds >= 0))), "a bound is negative")
        require(isinstance(data["operations"], list), "there are no operations")
        operations = [str(name) for name in data["operations"]]
        self._law = Law.read(data, arrays, seen)
        self._sums = typed(arrays["tree.sums"], np.float64)
        require(self._sums.ndim == 2 and self._sums.shape[1] == seen, "sums have other observations")
        require(bool(np.isfinite(self._sums).all()), "a sum has a weight that is not finite")
        self._leaves = self._all_leaves(arrays, seen)
        parts = [
            {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
            for prefix in ("step.", "observe.")
        ]
        self.step = CheckedTape.read(parts[0], operations, n + self._law.wide, n)
        self.observe = CheckedTape.read(parts[1], operations, n, seen)
        require(len(self.observe.branch) == 1, "an observation depends on conditions")
        self._paths = self.step.paths()
        self._check_periods()
        self._tree = {k: a for k, a in arrays.items() if k.startswith("tree.")}
        self.work = Work(sum(a.nbytes for a in arrays.values()))
        conditions = sum(1 + len(way) for way, _ in self._paths)
        rows = 2 * len(self.observe.names) + (len(self._sums) + self._law.gain[0].size) * seen
        self._operations = rows + len(self.step.names) + 2 * n * conditions
        width = (self.step.width + 2 * self.observe.width + 8 * seen + 2 * conditions) * (2 * n + 4)
        self._together = max(1, _MEMORY // width)

    def _check_periods(self) -> None:
        """Refuse a period that the tapes do not show: the loop must be the same after a whole turn."""
        for j, period in enumerate(self.period.tolist()):
            require(period in _PERIODS, "a period is neither 2 pi nor 360")
            shown = not period or (
                self.step.is_shifted(j, period, j) and self.observe.is_shifted(j, period, None)
            )
            require(shown, f"the equations of the plant do not show the period of number {j}")

    @property
    def equations(self) -> str:
        """The SHA-256 of all that the plant computes."""
        sha = hashlib.sha256()
        for tape in (self.step, self.observe):
            tape.digest(sha)
        return sha.hexdigest()

    @property
    def controller(self) -> str:
        """The SHA-256 of all that the controller computes."""
        sha = hashlib.sha256(repr((self._law.discrete, self._law.start)).encode())
        for name, array in sorted(self._tree.items()):
            sha.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
        return sha.hexdigest()

    @property
    def terminates(self) -> bool:
        """Whether the plant can terminate."""
        return bool(self.step.flags.any())

    def _all_leaves(self, arrays: Arrays, seen: int) -> list[tuple[dict[tuple[int, bool], float], int]]:
        """Return the tightest bounds on the way to each leaf, (number, upper): bound, and its law."""
        feature, left, right, leaf = (
            typed(arrays[f"tree.{name}"], np.int64) for name in ("feature", "left", "right", "leaf")
        )
        threshold = typed(arrays["tree.threshold"], np.float64)
        shapes = all(a.shape == (feature.size,) for a in (feature, left, right, leaf, threshold))
        require(shapes, "a tree has gaps")
        inner = feature >= 0
        require(is_tree(left, right, inner, shared_leaves=True), "rules are not a tree")
        require(bool(np.all(feature < seen + len(self._sums))), "a rule compares nothing")
        require(not np.isnan(threshold[inner]).any(), "a rule has no threshold")
        laws = (leaf >= 0) & (leaf < len(self._law.offset))
        require(bool(np.all(laws | inner)), "a leaf has no law")
        require(int(inner.sum()) < _MOST_LEAVES, "the tree has too many leaves")
        found: list[tuple[dict[tuple[int, bool], float], int]] = []
        waiting: list[tuple[int, dict[tuple[int, bool], float]]] = [(0, {})]
        total = 0
        while waiting:
            node, way = waiting.pop()
            total += len(way)
            require(total <= MOST_CONDITIONS, "the ways through the tree are too long")
            j = int(feature[node])
            cut = float(threshold[node])
            if j < 0:
                found.append((way, int(leaf[node])))
                continue
            lower = {**way, (j, True): min(cut, way.get((j, True), math.inf))}
            upper = {**way, (j, False): max(cut, way.get((j, False), -math.inf))}
            waiting += [(int(left[node]), lower), (int(right[node]), upper)]
        return found

    def seen(self, states: list[Sets]) -> list[Sets]:
        """Return what the tree compares: observations, and weighted sums of them."""
        rows = self.observe.run(states)
        found = [sets.rounded(rows[row]) for row in self.observe.outputs[0]]
        found = [sets.widened(x, by) if by else x for x, by in zip(found, self.noise.tolist(), strict=True)]
        return found + [self._weighted(0.0, weights, found) for weights in self._sums]

    def _weighted(self, offset: float, weights: Floats, seen: list[Sets]) -> Sets:
        total = sets.constant(offset, seen[0])
        for weight, x in zip(weights.tolist(), seen, strict=False):
            if weight != 0.0:
                free = np.full_like(x.lo, np.inf)
                scaled = sets.affine(
                    x, np.full_like(free, weight), np.zeros_like(free), np.zeros_like(free), -free, free
                )
                total = sets.added(total, scaled)
        return total

    def advance(self, parts: Parts) -> Iterator[tuple[Parts, bool]]:
        """Yield the parts after a step, each group with whether its episodes have terminated."""
        for first in range(0, len(parts.owner), self._together):
            yield from self._advance(parts.taken(np.arange(len(parts.owner))[first : first + self._together]))

    def _advance(self, parts: Parts) -> list[tuple[Parts, bool]]:
        seen = self.seen(parts.states)
        found: list[tuple[Parts, bool]] = []
        for bounds, law in self._leaves:
            self.work.spend(len(bounds) + 1, len(parts.owner))
            possible = np.ones(len(parts.owner), np.bool_)
            for (j, is_upper), bound in bounds.items():
                possible &= ~(seen[j].lo >= bound) if is_upper else ~(seen[j].hi < bound)
            chosen = np.flatnonzero(possible)
            if len(chosen):
                self.work.spend(self._operations + 2 * self.n * len(bounds), len(chosen))
                self._in_leaf(parts.taken(chosen), [x.taken(chosen) for x in seen], bounds, law, found)
        return found

    def _in_leaf(
        self,
        parts: Parts,
        seen: list[Sets],
        bounds: Mapping[tuple[int, bool], float],
        law: int,
        found: list[tuple[Parts, bool]],
    ) -> None:
        laws = self._law
        states = parts.states
        conditions = []
        for (j, is_upper), bound in bounds.items():
            gap = sets.added(seen[j], sets.constant(bound, seen[j]), -1.0)
            conditions.append(gap if is_upper else sets.negated(gap))
        states, kept = _cut(states, conditions)
        if not len(kept):
            return
        owner = parts.owner[kept]
        states = _boxed(states, _are_narrow(states))
        seen = self.seen(states)
        seen = [sets.of_known(x, *seen) for x in seen]
        if laws.discrete:
            scores = {
                i: self._weighted(float(laws.offset[law, i]), laws.gain[law, i], seen)
                for i in range(laws.offset.shape[1])
                if laws.offset[law, i] > -math.inf
            }
            for i, score in scores.items():
                lower = [sets.added(other, score, -1.0) for k, other in scores.items() if k != i]
                here, left = _cut(states, lower)
                if len(left):
                    self._move(here, [sets.constant(float(laws.start + i), here[0])], owner[left], found)
            return
        actions = []
        for i in range(laws.offset.shape[1]):
            u = self._weighted(float(laws.offset[law, i]), laws.gain[law, i], seen)
            if math.isfinite(laws.low[i]):
                u = sets.larger(u, sets.constant(float(laws.low[i]), u))
            if math.isfinite(laws.high[i]):
                u = operation("min", u, sets.constant(float(laws.high[i]), u))
            actions.append(sets.rounded(u))
        self._move(states, actions, owner, found)

    def _move(
        self, states: list[Sets], actions: list[Sets], owner: Ints, found: list[tuple[Parts, bool]]
    ) -> None:
        rows = self.step.run([*states, *actions])
        for way, leaf in self._paths:
            possible = np.ones(len(owner), np.bool_)
            conditions = []
            bounds = []
            for kind, i, j, holds in way:
                x = rows[i]
                y = rows[j]
                # A compared number without bounds may be NaN: all answers are possible, without a cut.
                loose = ~(x.known & y.known)
                if kind == 2:
                    equal = (x.lo == x.hi) & (y.lo == y.hi) & (x.lo == y.lo)
                    possible &= loose | ((x.lo <= y.hi) & (y.lo <= x.hi) if holds else ~equal)
                elif kind == 0:
                    possible &= loose | (x.lo < y.hi if holds else x.hi >= y.lo)
                else:
                    possible &= loose | (x.lo <= y.hi if holds else x.hi > y.lo)
                both = [(i, j), (j, i)]
                for small, large in (both if holds else []) if kind == 2 else [both[0 if holds else 1]]:
                    gap = sets.added(rows[small], rows[large], -1.0)
                    free = sets.interval(np.where(loose, -np.inf, gap.lo), gap.hi, len(gap.g))
                    conditions.append(sets.where(loose, free, gap))
                    bounds.append((small, large, loose))
            chosen = np.flatnonzero(possible)
            if not len(chosen):
                continue
            outputs = [rows[row] for row in self.step.outputs[leaf]]
            for small, large, loose in bounds:
                for k, row in enumerate(self.step.outputs[leaf]):
                    x = outputs[k]
                    hi = np.where(~loose & (row == small), np.fmin(x.hi, rows[large].hi), x.hi)
                    lo = np.where(~loose & (row == large), np.fmax(x.lo, rows[small].lo), x.lo)
                    possible &= ~(lo > hi)
                    outputs[k] = Sets(x.c, x.g, x.r, lo, hi)
            chosen = np.flatnonzero(possible)
            after, kept = _cut([x.taken(chosen) for x in outputs], [gap.taken(chosen) for gap in conditions])
            if len(kept):
                parts = self._next(after, owner[chosen][kept], narrow=len(self._paths) > 1)
                found.append((parts, bool(self.step.flags[leaf])))

    def _next(self, after: list[Sets], owner: Ints, *, narrow: bool) -> Parts:
        """Return the next states: disturbed, brought back by whole turns, with one error each."""
        n = self.n
        done = []
        for j, x in enumerate(after):
            wide = float(self.push[j])
            if self.period[j] > 0:
                turns = np.where(np.isfinite(x.c), np.floor(x.c / self.period[j] + 0.5), 0.0)
                shift = turns * self.period[j]
                x = Sets(x.c - shift, x.g, x.r, x.lo - shift, x.hi - shift)
                wide += _TURN_SLACK + 4 * _EPS * float(np.abs(shift).max(initial=0.0))
            if wide:
                x = sets.widened(x, wide)
            rest = (x.r + np.abs(x.g[n:]).sum(axis=0)) * (1 + 1e-12)
            none = np.zeros_like(rest)
            g = np.concatenate([x.g[:n], np.zeros_like(x.g[n:])])
            x = sets.settled(x.c, g, rest, none, x.lo, x.hi)
            x.g[n + j] = x.r
            done.append(Sets(x.c, x.g, none, x.lo, x.hi))
        return Parts(_boxed(done, _are_narrow(done)) if narrow else done, owner)


def _cut(states: list[Sets], conditions: list[Sets]) -> tuple[list[Sets], Ints]:
    """Return what conditions g <= 0 leave of states, and of which boxes anything is left."""
    count = len(states[0].c)
    symbols = len(states[0].g)
    ranges = np.stack([-np.ones((symbols, count)), np.ones((symbols, count))])
    possible = np.ones(count, np.bool_)
    for gap in conditions:
        ranges, holds = sets.narrowed(gap, ranges)
        possible &= holds
    kept = np.flatnonzero(possible)
    return [sets.replaced(x.taken(kept), ranges[:, :, kept]) for x in states], kept


def _are_narrow(states: list[Sets]) -> NDArray[np.bool_]:
    """Return where an interval is much narrower than its form."""
    narrow = np.any([x.hi - x.lo < _NARROW * 2 * x.spread for x in states], axis=0)
    return np.asarray(narrow & np.all([x.known for x in states], axis=0))


def _boxed(states: list[Sets], chosen: NDArray[np.bool_]) -> list[Sets]:
    """Replace forms by their box where they are chosen."""
    found = []
    for j, x in enumerate(states):
        c = np.where(chosen, 0.5 * (x.lo + x.hi), x.c)
        g = np.where(chosen, 0.0, x.g)
        half = np.maximum(x.hi - c, c - x.lo) * (1 + 1e-14) + 1e-300
        g[j] = np.where(chosen, half, g[j])
        found.append(Sets(c, g, np.where(chosen, 0.0, x.r), x.lo, x.hi))
    return found
