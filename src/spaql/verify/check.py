"""Checking certificates without search, by code that shares only the file format with the prover."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql import archive
from spaql.archive import number, reading, typed
from spaql.errors import ArchiveError
from spaql.verify.check_loop import Floats, Ints, Loop, Parts, boxes, joined

_TOGETHER = 2_000
"""Boxes that are followed at a time."""
_PARTS = 40_000
"""Most parts of these; the boxes that have most are given up beyond it."""
_CELLS = 2**26
_FOR_EVER = 2**40
_ROUNDS = 3
"""How often all boxes are followed, after cells were dropped."""
_ROUNDS_OF_GROWTH = 50
_HALVINGS = 2
"""How often a box that is not confirmed is halved in each direction, and its parts are followed."""


@dataclass(frozen=True)
class Check:
    """What was checked of a certificate."""

    text: str
    data: dict[str, Any]
    holds: bool
    """Whether everything that the certificate claims was confirmed."""


def check_certificate(path: str | os.PathLike[str]) -> Check:
    """Check a certificate that `spaql verify --certificate` wrote.

    Every box of it is followed again, by another implementation of sets than the prover's. What is not
    confirmed is taken from the claim, with all that depends on it.

    Raises
    ------
    ArchiveError
        If the file is damaged, or not a certificate.
    """
    document = archive.load(path)
    data = document.data
    if data.get("kind") != "certificate":
        raise ArchiveError(f"The file holds {data.get('kind')!r}, not a certificate of spaql verify.")
    with reading("certificate"):
        claim = float(number(data, "proven", 0.0, 1.0))
        share, _ = confirmed(data, document.arrays)
        plant, text = str(data["plant"]), _sentence(data, document.arrays)
    holds = share >= claim - 1e-12
    verb = "Confirmed" if holds else "NOT confirmed as claimed"
    return Check(
        f"{plant}: {text}.\n{verb}: {100 * share:.4f} % of the states, and {100 * claim:.4f} % are claimed.",
        {"plant": plant, "statement": text, "confirmed": share, "claimed": claim, "holds": holds},
        holds,
    )


def _sentence(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return what is checked in words, from the numbers that are checked."""
    names = [str(name) for name in data["numbers"]]

    def ranges(box: Floats) -> str:
        ends = zip(names, *box.reshape(2, len(names)).tolist(), strict=True)
        return ", ".join(f"{name} {low:.4g} to {high:.4g}" for name, low, high in ends if high - low < np.inf)

    keep = ranges(typed(arrays["keep"], np.float64))
    limit, reaches = number(data, "limit", 0, 10**9, whole=True), bool(data["reaches"])
    parts = []
    if data["goal"]:
        parts.append(f"it terminates within {limit:,} steps")
    elif reaches:
        parts.append(f"it comes to {ranges(typed(arrays['home'], np.float64))} within {limit:,} steps")
        parts += ["stays there for ever"] if data["stays"] else []
    elif np.any(typed(arrays["step.flags"], np.bool_)):
        parts.append("it does not terminate")
    parts += [f"it does not leave {keep}"] if keep else []
    starts = ranges(typed(arrays["starts" if data["forward"] else "box"], np.float64))
    ever = "" if reaches else f" in {limit:,} steps" if limit else ", for ever"
    return f"from {starts}, {' and '.join(parts)}{ever}"


def confirmed(
    data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> tuple[float, NDArray[np.int32] | None]:
    """Return the share of the states that is confirmed, and the steps of each cell, -1 where they are not.

    There are no cells to a statement that was verified forwards: it is confirmed, or not at all.
    """
    with np.errstate(all="ignore"):
        loop = Loop(data, arrays)
        if data["forward"]:
            return float(_Reached(loop, data, arrays).are_closed()), None
        cells = _Cells(loop, data, arrays)
        return cells.share(), cells.times.ravel()


def grown(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Ints:
    """Return the cells that starts come to, with those that only the sets of this checker come to."""
    with np.errstate(all="ignore"):
        found = _Reached(Loop(data, arrays), data, arrays)
        found.grow()
    return found.cells


class _Cells:
    """The cells of a certificate, with the steps that suffice from each."""

    def __init__(self, loop: Loop, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        n = loop.n
        levels = number(data, "levels", 0, 26, whole=True)
        side = self._side = 1 << levels
        if side**n > _CELLS:
            raise ArchiveError("The certificate has too many cells.")
        self._loop, self._levels = loop, levels
        self.times: NDArray[np.int32] = np.array(typed(arrays["times"], np.int32)).reshape((side,) * n)
        self._low, self._high = typed(arrays["box"], np.float64).reshape(2, n)
        self._turns = typed(arrays["turns"], np.bool_).reshape(n)
        self._home = typed(arrays["home"], np.float64).reshape(2, n)
        self._keep = typed(arrays["keep"], np.float64).reshape(2, n)
        self._goal, self._stays, self._reaches = (bool(data[name]) for name in ("goal", "stays", "reaches"))
        self._image = number(data, "image", 1, 10**6, whole=True)
        self._limit = number(data, "limit", 0, 10**9, whole=True)
        self._lasts = not self._reaches and self._limit > 0
        span = self._high - self._low
        if not np.all(np.isfinite(span) & (span > 0)):
            raise ArchiveError("The cells of the certificate have no size.")
        if np.any(self._turns & ~(np.abs(span - loop.period) <= 1e-9 * np.maximum(loop.period, 1))):
            raise ArchiveError("The cells of the certificate do not go round a whole turn.")
        self._boxes = {
            name: tuple(typed(arrays[f"{name}.{part}"], np.int64) for part in ("level", "index"))
            for name in ("boxes", "core")
        }
        self._claims = typed(arrays["boxes.time"], np.int64)
        if self._claims.shape != self._boxes["boxes"][0].shape:
            raise ArchiveError("The boxes of the certificate have gaps.")
        for level, index in self._boxes.values():
            if level.shape != index.shape or level.ndim != 1:
                raise ArchiveError("The boxes of the certificate have gaps.")
            if len(level) and (level.min() < 0 or level.max() > levels):
                raise ArchiveError("A box of the certificate has no level.")
            if np.any(index < 0) or len(index) > _CELLS or np.any(index >> ((levels - level) * n) != 0):
                raise ArchiveError("A box of the certificate lies outside of its cells.")

    def share(self) -> float:
        """Return the share of the cells that is confirmed, without what depends on cells that are not."""
        claimed = self.times.copy()
        follows = self._reaches or self._lasts
        self.times = np.where(claimed <= self._limit, claimed, -1) if follows else claimed
        self.times[~self._within(self._keep)] = -1
        core = np.zeros(self.times.shape, np.bool_) if self._goal or self._lasts else self._within(self._home)
        if self._stays or not follows:
            core &= self._covered("core")
        self.times[(self.times == 0) & ~core] = -1
        self.times[(self.times < 0)] = -1
        if not follows:
            self.times[self.times > 0] = -1
        if self._stays or not follows:
            left = -1
            while left != (now := int(np.count_nonzero(self.times == 0))):
                left = now
                self._check_core()
        for _ in range(_ROUNDS if follows else 0):
            before = self.times.copy()
            self._check_boxes()
            dropped = before[(before >= 0) & (self.times < 0)]
            if not len(dropped):
                return float(np.mean(self.times >= 0))
        if self._lasts:
            self.times[:] = -1  # any cell may depend on one that was dropped
        elif self._reaches:
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
        size = ((self._high - self._low) / self._side)[:, None]
        lo = self._low[:, None] + (place - 1e-7) * size
        hi = self._low[:, None] + (place + (1 << level) + 1e-7) * size
        at_low, at_high = place == 0, place + (1 << level) == self._side
        fixed = ~self._turns[:, None]
        return np.where(at_low & fixed, self._low[:, None], lo), np.where(
            at_high & fixed, self._high[:, None], hi
        )

    def _within(self, box: Floats) -> NDArray[np.bool_]:
        """Return the cells that lie in a box."""
        found = np.ones(self.times.shape, np.bool_)
        size = (self._high - self._low) / self._side
        for j in range(self._loop.n):
            ends = self._low[j] + np.arange(self._side + 1) * size[j]
            ends[-1] = self._high[j]
            kept = (ends[:-1] >= box[0][j]) & (ends[1:] <= box[1][j])
            shape = [1] * self._loop.n
            shape[j] = self._side
            found &= kept.reshape(shape)
        return found

    def _check_core(self) -> None:
        """Drop cells of the core from which the loop does not come back to it without leaving home."""
        level, index = self._boxes["core"]
        kept = self._follow(level, index, self._home, np.full(len(index), _FOR_EVER), core=True)
        confirmed = np.zeros(self.times.shape, np.bool_)
        for place, one, steps in zip(self._place(level, index).T, level.tolist(), kept.tolist(), strict=True):
            if steps >= 0:
                confirmed[self._slices(place, one)] = True
        self.times[(self.times == 0) & ~confirmed] = -1

    def _check_boxes(self) -> None:
        """Drop cells for which no box shows that their steps suffice."""
        level, index = self._boxes["boxes"]
        kept = self._follow(level, index, self._keep, self._claims, core=False)
        confirmed = self.times == 0
        for place, one, steps in zip(self._place(level, index).T, level.tolist(), kept.tolist(), strict=True):
            if steps >= 0:
                cells = self._slices(place, one)
                confirmed[cells] |= self.times[cells] >= steps
        self.times[~confirmed] = -1

    def _follow(self, level: Ints, index: Ints, keep: Floats, claims: Ints, *, core: bool) -> Ints:
        """Return the claims of boxes that are shown, -1 for those that are not."""
        found = np.full(len(index), -1)
        place = self._place(level, index)
        look_up = _LookUp(np.where(self.times == 0, 0, -1) if core else self.times, self._turns)
        for first in range(0, len(index), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            lo, hi = self._ends(place[:, part], level[part])
            shown = self._shown(lo, hi, keep, look_up, claims[part], _HALVINGS, core=core)
            found[part] = np.where(shown, claims[part], -1)
        return found

    def _shown(
        self,
        lo: Floats,
        hi: Floats,
        keep: Floats,
        look_up: _LookUp,
        claims: Ints,
        halvings: int,
        *,
        core: bool,
    ) -> NDArray[np.bool_]:
        """Return for which boxes the claim is shown, of the box or of all of its parts in each direction."""
        shown = self._images(lo, hi, keep, look_up, claims, core=core) >= 0
        failed = np.flatnonzero(~shown)
        if not halvings or not len(failed) or len(failed) > 0.2 * len(shown) + 20:
            return shown  # where many fail, the claim is false
        mid, good = 0.5 * (lo + hi)[:, failed], np.ones(len(failed), np.bool_)
        for corner in range(1 << self._loop.n):
            upper = np.array([(corner >> j) & 1 for j in range(self._loop.n)], np.bool_)[:, None]
            low, high = np.where(upper, mid, lo[:, failed]), np.where(upper, hi[:, failed], mid)
            left = np.flatnonzero(good)
            good[left] = self._shown(
                low[:, left], high[:, left], keep, look_up, claims[failed][left], halvings - 1, core=core
            )
        shown[failed] = good
        return shown

    def _images(
        self, lo: Floats, hi: Floats, keep: Floats, look_up: _LookUp, claims: Ints, *, core: bool
    ) -> Ints:
        """Return the steps that suffice from boxes, within the claims, or -1."""
        count = lo.shape[1]
        worst = np.zeros(count, np.int64)
        parts = boxes(lo, hi, np.arange(count))
        for age in range(1, self._image + 1):
            waiting: list[Parts] = []
            for group, terminated in self._loop.advance(parts):
                if terminated:
                    if self._goal and not core:
                        late = age > claims[group.owner]
                        worst[group.owner[late]] = -1
                    else:
                        worst[group.owner] = -1
                    continue
                inside = np.all((group.lo >= keep[0][:, None]) & (group.hi <= keep[1][:, None]), axis=0)
                worst[group.owner[~inside]] = -1
                steps = look_up.worst(*self._touched(group))
                done = steps >= 0
                if self._lasts:
                    done |= age >= self._limit
                else:
                    done &= age + steps <= claims[group.owner]
                waiting.append(group.taken(np.flatnonzero(~done & (worst[group.owner] >= 0))))
            parts = joined(waiting) if waiting else parts.taken(np.empty(0, np.int64))
            if not self._lasts:
                worst[parts.owner[claims[parts.owner] <= age]] = -1  # too late
            parts = parts.taken(np.flatnonzero(worst[parts.owner] >= 0))
            if len(parts.owner) > _PARTS:
                most = np.bincount(parts.owner, minlength=count) > _PARTS // _TOGETHER
                worst[most] = -1
                parts = parts.taken(np.flatnonzero(worst[parts.owner] >= 0))
            if not len(parts.owner):
                return worst
        worst[parts.owner] = -1
        return worst

    def _touched(self, parts: Parts) -> tuple[Ints, Ints]:
        """Return the first and last finest cell that parts touch, numbers × parts; -1 where they leave."""
        size = ((self._high - self._low) / self._side)[:, None]
        low, high = self._low[:, None], self._high[:, None]
        first = np.floor((parts.lo - low) / size - 1e-6)
        last = np.floor((parts.hi - low) / size + 1e-6)
        fixed = ~self._turns[:, None]
        first = np.where(fixed & (first == -1) & (parts.lo >= low), 0, first)
        last = np.where(fixed & (last == self._side) & (parts.hi <= high), self._side - 1, last)
        whole = ~fixed & (last - first >= self._side)
        first, last = np.where(whole, 0, first), np.where(whole, self._side - 1, last)
        shift = np.where(fixed, 0, np.floor(first / self._side) * self._side)
        first, last = first - shift, last - shift
        ok = np.all(np.isfinite(first) & np.isfinite(last) & (first >= 0) & (last >= first), axis=0)
        ok &= np.all(~fixed | (last < self._side), axis=0)
        clean = [np.where(ok, end, -1).astype(np.int64) for end in (first, last)]
        return clean[0], clean[1]


class _LookUp:
    """The most steps over boxes of cells; axes that go round are doubled."""

    def __init__(self, times: NDArray[Any], turns: NDArray[np.bool_]) -> None:
        for axis in np.flatnonzero(turns).tolist():
            times = np.concatenate([times, times], axis=axis)
        self._times = times
        missing = (times < 0).astype(np.int64)
        for axis in range(times.ndim):
            missing = np.cumsum(missing, axis=axis)
        self._missing = np.pad(missing, [(1, 0)] * times.ndim)

    def worst(self, first: Ints, last: Ints) -> Ints:
        """Return the most steps over each box of cells, -1 if a cell has none."""
        n, count = first.shape
        total = np.zeros(count, np.int64)
        for corner in range(1 << n):
            place = tuple(np.where((corner >> j) & 1, last[j] + 1, first[j]).clip(0) for j in range(n))
            total += (-1) ** (n - corner.bit_count()) * self._missing[place]
        found = np.full(count, -1, np.int64)
        for i in np.flatnonzero((total == 0) & (first[0] >= 0)):
            cells = self._times[tuple(slice(first[j, i], last[j, i] + 1) for j in range(n))]
            found[i] = cells.max()
        return found


class _Reached:
    """The cells of a certificate that the starts come to."""

    def __init__(self, loop: Loop, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        n = loop.n
        self._loop = loop
        self.cells = typed(arrays["reached"], np.int64)
        self._origin, self._size = (typed(arrays[name], np.float64).reshape(n) for name in ("origin", "size"))
        self._sides = typed(arrays["sides"], np.int64).reshape(n)
        self._starts, self._keep = (
            typed(arrays[name], np.float64).reshape(2, n) for name in ("starts", "keep")
        )
        self._image = number(data, "image", 1, 10_000, whole=True)
        too_many = float(np.prod(self._sides.astype(float))) > 2.0**62
        if np.any(self._sides < 1) or too_many or not np.all(self._size > 0):
            raise ArchiveError("The cells of the certificate have no size.")
        if np.any(np.diff(self.cells) <= 0):
            raise ArchiveError("The cells of the certificate are not in order.")

    def are_closed(self) -> bool:
        """Return whether they hold the starts and all that they come to, without leaving what is allowed."""
        starts, keep = self._starts, self._keep
        if not np.all((starts[0] >= keep[0]) & (starts[1] <= keep[1])):
            return False
        first = _all_cells(starts[0], starts[1], self._origin, self._size, self._sides)
        if first is None or not self._hold(self._numbers(first)):
            return False
        after = self._after(self.cells)
        return after is not None and self._hold(after)

    def grow(self) -> None:
        """Add what they come to by the sets of this checker, which differ a little from the prover's."""
        new = self.cells
        for _ in range(_ROUNDS_OF_GROWTH):
            after = self._after(new)
            if after is None:
                return
            new = np.setdiff1d(after, self.cells)
            if not len(new):
                return
            self.cells = np.union1d(self.cells, new)

    def _hold(self, numbers: Ints) -> bool:
        place = np.searchsorted(self.cells, numbers).clip(max=len(self.cells) - 1)
        return len(self.cells) > 0 and bool(np.all(self.cells[place] == numbers))

    def _numbers(self, cells: Ints) -> Ints:
        """Return the numbers of cells, given by their coordinates."""
        found = np.zeros(len(cells), np.int64)
        for j, side in enumerate(self._sides.tolist()):
            found = found * side + cells[:, j]
        return found

    def _after(self, cells: Ints) -> Ints | None:
        """Return the cells that cells come to; None if something terminates, or leaves what is allowed."""
        n, keep, found = self._loop.n, self._keep, [np.empty(0, np.int64)]
        for first in range(0, len(cells), _TOGETHER):
            flat = cells[first : first + _TOGETHER].copy()
            place = np.empty((n, len(flat)))
            for j in range(n - 1, -1, -1):
                place[j] = flat % self._sides[j]
                flat = flat // self._sides[j]
            size = self._size[:, None]
            lo = self._origin[:, None] + (place - 1e-6) * size
            parts = boxes(lo, lo + (1 + 2e-6) * size, np.arange(len(flat)))
            for _ in range(self._image):
                groups = self._loop.advance(parts)
                for group, terminated in groups:
                    inside = np.all((group.lo >= keep[0][:, None]) & (group.hi <= keep[1][:, None]))
                    if terminated or not inside:
                        return None
                parts = joined([group for group, _ in groups])
                if len(parts.owner) > 100 * _TOGETHER:
                    return None
            for i in range(len(parts.owner)):
                touched = _touched_cells(parts, i, self._origin, self._size, self._sides)
                if touched is None:
                    return None
                found.append(self._numbers(touched))
            found = [np.unique(np.concatenate(found))]
        return found[0]


def _all_cells(lo: Floats, hi: Floats, origin: Floats, size: Floats, sides: Ints) -> Ints | None:
    """Return the coordinates of all cells that a box touches, cells × numbers; None if it leaves them."""
    first, last = np.floor((lo - origin) / size - 1e-6), np.floor((hi - origin) / size + 1e-6)
    if not np.all((first >= 0) & (last < sides) & np.isfinite(last)) or np.prod(last - first + 1) > 10**6:
        return None
    ranges = [np.arange(int(a), int(b) + 1) for a, b in zip(first, last, strict=True)]
    return np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(sides))


def _touched_cells(parts: Parts, i: int, origin: Floats, size: Floats, sides: Ints) -> Ints | None:
    """Return the cells that a part may have points in: some values of its symbols lead there."""
    cells = _all_cells(parts.lo[:, i], parts.hi[:, i], origin, size, sides)
    if cells is None or len(cells) == 1:
        return cells
    n, g = len(sides), parts.g[:, :, i]
    low, high = -np.ones((n, len(cells))), np.ones((n, len(cells)))
    possible = np.ones(len(cells), np.bool_)
    for j in range(n):
        bottom = origin[j] + (cells[:, j] - 2e-6) * size[j] - parts.c[j, i] - parts.r[j, i]
        top = origin[j] + (cells[:, j] + 1 + 2e-6) * size[j] - parts.c[j, i] + parts.r[j, i]
        for k in range(n):
            if abs(g[j, k]) < 1e-9 * size[j]:
                continue
            least = sum(np.minimum(g[j, m] * low[m], g[j, m] * high[m]) for m in range(n) if m != k)
            most = sum(np.maximum(g[j, m] * low[m], g[j, m] * high[m]) for m in range(n) if m != k)
            ends = np.stack([(bottom - most) / g[j, k], (top - least) / g[j, k]])
            low[k], high[k] = np.maximum(low[k], ends.min(axis=0)), np.minimum(high[k], ends.max(axis=0))
            possible &= low[k] <= high[k]
    return np.asarray(cells[possible])
