"""The partition: a forest of balls over the standard state-action cube."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import typed
from spaql.errors import ArchiveError, SettingError
from spaql.kernels.partition.balls import (
    BITS,
    INTERVAL,
    MAX_DEPTH,
    Balls,
    action_parts,
    coordinate,
    is_forest,
    locate,
    relevant,
    split,
)
from spaql.kernels.partition.standardise import coordinates

MAX_DIMS = 16
"""Most dimensions of states and actions: a split makes up to 2^dims balls."""
_KINDS = dict.fromkeys(("visits", "counts", "action_sizes", "dims"), np.int64) | {
    "first_child": np.int32,
    "q": np.float64,
}
"""The types of the arrays of a partition, by name."""


@dataclass(frozen=True)
class Relevant:
    """The balls relevant to a state, in the order of their actions: parallel arrays."""

    ball: NDArray[np.int32]
    depth: NDArray[np.int64]
    action_low: NDArray[np.int64]
    action_size: NDArray[np.int64]


@dataclass(frozen=True)
class Leaves:
    """All unsplit balls (arms) of one tree: parallel arrays, in the order of their index."""

    ball: NDArray[np.int64]
    depth: NDArray[np.int64]
    state_low: NDArray[np.float64]
    state_high: NDArray[np.float64]
    action_low: NDArray[np.int64]
    """First action of the range: an index of a finite list, a fixed-point coordinate of an interval."""
    action_size: NDArray[np.int64]


class Partition:
    """Balls as parallel arrays, 20 bytes each, that grow by doubling.

    A partition holds one tree of balls, or one for every time step (AQL). It lives in the standard
    cube: states in [-1, 1]^ds; an action dimension is a finite list, given as its length, or the
    interval [-1, 1], given as `Partition.INTERVAL`.

    Examples
    --------
    >>> partition = Partition(state_dims=2, action_sizes=[Partition.INTERVAL], q=200.0)
    >>> partition.split([0.3, -0.2], [0.5])
    >>> partition.arms, partition.n_balls
    (8, 9)
    >>> partition.relevant([0.3, -0.2]).ball
    array([5, 6], dtype=int32)
    """

    INTERVAL = INTERVAL

    def __init__(
        self, state_dims: int, action_sizes: Sequence[int], *, q: float = 0.0, trees: int = 1
    ) -> None:
        dims = state_dims + len(action_sizes)
        if dims > MAX_DIMS:
            raise SettingError(
                f"{state_dims} state and {len(action_sizes)} action dimensions are too many: each split "
                f"would make 2^{dims} balls, and {MAX_DIMS} dimensions are the most. Observe fewer "
                "quantities (gymnasium.wrappers.TransformObservation can select them)."
            )
        if state_dims < 1 or not action_sizes or min(action_sizes) < 1 or trees < 1:
            raise SettingError("A partition needs at least one state dimension, action and tree.")
        self.state_dims = state_dims
        self.trees = trees
        self.balls = Balls(
            first_child=np.full(trees, -1, np.int32),
            q=np.full(trees, q, np.float64),
            visits=np.zeros(trees, np.int64),
            counts=np.array([trees, trees], np.int64),
            action_sizes=np.array(action_sizes, np.int64),
        )

    @property
    def n_balls(self) -> int:
        """Number of balls, including split ones."""
        return int(self.balls.counts[0])

    @property
    def arms(self) -> int:
        """Number of unsplit balls in all trees."""
        return int(self.balls.counts[1])

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, including reserved capacity."""
        return sum(array.nbytes for array in self.balls)

    @property
    def children_at_most(self) -> int:
        """The most balls that one split can add."""
        return int(action_parts(self.balls.action_sizes)) << self.state_dims

    def reserve(self, balls: int) -> None:
        """Ensure capacity for this many more balls; the arrays at least double when they are full."""
        needed = self.n_balls + balls
        capacity = self.balls.q.shape[0]
        if needed <= capacity:
            return
        capacity = max(needed, 2 * capacity)
        used = self.n_balls
        grown = {}
        for name in ("first_child", "q", "visits"):
            old = getattr(self.balls, name)
            grown[name] = np.empty(capacity, old.dtype)
            grown[name][:used] = old[:used]
        self.balls = self.balls._replace(**grown)

    def relevant(self, state: Sequence[float], tree: int = 0) -> Relevant:
        """Return RELEVANT(x): the balls that hold a standard state together with some action."""
        point = self._state(state)
        found, count = relevant(self.balls, tree, point)
        return Relevant(found.ball[:count], found.depth[:count], found.low[:count], found.size[:count])

    def locate(self, state: Sequence[float], action: Sequence[float], tree: int = 0) -> int:
        """Return the ball whose domain holds a standard pair (x, a)."""
        return self._locate(state, action, tree)[0]

    def split(self, state: Sequence[float], action: Sequence[float], tree: int = 0) -> None:
        """Split the ball whose domain holds a standard pair (x, a)."""
        ball, depth, sizes = self._locate(state, action, tree)
        if depth >= MAX_DEPTH:
            raise SettingError(f"A ball of depth {depth} is too small to be split.")
        self.reserve(self.children_at_most)
        split(self.balls, ball, sizes, self.state_dims)

    def copy(self) -> Partition:
        """Return an independent copy without reserved capacity."""
        copy = object.__new__(Partition)
        copy.state_dims = self.state_dims
        copy.trees = self.trees
        used = self.n_balls
        copy.balls = Balls(
            self.balls.first_child[:used].copy(),
            self.balls.q[:used].copy(),
            self.balls.visits[:used].copy(),
            self.balls.counts.copy(),
            self.balls.action_sizes.copy(),
        )
        return copy

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the content as named arrays (see `from_arrays`)."""
        arrays = self.copy().balls._asdict()
        arrays["dims"] = np.array([self.state_dims, self.trees], np.int64)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Partition:
        """Return the partition of these `arrays`; raises `ArchiveError` if they do not form one."""
        try:
            if any(arrays[name].size > MAX_DIMS for name in ("dims", "counts", "action_sizes")):
                raise ValueError("too many dimensions")
            found = {name: np.array(typed(arrays[name], kind), order="C") for name, kind in _KINDS.items()}
            state_dims, trees = found.pop("dims").tolist()
            if trees > len(found["q"]):  # before anything of that size is allocated
                raise ValueError(f"{trees} trees of {len(found['q'])} balls")
            partition = cls(state_dims, found["action_sizes"].tolist(), trees=trees)
        except (KeyError, TypeError, ValueError, SettingError, OverflowError) as error:
            raise ArchiveError(f"The arrays do not form a partition: {error}.") from error
        partition.balls = Balls(**found)
        partition._check_sound()
        return partition

    def digest(self) -> str:
        """Return the SHA-256 of the content, which does not depend on reserved capacity."""
        sha = hashlib.sha256()
        for name, array in sorted(self.arrays().items()):
            sha.update(name.encode() + str(array.shape).encode() + array.tobytes())
        return sha.hexdigest()

    def leaves(self, tree: int = 0) -> Leaves:
        """Return all unsplit balls of a tree with their bounds."""
        levels = []
        for depth, level in enumerate(self._levels(np.array([tree]))):
            arms = self.balls.first_child[level[0]] < 0
            levels.append((np.full(int(arms.sum()), depth), *(array[arms] for array in level)))
        depth_, ball, corner, low, size = (np.concatenate(parts) for parts in zip(*levels, strict=True))
        order = np.argsort(ball)
        state_low = corner[order] / 2.0 ** (BITS - 1) - 1.0
        return Leaves(
            ball=ball[order],
            depth=depth_[order],
            state_low=state_low,
            state_high=state_low + 2.0 ** (1.0 - depth_[order])[:, np.newaxis],
            action_low=low[order],
            action_size=size[order],
        )

    def _levels(self, roots: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], ...]]:
        """Yield, for each depth, the balls with their state corners and action ranges."""
        n = len(roots)
        corner = np.zeros((n, self.state_dims), np.int64)
        low = np.zeros((n, len(self.balls.action_sizes)), np.int64)
        size = np.repeat(self.balls.action_sizes[np.newaxis], n, axis=0)
        level: tuple[NDArray[np.int64], ...] = (roots, corner, low, size)
        depth = 0
        while True:
            yield level
            inner = self.balls.first_child[level[0]] >= 0
            if not inner.any():
                return
            level = self._children(depth, *(array[inner] for array in level))
            depth += 1

    def _children(
        self,
        depth: int,
        ball: NDArray[np.int64],
        corner: NDArray[np.int64],
        low: NDArray[np.int64],
        size: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], ...]:
        """Return all children of split balls of one depth."""
        parts = np.prod(np.where(size > 1, 2, 1), axis=1)
        children = parts << self.state_dims
        parent = np.repeat(np.arange(len(ball)), children)
        child = np.arange(len(parent)) - np.repeat(np.cumsum(children) - children, children)
        orthant = child // parts[parent]
        part = child % parts[parent]
        corner = corner[parent]
        low = low[parent]
        size = size[parent]
        for j in range(self.state_dims):
            upper = (orthant >> (self.state_dims - 1 - j)) & 1
            corner[:, j] += upper << (BITS - 1 - depth)
        for j in range(size.shape[1]):
            divides = size[:, j] > 1
            half = size[:, j] // 2
            upper = divides & (part & 1 == 1)
            low[:, j] += upper * half
            size[:, j] = np.where(upper, size[:, j] - half, np.where(divides, half, size[:, j]))
            part = np.where(divides, part >> 1, part)
        return self.balls.first_child[ball].astype(np.int64)[parent] + child, corner, low, size

    def _state(self, state: Sequence[float]) -> NDArray[np.int64]:
        point = np.asarray(state, np.float64)
        if point.shape != (self.state_dims,):
            raise SettingError(
                f"The state has the shape {point.shape}, and must have {self.state_dims} numbers."
            )
        return coordinates(point)

    def _locate(
        self, state: Sequence[float], action: Sequence[float], tree: int
    ) -> tuple[int, int, NDArray[np.int64]]:
        fixed = np.array(
            [
                coordinate(float(a)) if size == INTERVAL else int(a)
                for a, size in zip(action, self.balls.action_sizes, strict=True)
            ],
            np.int64,
        )
        low = np.empty_like(fixed)
        size = np.empty_like(fixed)
        ball, depth = locate(self.balls, tree, self._state(state), fixed, low, size)
        return int(ball), int(depth), size

    def _check_sound(self) -> None:
        """Raise if a search in these arrays could fail or not terminate."""
        balls = self.balls
        used = len(self.balls.q)
        sound = (
            balls.first_child.shape == balls.q.shape == balls.visits.shape == (used,)
            and balls.counts.tolist() == [used, np.count_nonzero(balls.first_child < 0)]
            and bool(np.all(balls.action_sizes <= INTERVAL))
            and bool(np.all(balls.visits >= 0))
            and bool(np.isfinite(balls.q).all())
            and is_forest(balls, self.trees, self.state_dims)
        )
        if not sound:
            raise ArchiveError("The arrays do not form a partition: they are inconsistent.")
