"""The replay memory of all transitions, and the encoding of states and actions for learned plants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.algorithms.saved import Arrays, require, restored
from spaql.kernels.numerics import Bools, Floats, Ints, moments
from spaql.simulate import Episode

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
_LEVELS = {1: 5, 2: 3}
"""Equidistant levels of each number of an action in planning, by how many numbers it has; for more numbers,
one is varied at a time."""


class KnownEnds(NamedTuple):
    """An end condition that is known, and not only seen in the transitions."""

    points: Floats
    """States spread over the range of the memory and around it, one per row."""
    ended: Bools
    """Whether an episode ends in each."""
    reward: float
    """Mean reward of a step that ends an episode, if the memory has none."""


class ReplayMemory:
    """Transitions in temporal order, and where episodes begin.

    Examples
    --------
    >>> memory = ReplayMemory(state_dims=2, action_dims=1)
    >>> memory.begin()
    >>> memory.add(np.zeros(2), np.ones(1), -1.0, np.ones(2), ended=True)
    >>> len(memory), memory.rewards, memory.best_to_go(0.99)
    (1, array([-1.]), -1.0)
    """

    def __init__(self, state_dims: int, action_dims: int) -> None:
        self._count = 0
        self._columns: Arrays = {
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

    def add_played(self, episode: Episode, code: ActionCode) -> bool:
        """Add an episode, unless the plant exploded in it; returns whether it is added."""
        values = np.concatenate([episode.observations.ravel(), episode.rewards])
        is_finite = bool((np.abs(values) < LARGEST).all())
        if is_finite:
            actions = code.standard(episode.actions)
            self.add_episode(episode.observations, actions, episode.rewards, ended=episode.terminated)
        return is_finite

    def append(self, other: ReplayMemory) -> None:
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
    def _used(self) -> Arrays:
        """The columns, without the room for further steps."""
        return {name: self._columns[name][: self._count] for name in _COLUMNS}

    def _like(self, columns: Arrays, begins: list[int]) -> ReplayMemory:
        """Return a memory of other steps with the same end condition."""
        memory = ReplayMemory(0, 0)
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
    def ended(self) -> Bools:
        """Whether the episode terminated, for each step."""
        return self._columns["ended"][: self._count]

    @property
    def begins(self) -> Ints:
        """The first step of each episode."""
        return np.array([i for i in self._begins if i < self._count], np.int64)

    @property
    def ends(self) -> Ints:
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

    def _depend_on_state(self, action: Ints) -> bool:
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

    def until(self, count: int) -> ReplayMemory:
        """Return a memory of the first steps, which shares its arrays with this one."""
        return self._like({name: column[:count] for name, column in self._columns.items()}, self._begins)

    def unrewarded(self) -> ReplayMemory:
        """Return a memory of the same steps with rewards of 0."""
        return self._like(self._used | {"rewards": np.zeros(self._count)}, self._begins)

    def with_states(self, states: Floats, nexts: Floats) -> ReplayMemory:
        """Return a memory of the same steps with other states."""
        return self._like(self._used | {"states": states, "nexts": nexts}, self._begins)

    def only(self, episodes: Bools) -> ReplayMemory:
        """Return a memory of the episodes for which the mask is true."""
        lengths = self.ends - self.begins
        rows = np.repeat(episodes, lengths)
        first = np.cumsum(lengths * episodes) - lengths * episodes
        return self._like(
            {name: column[rows] for name, column in self._used.items()}, first[episodes].tolist()
        )

    def doubled(
        self, states: Callable[[Floats], Floats], actions: Callable[[Floats], Floats]
    ) -> ReplayMemory:
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

    def arrays(self) -> Arrays:
        """Return the content as arrays (see `from_arrays`)."""
        columns = {name: column.copy() for name, column in self._used.items()}
        return columns | {"begins": np.array(self._begins, np.int64)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, state_dims: int, action_dims: int, listed: int) -> ReplayMemory:
        """Return the memory of these `arrays`; raises `ArchiveError` if they do not form one.

        `listed` is the number of Discrete actions, or 0 for a Box.
        """
        memory = cls(state_dims, action_dims)
        count = len(arrays["rewards"])
        columns = {
            name: restored(arrays, name, (count, *column.shape[1:]), column.dtype)
            for name, column in memory._columns.items()
        }
        begins = restored(arrays, "begins", (None,), np.int64)
        actions = columns["actions"]
        require(
            "memory",
            (np.abs(columns["rewards"]) <= LARGEST).all(),
            not listed or ((actions >= 0) & (actions < listed) & (actions % 1 == 0)).all(),
            (np.diff(begins) > 0).all(),
            (begins[:1] == 0).all(),
            (begins <= count).all(),
            len(begins) or not count,
        )
        return memory._like(columns, begins.tolist())


@dataclass(frozen=True)
class Scale:
    """States with mean 0 and standard deviation 1 over the memory: z = (s - mean) / deviation."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, memory: ReplayMemory) -> Scale:
        """Return the scale of the states of a memory."""
        mean, deviation = moments(memory.states)
        return cls(mean, deviation + 1e-9)

    def z(self, states: Floats) -> Floats:
        """Return standardised states."""
        return np.asarray((states - self.mean) / self.deviation)


@dataclass(frozen=True)
class ActionCode:
    """Conversions between the actions of the memory, of a learned plant, and of the environment."""

    space: Box | Discrete

    @property
    def n_listed(self) -> int:
        """The number of Discrete actions; 0 for a Box."""
        return int(self.space.n) if isinstance(self.space, Discrete) else 0

    @property
    def listed(self) -> bool:
        """Whether actions are Discrete."""
        return self.n_listed > 0

    @property
    def numbers(self) -> int:
        """How many numbers an action has in the memory."""
        return 1 if isinstance(self.space, Discrete) else int(np.prod(self.space.shape))

    @property
    def middle(self) -> Floats:
        """The centre of a Box."""
        assert isinstance(self.space, Box)
        return (self.space.low.astype(np.float64) + self.space.high).ravel() / 2

    @property
    def half(self) -> Floats:
        """Half the sides of a Box."""
        assert isinstance(self.space, Box)
        return (self.space.high.astype(np.float64) - self.space.low).ravel() / 2

    def tried(self) -> Floats:
        """Return the actions that planning considers, one per row."""
        if isinstance(self.space, Discrete):
            return np.arange(float(self.space.n))[:, np.newaxis]
        if self.numbers in _LEVELS:
            levels = np.linspace(-1.0, 1.0, _LEVELS[self.numbers])
            return np.array(list(product(levels, repeat=self.numbers)))
        steps = np.eye(self.numbers)
        return np.concatenate([np.zeros((1, self.numbers)), steps, -steps])

    def inputs(self, actions: Floats, *, squares: bool) -> Floats:
        """Return the inputs of a plant: Discrete actions one-hot, a Box as numbers and their squares."""
        if isinstance(self.space, Discrete):
            return np.asarray(actions == np.arange(1.0, float(self.space.n)), np.float64)
        return np.concatenate([actions, actions * actions], axis=1) if squares else actions

    def raw_numbers(self, actions: Floats) -> Floats:
        """Return actions of the memory, one per row, as numbers in the units of the environment."""
        if isinstance(self.space, Discrete):
            return np.asarray(actions + float(self.space.start))
        return np.asarray(self.middle + self.half * actions)

    @property
    def resting(self) -> Floats:
        """The action, in these units, that counts as the last one before an episode: next to 0."""
        if isinstance(self.space, Discrete):
            return np.array([float(self.space.start)])
        return np.asarray(np.clip(0.0, self.middle - self.half, self.middle + self.half))

    def raw(self, action: Floats) -> Any:
        """Return an action of the memory as one of the environment."""
        if isinstance(self.space, Discrete):
            return np.int64(self.space.start + action[0])
        return (self.middle + self.half * action).reshape(self.space.shape).astype(self.space.dtype)

    def standard(self, raw: NDArray[Any]) -> Floats:
        """Return actions of the environment, one per row, as actions of the memory."""
        rows = raw.astype(np.float64).reshape(len(raw), -1)
        if isinstance(self.space, Discrete):
            return rows - float(self.space.start)
        return np.asarray((rows - self.middle) / self.half)


def regressors(z: Floats, inputs: Floats) -> Floats:
    """Return what an affine law of motion is fitted to: 1, standardised states, and the inputs of a plant."""
    return np.concatenate([np.ones((len(z), 1)), z, inputs], axis=1)


def spaced(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """Return some of the rows, equally spaced; all if there are no more than `most`."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
