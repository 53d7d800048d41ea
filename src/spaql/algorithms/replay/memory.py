"""The replay memory: every transition of training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.errors import ArchiveError

Floats = NDArray[np.float64]
_COLUMNS = ("states", "actions", "rewards", "nexts", "ended")
_ROOM = 1024
"""Initial capacity in steps."""
LARGEST = 1e100
"""Bound on rewards, whose squares are summed."""
_EQUAL = 1e-9
"""Relative difference below which rewards count as equal."""
_QUIET = 20
"""Equal rewards of repeated actions before the first that differs, after which that is no noise."""
_TESTED = 25
"""Steps after which, and after their doubles, it is tested whether rewards depend on the state."""
_SIGNIFICANT = 10.0
"""The F statistic from which on they do."""


class KnownEnds(NamedTuple):
    """An end condition that is known, and not only seen in the transitions."""

    points: Floats
    """States spread over the range of the memory and around it, one per row."""
    ended: NDArray[np.bool_]
    """Whether an episode ends in each."""
    reward: float
    """Mean reward of a step that ends an episode, if the memory has none."""


class Memory:
    """Transitions in temporal order, and where episodes begin.

    Examples
    --------
    >>> memory = Memory(state_dims=2, action_dims=1)
    >>> memory.begin()
    >>> memory.add(np.zeros(2), np.ones(1), -1.0, np.ones(2), ended=True)
    >>> len(memory), memory.rewards, memory.best_to_go(0.99)
    (1, array([-1.]), -1.0)
    """

    def __init__(self, state_dims: int, action_dims: int) -> None:
        self._count = 0
        self._columns: dict[str, NDArray[Any]] = {
            "states": np.empty((0, state_dims)),
            "actions": np.empty((0, action_dims)),
            "rewards": np.empty(0),
            "nexts": np.empty((0, state_dims)),
            "ended": np.empty(0, np.bool_),
        }
        self._begins: list[int] = []
        self._goal_seen = False
        self.known_ends: KnownEnds | None = None

    def __len__(self) -> int:
        return self._count

    def begin(self) -> None:
        """Start an episode."""
        if self._begins and self._begins[-1] == self._count:
            return
        self._begins.append(self._count)

    def add(self, state: Floats, action: Floats, reward: float, after: Floats, *, ended: bool) -> None:
        """Add a transition; `ended` means that the episode terminated, and was not truncated."""
        self._write((state, action, reward, after, ended), 1)

    def add_episode(self, observations: Floats, actions: Floats, rewards: Floats, *, ended: bool) -> None:
        """Add all transitions of an episode, whose observations are one more than its actions."""
        self.begin()
        last = np.arange(len(rewards)) == len(rewards) - 1
        self._write((observations[:-1], actions, rewards, observations[1:], last & ended), len(rewards))

    def append(self, other: Memory) -> None:
        """Add all episodes of another memory."""
        self._begins += (len(self) + other.begins).tolist()
        self._write(other._used.values(), len(other))

    def _write(self, values: Iterable[Any], steps: int) -> None:
        """Add values of all columns, for which room is made if needed."""
        last = self._count + steps
        room = len(self._columns["rewards"])
        if last > room:
            room = max(_ROOM, 2 * room, last)
            for name, column in self._used.items():
                self._columns[name] = np.empty((room, *column.shape[1:]), column.dtype)
                self._columns[name][: self._count] = column
        for name, value in zip(_COLUMNS, values, strict=True):
            self._columns[name][self._count : last] = value
        self._count = last

    @property
    def _used(self) -> dict[str, NDArray[Any]]:
        """The columns, without the room for further steps."""
        return {name: self._columns[name][: self._count] for name in _COLUMNS}

    def _like(self, columns: dict[str, NDArray[Any]], begins: list[int]) -> Memory:
        """Return a memory of other steps with the same end condition."""
        memory = Memory(0, 0)
        memory._columns = columns
        memory._begins = begins
        memory._count = len(columns["rewards"])
        memory.known_ends = self.known_ends
        return memory

    @property
    def states(self) -> Floats:
        """The state before each step."""
        return self._columns["states"][: self._count]

    @property
    def actions(self) -> Floats:
        """The action of each step: the index of a Discrete action, or numbers in [-1, 1]."""
        return self._columns["actions"][: self._count]

    @property
    def rewards(self) -> Floats:
        """The reward of each step."""
        return self._columns["rewards"][: self._count]

    @property
    def nexts(self) -> Floats:
        """The state after each step."""
        return self._columns["nexts"][: self._count]

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Whether the episode terminated, for each step."""
        return self._columns["ended"][: self._count]

    @property
    def begins(self) -> NDArray[np.int64]:
        """The first step of each episode."""
        return np.array([i for i in self._begins if i < self._count], np.int64)

    @property
    def ends(self) -> NDArray[np.int64]:
        """The step after the last one of each episode."""
        return np.append(self.begins[1:], self._count)

    @property
    def longest(self) -> int:
        """Length of the longest episode."""
        return int((self.ends - self.begins).max())

    @property
    def goal_seen(self) -> bool:
        """Whether returns depend on the states visited.

        They do if an episode terminated, or if rewards of the same action differ, and not by noise alone:
        noise on an action that costs makes them differ, too. Once true, it stays true.
        """
        self._goal_seen = self._goal_seen or bool(self.ended.any()) or self._rewards_differ()
        return self._goal_seen

    def _rewards_differ(self) -> bool:
        _, first, same = np.unique(self.actions, axis=0, return_index=True, return_inverse=True)
        action = same.ravel()
        difference = np.abs(self.rewards - self.rewards[first[action]])
        differing = np.flatnonzero(difference > _EQUAL * (1.0 + np.abs(self.rewards)))
        if not len(differing):
            return False
        repeated = np.arange(self._count) > first[action]
        if repeated[: differing[0]].sum() >= _QUIET:
            return True
        doublings = range((self._count // _TESTED).bit_length())
        return any(self._depend_on_state(action[: _TESTED << k]) for k in doublings)

    def _depend_on_state(self, action: NDArray[np.int64]) -> bool:
        """Whether rewards of each action depend on the state, by an F test of linear and square terms."""
        count = len(action)
        rewards = self.rewards[:count]
        states = self.states[:count]
        size = np.bincount(action)
        off = rewards - (np.bincount(action, rewards) / np.maximum(size, 1))[action]
        z = (states - states.mean(axis=0)) / (states.std(axis=0) + 1e-9)
        terms = np.concatenate([np.ones((count, 1)), z, z * z], axis=1)
        weights, _, rank, _ = np.linalg.lstsq(terms, off, rcond=1e-9)
        left = float(((off - terms @ weights) ** 2).sum())
        free = count - np.count_nonzero(size) - rank
        explained = float((off * off).sum()) - left
        return bool(rank > 1 and free > rank and explained * free > _SIGNIFICANT * (rank - 1) * left)

    def best_to_go(self, discount: float) -> float:
        """Return the best discounted return from any step to the end of its episode."""
        best = -np.inf
        for first, last in zip(self.begins, self.ends, strict=True):
            to_go = 0.0
            for reward in self.rewards[first:last][::-1]:
                to_go = reward + discount * to_go
                best = max(best, to_go)
        return float(best)

    def until(self, count: int) -> Memory:
        """Return a memory of the first steps, which shares its arrays with this one."""
        return self._like({name: column[:count] for name, column in self._columns.items()}, self._begins)

    def unrewarded(self) -> Memory:
        """Return a memory of the same steps with rewards of 0."""
        return self._like(self._used | {"rewards": np.zeros(self._count)}, self._begins)

    def with_states(self, states: Floats, nexts: Floats) -> Memory:
        """Return a memory of the same steps with other states."""
        return self._like(self._used | {"states": states, "nexts": nexts}, self._begins)

    def only(self, episodes: NDArray[np.bool_]) -> Memory:
        """Return a memory of the episodes for which the mask is true."""
        lengths = self.ends - self.begins
        rows = np.repeat(episodes, lengths)
        first = np.cumsum(lengths * episodes) - lengths * episodes
        return self._like(
            {name: column[rows] for name, column in self._used.items()}, first[episodes].tolist()
        )

    def doubled(self, states: Callable[[Floats], Floats], actions: Callable[[Floats], Floats]) -> Memory:
        """Return a memory of these episodes, and of the same once more with states and actions mapped."""
        images = {
            "states": states(self.states),
            "actions": actions(self.actions),
            "rewards": self.rewards,
            "nexts": states(self.nexts),
            "ended": self.ended,
        }
        columns = {name: np.concatenate([column, images[name]]) for name, column in self._used.items()}
        begins = self.begins
        both = self._like(columns, [*begins.tolist(), *(begins + self._count).tolist()])
        if (known := self.known_ends) is not None:
            both.known_ends = known._replace(
                points=np.concatenate([known.points, states(known.points)]), ended=np.tile(known.ended, 2)
            )
        return both

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the content as arrays (see `from_arrays`)."""
        columns = {name: column.copy() for name, column in self._used.items()}
        return columns | {"begins": np.array(self._begins, np.int64)}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], state_dims: int, action_dims: int, listed: int
    ) -> Memory:
        """Return the memory of these `arrays`; raises `ArchiveError` if they do not form one.

        `listed` is the number of Discrete actions, or 0 for a Box.
        """
        memory = cls(state_dims, action_dims)
        count = len(arrays["rewards"])
        for name, column in memory._columns.items():
            if arrays[name].dtype != column.dtype or arrays[name].shape != (count, *column.shape[1:]):
                raise ArchiveError(f"The memory in the file has {name} of the wrong type or shape.")
        if not all(np.isfinite(arrays[name]).all() for name in _COLUMNS):
            raise ArchiveError("The memory in the file holds NaN.")
        if np.any(np.abs(arrays["rewards"]) > LARGEST):
            raise ArchiveError("The memory in the file holds rewards out of range.")
        actions = arrays["actions"]
        if listed and np.any((actions < 0) | (actions >= listed) | (actions % 1 != 0)):
            raise ArchiveError(f"The memory in the file holds actions other than 0 to {listed - 1}.")
        begins = arrays["begins"]
        ordered = begins.dtype.kind == "i" and begins.ndim == 1 and np.all(np.diff(begins) > 0)
        if not ordered or np.any(begins[:1] != 0) or np.any(begins > count) or (count and not len(begins)):
            raise ArchiveError("The memory in the file has episodes that are not in order.")
        columns = {name: np.array(arrays[name], order="C") for name in _COLUMNS}
        return memory._like(columns, begins.tolist())
