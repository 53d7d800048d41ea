"""The cells of a certificate, from which a claim is made: each box of them is followed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import number, typed
from spaql.plugins.certificates.check_claim import LASTS, NEVER, REACHES, STAYS, TERMINATES, CheckedClaim
from spaql.plugins.certificates.check_loop import Parts, Work, boxes, joined
from spaql.plugins.certificates.check_sets import Floats
from spaql.plugins.certificates.check_tape import Arrays, Ints, require

Ends = tuple[Floats, Floats]

_TOGETHER = 2_000
"""Boxes that are followed at a time."""
_PARTS = 40_000
"""Most parts of these; the boxes that have most are given up beyond it."""
_FOR_EVER = 2**40
_ROUNDS = 3
"""How often all boxes are followed, after cells were dropped."""
_HALVINGS = 2
"""How often a box that is not confirmed is halved in each direction, and its parts are followed."""
_WIDER = 1e-7
"""By which boxes are widened, in sizes of a cell: more than all rounding of their ends."""
_EPS = 2.0**-52


class CheckedCells:
    """The cells of a certificate, with the steps that suffice from each."""

    def __init__(self, claim: CheckedClaim, data: Mapping[str, Any], arrays: Arrays) -> None:
        loop = claim.loop
        n = loop.n
        levels = number(data, "levels", 0, 26, whole=True)
        side = self._side = 1 << levels
        self._claim = claim
        self._loop = loop
        self._levels = levels
        times = typed(arrays["times"], np.int32)
        require(times.size == side**n, "there is not a time for each cell")
        self.times: NDArray[np.int32] = times.reshape((side,) * n).copy()
        self._low, self._high = claim.starts
        self._size = (self._high - self._low) / side
        self._turns = typed(arrays["turns"], np.bool_).reshape(n)
        largest = np.maximum(np.abs(self._low), np.abs(self._high))
        sound = np.isfinite(self._size) & (8 * _EPS * largest <= _WIDER * self._size)
        require(bool(np.all(sound)), "the cells have no size")
        gap = np.abs(self._high - self._low - loop.period)
        turn = (loop.period > 0) & (gap <= 1e-9 * loop.period)
        require(bool(np.all(turn | ~self._turns)), "the cells do not go round a whole turn")
        self._wider = _WIDER + np.where(self._turns, 8 * gap / self._size, 0.0)
        """By which boxes are widened, in sizes of a cell: where they go round, also by what is missing."""
        self._boxes = {name: _listed(arrays, name, levels, n) for name in ("boxes", "core")}
        self._claims = typed(arrays.get("boxes.time", np.empty(0, np.int64)), np.int64)
        require(self._claims.shape == self._boxes["boxes"][0].shape, "the boxes have gaps")

    def share(self) -> float:
        """Return the share of the cells that is confirmed, without what depends on cells that are not."""
        kind = self._claim.kind
        claimed = self.times
        self.times = np.where((claimed >= 0) & (claimed <= self._claim.limit), claimed, -1)
        self.times[~self._within(*self._claim.keep)] = -1
        core = np.zeros(self.times.shape, np.bool_)
        if kind in (NEVER, REACHES, STAYS):
            core = self._within(*self._claim.target)
        if kind in (NEVER, STAYS):
            core &= self._covered("core")
        self.times[(self.times == 0) & ~core] = -1
        if kind in (NEVER, STAYS):
            left = -1
            while left != (now := int(np.count_nonzero(self.times == 0))):
                left = now
                self._check("core", self._claim.target, np.full(len(self._boxes["core"][1]), _FOR_EVER))
        return float(np.mean(self.times >= 0)) if kind == NEVER else self._share_that_comes()

    def _share_that_comes(self) -> float:
        """Return the share of the cells whose steps suffice."""
        for _ in range(_ROUNDS):
            before = self.times.copy()
            self._check("boxes", self._claim.allowed, self._claims)
            dropped = before[(before >= 0) & (self.times < 0)]
            if not len(dropped):
                return float(np.mean(self.times >= 0))
        if self._claim.kind == LASTS:
            return 0.0  # any cell may depend on one that was dropped
        # Cells depend on cells with fewer steps: below the first that was dropped, all is confirmed.
        self.times[self.times >= dropped.min()] = -1
        return float(np.mean(self.times >= 0))

    def _place(self, level: Ints, index: Ints) -> Ints:
        """Return the first finest cell along each number, numbers × boxes, of boxes."""
        found = np.empty((self._loop.n, len(index)), np.int64)
        bits = self._levels - level
        for j in range(self._loop.n - 1, -1, -1):
            found[j] = (index & ((1 << bits) - 1)) << level
            index = index >> bits
        return found

    def _slices(self, place: Ints, level: int) -> tuple[slice, ...]:
        return tuple(slice(int(a), int(a) + (1 << level)) for a in place)

    def _covered(self, name: str) -> NDArray[np.bool_]:
        """Return the cells that boxes cover."""
        found = np.zeros(self.times.shape, np.bool_)
        level, index = self._boxes[name]
        for place, one in zip(self._place(level, index).T, level.tolist(), strict=True):
            found[self._slices(place, one)] = True
        return found

    def _ends(self, place: Ints, level: Ints) -> tuple[Floats, Floats]:
        """Return the boxes of cells, a little wider."""
        size = self._size[:, None]
        wider = self._wider[:, None]
        lo = self._low[:, None] + (place - wider) * size
        hi = self._low[:, None] + (place + (1 << level) + wider) * size
        at_low = place == 0
        at_high = place + (1 << level) == self._side
        fixed = ~self._turns[:, None]
        return np.where(at_low & fixed, self._low[:, None], lo), np.where(
            at_high & fixed, self._high[:, None], hi
        )

    def _within(self, low: Floats, high: Floats) -> NDArray[np.bool_]:
        """Return the cells that lie in a box."""
        found = np.ones(self.times.shape, np.bool_)
        for j in range(self._loop.n):
            ends = self._low[j] + np.arange(self._side + 1) * self._size[j]
            ends[-1] = self._high[j]
            kept = (ends[:-1] >= low[j]) & (ends[1:] <= high[j])
            shape = [1] * self._loop.n
            shape[j] = self._side
            found &= kept.reshape(shape)
        return found

    def _check(self, name: str, keep: Ends, claims: Ints) -> None:
        """Drop the cells that no box confirms.

        A cell of the core needs one that comes back to the core inside `keep`, any other cell one that shows
        that its steps suffice.
        """
        core = name == "core"
        level, index = self._boxes[name]
        kept = self._follow(level, index, keep, claims, core=core)
        confirmed = (self.times == 0) != core
        for place, one, steps in zip(self._place(level, index).T, level.tolist(), kept.tolist(), strict=True):
            if steps >= 0:
                cells = self._slices(place, one)
                confirmed[cells] |= core | (self.times[cells] >= steps)
        self.times[~confirmed] = -1

    def _follow(self, level: Ints, index: Ints, keep: Ends, claims: Ints, *, core: bool) -> Ints:
        """Return the claims of boxes that are shown, -1 for those that are not."""
        found = np.full(len(index), -1)
        place = self._place(level, index)
        look_up = _LookUp(np.where(self.times == 0, 0, -1) if core else self.times, self._loop.work)
        for first in range(0, len(index), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            lo, hi = self._ends(place[:, part], level[part])
            shown = self._shown(lo, hi, keep, look_up, claims[part], _HALVINGS)
            found[part] = np.where(shown, claims[part], -1)
        return found

    def _shown(
        self,
        lo: Floats,
        hi: Floats,
        keep: Ends,
        look_up: _LookUp,
        claims: Ints,
        halvings: int,
    ) -> NDArray[np.bool_]:
        """Return for which boxes the claim is shown, of the box or of all of its parts in each direction."""
        shown = self._images(lo, hi, keep, look_up, claims) >= 0
        failed = np.flatnonzero(~shown)
        if not halvings or not len(failed) or len(failed) > 0.2 * len(shown) + 20:
            return shown  # where many fail, the claim is false
        mid = 0.5 * (lo + hi)[:, failed]
        good = np.ones(len(failed), np.bool_)
        for corner in range(1 << self._loop.n):
            upper = np.array([(corner >> j) & 1 for j in range(self._loop.n)], np.bool_)[:, None]
            low = np.where(upper, mid, lo[:, failed])
            high = np.where(upper, hi[:, failed], mid)
            left = np.flatnonzero(good)
            good[left] = self._shown(
                low[:, left], high[:, left], keep, look_up, claims[failed][left], halvings - 1
            )
        shown[failed] = good
        return shown

    def _images(
        self,
        lo: Floats,
        hi: Floats,
        keep: Ends,
        look_up: _LookUp,
        claims: Ints,
    ) -> Ints:
        """Return the steps that suffice from boxes, within the claims, or -1."""
        count = lo.shape[1]
        worst = np.zeros(count, np.int64)
        ended = np.zeros(count, np.bool_)
        lasts = self._claim.kind == LASTS
        parts = boxes(lo, hi, np.arange(count))
        for age in range(1, self._claim.image + 1):
            waiting: list[Parts] = []
            for group, terminated in self._loop.advance(parts):
                if terminated:
                    ended[group.owner] = True
                    if self._claim.kind == TERMINATES:
                        late = age > claims[group.owner]
                        worst[group.owner[late]] = -1
                    else:
                        worst[group.owner] = -1
                    continue
                inside = np.all((group.lo >= keep[0][:, None]) & (group.hi <= keep[1][:, None]), axis=0)
                worst[group.owner[~inside]] = -1
                steps = look_up.worst(*self._touched(group))
                done = steps >= 0
                if lasts:
                    done |= age >= self._claim.limit
                else:
                    done &= age + steps <= claims[group.owner]
                ended[group.owner[done]] = True
                waiting.append(group.taken(np.flatnonzero(~done & (worst[group.owner] >= 0))))
            parts = joined(waiting) if waiting else parts.taken(np.empty(0, np.int64))
            if not lasts:
                worst[parts.owner[claims[parts.owner] <= age]] = -1  # too late
            parts = parts.taken(np.flatnonzero(worst[parts.owner] >= 0))
            if len(parts.owner) > _PARTS:
                most = np.bincount(parts.owner, minlength=count) > _PARTS // _TOGETHER
                worst[most] = -1
                parts = parts.taken(np.flatnonzero(worst[parts.owner] >= 0))
            if not len(parts.owner):
                return np.where(ended, worst, -1)  # a set that comes to nothing was lost
        worst[parts.owner] = -1
        return worst

    def _touched(self, parts: Parts) -> tuple[Ints, Ints]:
        """Return the first and last finest cell that parts touch, numbers × parts; -1 where they leave."""
        size = self._size[:, None]
        low = self._low[:, None]
        high = self._high[:, None]
        first = np.floor((parts.lo - low) / size - 1e-6)
        last = np.floor((parts.hi - low) / size + 1e-6)
        fixed = ~self._turns[:, None]
        first = np.where(fixed & (first == -1) & (parts.lo >= low), 0, first)
        last = np.where(fixed & (last == self._side) & (parts.hi <= high), self._side - 1, last)
        whole = ~fixed & (last - first >= self._side)
        first = np.where(whole, 0, first)
        last = np.where(whole, self._side - 1, last)
        shift = np.where(fixed, 0, np.floor(first / self._side) * self._side)
        first = first - shift
        last = last - shift
        ok = np.all(np.isfinite(first) & np.isfinite(last) & (first >= 0) & (last >= first), axis=0)
        ok &= np.all(~fixed | (last < self._side), axis=0)
        clean = [np.where(ok, end, -1).astype(np.int64) for end in (first, last)]
        return clean[0], clean[1]


class _LookUp:
    """The most steps over boxes of cells; an axis that goes round is continued at its beginning."""

    def __init__(self, times: NDArray[Any], work: Work) -> None:
        self._times = times
        self._work = work

    def worst(self, first: Ints, last: Ints) -> Ints:
        """Return the most steps over each box of cells, -1 if a cell has none."""
        count = first.shape[1]
        touched = np.prod((last - first + 1).astype(np.float64), axis=0)
        self._work.spend(count // 4 + 1, int(touched.sum() / max(count, 1)))
        found = np.full(count, -1, np.int64)
        for i in np.flatnonzero(first[0] >= 0):
            ends = list(zip(first[:, i], last[:, i] + 1, self._times.shape, strict=True))
            if any(end > side for _, end, side in ends):
                cells: Any = np.ix_(*(np.arange(begin, end) % side for begin, end, side in ends))
            else:
                cells = tuple(slice(begin, end) for begin, end, _ in ends)
            steps = self._times[cells]
            if steps.min() >= 0:
                found[i] = steps.max()
        return found


def _listed(arrays: Arrays, name: str, levels: int, n: int) -> tuple[Ints, Ints]:
    """Return the levels and indices of boxes, each of which is listed once."""
    level, index = (
        typed(arrays.get(f"{name}.{part}", np.empty(0, np.int64)), np.int64) for part in ("level", "index")
    )
    require(level.shape == index.shape == (level.size,), "the boxes have gaps")
    require(bool(np.all((level >= 0) & (level <= levels))), "a box has no level")
    require(
        bool(np.all((index >= 0) & (index >> ((levels - level) * n) == 0))), "a box is outside of the cells"
    )
    once = len(np.unique(np.stack([level, index]), axis=1).T) == len(level)
    require(once, "a box is listed twice")
    return level, index
