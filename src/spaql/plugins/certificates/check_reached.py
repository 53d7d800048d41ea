"""The cells of a certificate that starts come to: a set that nothing leaves."""

from __future__ import annotations

import numpy as np

from spaql.archive import typed
from spaql.plugins.certificates.check_claim import CheckedClaim
from spaql.plugins.certificates.check_loop import Parts, boxes, joined
from spaql.plugins.certificates.check_sets import Floats
from spaql.plugins.certificates.check_tape import Arrays, Ints, require

_TOGETHER = 2_000
"""Cells that are followed at a time."""
_MOST_PARTS = 100 * _TOGETHER
_MOST_TOUCHED = 10**6
"""Most cells that one set may touch."""
_ROUNDS_OF_GROWTH = 50
_WIDER = 1e-6
"""By which cells are widened, in their sizes: more than all rounding of their ends."""
_EPS = 2.0**-52


class ReachedCells:
    """The cells of a certificate that the starts come to."""

    def __init__(self, claim: CheckedClaim, arrays: Arrays) -> None:
        n = claim.loop.n
        self._loop = claim.loop
        self._starts = claim.starts
        self._keep = claim.keep
        self._image = claim.image
        self.cells = typed(arrays["reached"], np.int64)
        self._origin, self._size = (typed(arrays[name], np.float64).reshape(n) for name in ("origin", "size"))
        self._sides = typed(arrays["sides"], np.int64).reshape(n)
        count = float(np.prod(self._sides.astype(float)))
        require(bool(np.all(self._sides >= 1)) and count <= 2.0**62, "the cells have no size")
        largest = np.abs(self._origin) + self._sides * self._size
        sound = (self._size > 0) & np.isfinite(largest) & (8 * _EPS * largest <= _WIDER * self._size)
        require(bool(np.all(sound)), "the cells have no size")
        require(self.cells.ndim == 1 and bool(np.all(np.diff(self.cells) > 0)), "the cells are not in order")
        inside = self.cells.size > 0 and self.cells[0] >= 0 and self.cells[-1] < count
        require(bool(inside), "there are no cells")

    def are_closed(self) -> bool:
        """Return whether they hold the starts and all that they come to, without leaving what is allowed."""
        starts = self._starts
        keep = self._keep
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
        return bool(np.all(self.cells[place] == numbers))

    def _numbers(self, cells: Ints) -> Ints:
        """Return the numbers of cells, given by their coordinates."""
        found = np.zeros(len(cells), np.int64)
        for j, side in enumerate(self._sides.tolist()):
            found = found * side + cells[:, j]
        return found

    def _after(self, cells: Ints) -> Ints | None:
        """Return the cells that cells come to; None if something terminates, or leaves what is allowed."""
        n = self._loop.n
        keep = self._keep
        found = [np.empty(0, np.int64)]
        for first in range(0, len(cells), _TOGETHER):
            flat = cells[first : first + _TOGETHER].copy()
            place = np.empty((n, len(flat)))
            for j in range(n - 1, -1, -1):
                place[j] = flat % self._sides[j]
                flat = flat // self._sides[j]
            size = self._size[:, None]
            lo = self._origin[:, None] + (place - _WIDER) * size
            parts = boxes(lo, lo + (1 + 2 * _WIDER) * size, np.arange(len(flat)))
            for _ in range(self._image):
                groups = list(self._loop.advance(parts))
                for group, terminated in groups:
                    inside = np.all((group.lo >= keep[0][:, None]) & (group.hi <= keep[1][:, None]))
                    if terminated or not inside:
                        return None
                if not groups:
                    return None
                parts = joined([group for group, _ in groups])
                if len(parts.owner) > _MOST_PARTS:
                    return None
            followed = np.zeros(place.shape[1], np.bool_)
            for i, owner in enumerate(parts.owner.tolist()):
                touched = _touched_cells(parts, i, self._origin, self._size, self._sides)
                if touched is None:
                    return None
                self._loop.work.spend(2 * n**3, len(touched))
                followed[owner] |= len(touched) > 0
                found.append(self._numbers(touched))
            if not followed.all():
                return None  # a cell that comes to nothing was lost
            found = [np.unique(np.concatenate(found))]
        return found[0]


def _all_cells(lo: Floats, hi: Floats, origin: Floats, size: Floats, sides: Ints) -> Ints | None:
    """Return the coordinates of all cells that a box touches, cells × numbers; None if it leaves them."""
    first = np.floor((lo - origin) / size - _WIDER)
    last = np.floor((hi - origin) / size + _WIDER)
    if (
        not np.all((first >= 0) & (last < sides) & np.isfinite(last))
        or np.prod(last - first + 1) > _MOST_TOUCHED
    ):
        return None
    ranges = [np.arange(int(a), int(b) + 1) for a, b in zip(first, last, strict=True)]
    return np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(sides))


def _touched_cells(parts: Parts, i: int, origin: Floats, size: Floats, sides: Ints) -> Ints | None:
    """Return the cells that a part may have points in: some values of its symbols lead there."""
    lo, hi = np.array([(x.lo[i], x.hi[i]) for x in parts.states]).T
    cells = _all_cells(lo, hi, origin, size, sides)
    if cells is None or len(cells) == 1:
        return cells
    n = len(sides)
    g = np.stack([x.g[:n, i] for x in parts.states])
    low = -np.ones((n, len(cells)))
    high = np.ones((n, len(cells)))
    possible = np.ones(len(cells), np.bool_)
    for j, x in enumerate(parts.states):
        error = x.g[n + j, i]
        bottom = origin[j] + (cells[:, j] - 2e-6) * size[j] - x.c[i] - error
        top = origin[j] + (cells[:, j] + 1 + 2e-6) * size[j] - x.c[i] + error
        for k in range(n):
            if abs(g[j, k]) < 1e-9 * size[j]:
                continue
            least = sum(np.minimum(g[j, m] * low[m], g[j, m] * high[m]) for m in range(n) if m != k)
            most = sum(np.maximum(g[j, m] * low[m], g[j, m] * high[m]) for m in range(n) if m != k)
            ends = np.stack([(bottom - most) / g[j, k], (top - least) / g[j, k]])
            low[k] = np.maximum(low[k], ends.min(axis=0))
            high[k] = np.minimum(high[k], ends.max(axis=0))
            possible &= low[k] <= high[k]
    return np.asarray(cells[possible])
