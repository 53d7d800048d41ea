"""Rule trees: policies as if-then rules over raw observations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SettingError
from spaql.formatting import counted
from spaql.kernels.controller import ControllerArrays
from spaql.policy.arrays import frame_of, tree_arrays
from spaql.policy.crossings import planes
from spaql.policy.explanation import DIGITS, Explanation, Outcome, conditions, explain_cell, observed
from spaql.policy.leaves import Laws, Leaves, SwitchingLaws, affine, first_equal
from spaql.policy.mirrored import folded
from spaql.policy.policy import Policy, Rng
from spaql.policy.text import leaf_text, sum_text, text, values_text
from spaql.spaces import action_names, count_actions, observation_names

_LOCKS = 2**14
"""The most locks of a tree: each takes many times more memory than in a file."""
_MOST = 2**62
"""Leaves that are counted: of shared subtrees there may be more."""


@dataclass(frozen=True, eq=False)
class Lock:
    """A box `low <= x < high` of the numbers that rules compare, in which a person has fixed the action."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    row: int
    """The row in the table of leaves."""


@dataclass(frozen=True, eq=False)
class RuleTree(Policy):
    """A binary decision tree over raw observations, which is a policy.

    Nodes are rows of parallel arrays, node 0 the root, children after their parents. Node i asks whether
    `x[feature[i]] < threshold[i]`, in double precision, and goes to `left[i]` if so, else to `right[i]`. The
    numbers x are those of the observation, and after them its weighted sums by `combinations`; a sum that is
    NaN, because infinite observations cancel in it, is not below any threshold. A node may be the child of
    several: equal subtrees are stored once in memory, and in a file only equal leaves.

    Examples
    --------
    >>> from spaql.policy import Choices
    >>> tree = RuleTree(
    ...     feature=np.array([0, -1, -1]),
    ...     threshold=np.array([0.5, 0.0, 0.0]),
    ...     left=np.array([1, -1, -1]),
    ...     right=np.array([2, -1, -1]),
    ...     leaf=np.array([-1, 0, 1]),
    ...     leaves=Choices(np.array([0, 1])),
    ...     observation_space=Box(-1.0, 1.0, (1,)),
    ...     action_space=Discrete(2),
    ...     observations=("level [m]",),
    ...     actions=("close", "open"),
    ... )
    >>> print(tree)
    if level [m] < 0.5:
        close
    else:
        open
    >>> tree.act(np.array([[0.4], [0.5]]))
    array([0, 1])
    >>> int(tree.predict([0.4])[0])
    0
    """

    feature: NDArray[np.int32]
    """The number that a node compares; -1 for a leaf."""
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaf: NDArray[np.int32]
    """The row of a leaf in the table of leaves; -1 for inner nodes."""
    leaves: Leaves
    """The table of leaves."""
    observation_space: Box | Discrete
    action_space: Box | Discrete
    observations: tuple[str, ...] = ()
    """Names of the numbers of an observation, with their units."""
    actions: tuple[str, ...] = ()
    """Names of the actions of a list, or of the numbers of an action, with their units."""
    smallest: bool = False
    """Whether it is proven that no tree of fewer leaves has the same actions, of those whose rules compare
    single numbers of an observation, with leaves from the same table."""
    locks: tuple[Lock, ...] = ()
    """Boxes in which trees made from this one must have the same actions."""
    within: Box | None = None
    """Bounds within which it agrees with the policy that it was made from; None if everywhere."""
    combinations: NDArray[np.float64] = ()  # type: ignore[assignment]
    """The weights of sums that rules compare: sums × numbers of an observation."""

    def __post_init__(self) -> None:
        kinds = {"feature": np.int32, "threshold": np.float64}
        kinds |= dict.fromkeys(("left", "right", "leaf"), np.int32)
        for name, kind in kinds.items():
            array = np.array(getattr(self, name), kind)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        combinations = np.array(self.combinations, np.float64)
        if not combinations.size:
            combinations = combinations.reshape(0, self.dims)
        combinations.setflags(write=False)
        object.__setattr__(self, "combinations", combinations)
        observations = observation_names(self.observation_space, self.observations)
        object.__setattr__(self, "observations", observations)
        object.__setattr__(self, "actions", action_names(self.action_space, self.actions))
        self._check()
        self.leaves.check(self.dims, self.action_space)

    @cached_property
    def arrays(self) -> ControllerArrays:
        """The controller as the closed loop reads it."""
        ends = (self.leaves.low, self.leaves.high) if isinstance(self.leaves, Laws) else None
        return tree_arrays(self, frame_of(self.dims, self.action_space, ends))

    @property
    def dims(self) -> int:
        """Length of an observation."""
        return int(np.prod(self.observation_space.shape or (1,)))

    @property
    def width(self) -> int:
        """How many numbers rules can compare: those of an observation, and its weighted sums."""
        return self.dims + len(self.combinations)

    def numbers(self, batch: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for rows of observations, the numbers that rules compare."""
        if not len(self.combinations):
            return batch
        gain = np.broadcast_to(self.combinations, (len(batch), *self.combinations.shape))
        with np.errstate(invalid="ignore", over="ignore"):
            sums = affine(np.zeros((len(batch), len(self.combinations))), gain, batch)
        return np.concatenate([batch, sums], axis=1)

    def number_names(self, digits: int | None = None) -> tuple[str, ...]:
        """Return the names of the numbers that rules compare; a sum is written out, rounded to digits."""
        sums = (sum_text(row, self.observations, digits) for row in self.combinations)
        return (*self.observations, *sums)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of the printed tree, with shared subtrees counted each time."""
        return int(self._sizes[0])

    @property
    def n_nodes(self) -> int:
        """Number of different nodes, with shared subtrees counted once."""
        return len(self.feature)

    @property
    def n_numbers(self) -> int:
        """How many numbers a person has to read to know the tree.

        Those are the threshold of each different rule, the weights of each sum that rules compare, and of
        each different leaf its constants, or the offsets and gains of its laws. Numbers that are 0 do not
        count except as thresholds, nor do actions of a list, nor the bounds that all laws share.
        """
        inner = self.feature >= 0
        sums = np.unique(self.feature[inner & (self.feature >= self.dims)]) - self.dims
        rows = np.unique(first_equal(self.leaves)[self.leaf[~inner]])
        weights = np.count_nonzero(self.combinations[sums])
        return int(np.count_nonzero(inner) + weights + self.leaves.n_numbers(rows))

    @property
    def depth(self) -> int:
        """The largest number of comparisons before an action."""
        return int(self._depths[0])

    @property
    def default_action(self) -> tuple[float, ...]:
        """The action where none can be computed: the first of a list, or the one nearest to 0."""
        if isinstance(self.action_space, Discrete):
            return (float(self.action_space.start),)
        low, high = (end.astype(np.float64) for end in (self.action_space.low, self.action_space.high))
        return tuple(np.clip(0.0, low, high).ravel().tolist())

    def act(self, observations: Any, steps: NDArray[np.int64] | None = None, rng: Rng | None = None) -> Any:
        """Return the actions for a batch of observations, in the form of the action space.

        They depend on neither the time step nor a random number. Where infinite observations cancel in an
        affine law, the default action is returned.
        """
        batch = np.asarray(observations, np.float64).reshape(-1, self.dims)
        rows = self.find(batch)
        with np.errstate(invalid="ignore", over="ignore"):
            raw: NDArray[Any] = self.leaves.give(rows, batch)
        if not isinstance(self.action_space, Discrete):
            raw = np.where(np.isnan(raw), self.default_action, raw).astype(self.action_space.dtype)
        return raw

    def explain(self, observation: Any) -> Explanation:
        """Explain the action for an observation: the rule that was followed, and what would change it."""
        point, named = observed(observation, self.observations)
        number, fold = self.leaf_number(point), folded(self)
        low, high, _ = self.box(number)
        listed, same = isinstance(self.action_space, Discrete), first_equal(self.leaves)
        oblique = planes(self.combinations, self.thresholds[self.dims :], self.leaves)

        def play(batch: NDArray[np.float64]) -> NDArray[Any]:
            return np.asarray(self.act(batch)).reshape(len(batch), -1)

        return explain_cell(
            point,
            named,
            conditions(low, high, self.number_names(DIGITS)),
            f"leaf {number} of {self.n_leaves}" if fold is None else fold.place(point),
            self.thresholds[: self.dims],
            self.observation_space,
            play if listed else lambda batch: same[self.find(batch)][:, np.newaxis],
            play,
            self._outcome,
            crossings=lambda j: oblique.crossings(point, j),
            listed=listed,
        )

    def _outcome(self, point: NDArray[np.float64]) -> Outcome:
        batch, leaves = point[np.newaxis], self.leaves
        rows = self.find(batch)
        with np.errstate(invalid="ignore", over="ignore"):
            done = np.atleast_1d(leaves.give(rows, batch)[0])
        # As in `act`: where infinite observations cancel in a law, the default action.
        value = tuple(np.where(np.isnan(done), self.default_action, done).astype(done.dtype).tolist())
        row, described = int(rows[0]), leaf_text(self, int(rows[0]), DIGITS)
        if isinstance(leaves, SwitchingLaws):
            law = described if leaves.constant(row) is None else ""
            return Outcome(self.actions[int(value[0]) - leaves.start], value, law)
        if isinstance(leaves, Laws):
            return Outcome(values_text(self.actions, value, DIGITS), value, described)
        return Outcome(described, value)

    def find(self, batch: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return, for rows of observations, the rows in the table of leaves."""
        return self.leaf[self.find_nodes(batch)].astype(np.int64)

    def find_nodes(self, batch: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the leaf node of each row of observations."""
        nan = np.isnan(batch).any(axis=1)
        if nan.any():
            row = int(np.flatnonzero(nan)[0])
            raise BadEnvironmentError(f"Observation {row} of the batch holds NaN: {batch[row]}.")
        numbers = self.numbers(batch)
        node = np.zeros(len(batch), np.int64)
        on_the_way = np.flatnonzero(self.feature[node] >= 0)
        while len(on_the_way):
            at = node[on_the_way]
            lower = numbers[on_the_way, self.feature[at]] < self.threshold[at]
            node[on_the_way] = np.where(lower, self.left[at], self.right[at])
            on_the_way = on_the_way[self.feature[node[on_the_way]] >= 0]
        return node

    def action_number(self, given: Any) -> int:
        """Return the number of an action of a list, given by its number or its name."""
        space = self.action_space
        assert isinstance(space, Discrete)
        first, names = int(space.start), list(self.actions)
        if isinstance(given, str) and given in names:
            return first + names.index(given)
        if np.size(given) == 1 and (number := np.ravel(given)[0]) in range(first, first + len(names)):
            return int(number)
        known = ", ".join(f"{first + i} ({name})" for i, name in enumerate(names))
        raise SettingError(f"There is no action {given!r}: there are {known}.")

    @cached_property
    def thresholds(self) -> tuple[NDArray[np.float64], ...]:
        """The different thresholds of each number that rules compare, in ascending order."""
        inner = self.feature >= 0
        return tuple(np.unique(self.threshold[inner & (self.feature == j)]) for j in range(self.width))

    def leaf_number(self, point: NDArray[np.float64]) -> int:
        """Return the number of the leaf of one observation; leaves are counted from 1 in printed order."""
        node, before = 0, 0
        numbers = self.numbers(point[np.newaxis])[0]
        while (j := int(self.feature[node])) >= 0:
            if numbers[j] < self.threshold[node]:
                node = int(self.left[node])
            else:
                before += int(self._sizes[self.left[node]])
                node = int(self.right[node])
        return before + 1

    def box(self, leaf: int) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """Return the bounds `low <= x < high` of a leaf, given by its number, and its row in the table.

        x are the numbers that rules compare.
        """
        low, high = np.full(self.width, -np.inf), np.full(self.width, np.inf)
        node, left_of = 0, leaf - 1
        while (j := int(self.feature[node])) >= 0:
            cut, lower = float(self.threshold[node]), int(self.left[node])
            if left_of < self._sizes[lower]:
                high[j] = min(high[j], cut)
                node = lower
            else:
                low[j] = max(low[j], cut)
                left_of -= int(self._sizes[lower])
                node = int(self.right[node])
        return low, high, int(self.leaf[node])

    def way_to(self, rule: int) -> list[tuple[int, bool]]:
        """Return the path to a rule, given by its number: each node, and whether it continues to the left.

        Rules are counted from 1 in printed order; the last node is the rule itself.
        """
        node, left_of = 0, rule - 1
        way = []
        while left_of:
            lower = int(self.left[node])
            before = int(self._sizes[lower]) - 1  # a binary tree has one rule fewer than leaves
            way.append((node, left_of <= before))
            left_of -= 1 if left_of <= before else before + 1
            node = lower if way[-1][1] else int(self.right[node])
        return [*way, (node, True)]

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """Number of leaves under each node."""
        sizes = np.ones(self.n_nodes, np.int64)
        for i in range(self.n_nodes - 1, -1, -1):
            if self.feature[i] >= 0:
                sizes[i] = min(sizes[self.left[i]] + sizes[self.right[i]], _MOST)
        return sizes

    @cached_property
    def _depths(self) -> NDArray[np.int64]:
        """The largest number of comparisons from each node on."""
        depths = np.zeros(self.n_nodes, np.int64)
        for i in range(self.n_nodes - 1, -1, -1):
            if self.feature[i] >= 0:
                depths[i] = 1 + max(depths[self.left[i]], depths[self.right[i]])
        return depths

    def _check(self) -> None:
        """Refuse arrays that are not a tree, so that a lookup always ends."""
        n = self.n_nodes
        arrays = (self.threshold, self.left, self.right, self.leaf)
        if n < 1 or any(array.shape != (n,) for array in arrays) or self.feature.ndim != 1:
            raise SettingError("A rule tree has a row for each node in every array, and one node at least.")
        inner, place = self.feature >= 0, np.arange(n)
        children = np.stack([self.left, self.right])[:, inner]
        shape = self.combinations.shape
        if shape[1:] != (self.dims,) or not np.isfinite(self.combinations).all():
            raise SettingError(f"Sums of observations have {self.dims} finite weights each.")
        if not self.combinations.any(axis=1).all():
            raise SettingError("A sum of observations has a weight that is not 0.")
        if np.any(self.feature >= self.width) or np.isnan(self.threshold[inner]).any():
            raise SettingError(f"Rules compare the numbers 0 to {self.width - 1}, with a threshold each.")
        if np.any(children <= place[inner]) or np.any(children >= n):
            raise SettingError("The children of a node come after it.")
        if np.any(self.leaf[~inner] < 0) or np.any(self.leaf[~inner] >= len(self.leaves)):
            raise SettingError("Every leaf names a row in the table of leaves.")
        if len(self.locks) > _LOCKS:
            raise SettingError(f"A tree has at most {_LOCKS} locks.")
        shapes = {array.shape for lock in self.locks for array in (lock.low, lock.high)}
        if shapes - {(self.width,)} or any(not 0 <= lock.row < len(self.leaves) for lock in self.locks):
            raise SettingError(
                "Every lock names a row in the table of leaves, and a box of the numbers that rules compare."
            )
        if len(self.observations) != self.dims:
            raise SettingError(f"There are {self.dims} numbers in an observation to name.")
        if len(self.actions) != (expected := count_actions(self.action_space)):
            raise SettingError(f"There are {expected} actions to name.")

    def __repr__(self) -> str:
        return f"RuleTree({counted(self.n_leaves, 'leaf')}, depth {self.depth})"

    def __str__(self) -> str:
        return text(self)
