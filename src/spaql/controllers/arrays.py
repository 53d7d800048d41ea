"""Controllers of every kind as the arrays of the one kernel (see `spaql.kernels.controller`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.controllers.feature_table import feature_table
from spaql.controllers.laws import Laws, laws_of
from spaql.controllers.limits import VELOCITY
from spaql.errors import SettingError
from spaql.kernels.controller import (
    DEAD_BAND,
    LAST,
    LEFT,
    PARENT,
    RATE,
    RESET,
    RIGHT,
    Arrays,
    ControllerArrays,
    Numbers,
)
from spaql.kernels.numerics import Floats, Ints
from spaql.spaces import space_bounds

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller
    from spaql.controllers.partition_policy import PartitionPolicy


MOST_NODES = 2**14
"""The most nodes of a tree whose shared subtrees are copied."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A controller but for its tree: what the tree reads, and what limits the action."""

    observations: int
    limit: Floats
    """See `Arrays`."""
    columns: Ints
    """Where in x each number is that the tree reads, in their order."""
    outputs: int
    """Components of the action, or discrete actions."""
    discrete: bool = False
    first: int = 0
    """The number of the first discrete action."""
    feature: Ints = field(default_factory=lambda: np.empty((0, 5), np.int64))
    setting: Floats = field(default_factory=lambda: np.empty((0, 3)))
    velocity: bool = False
    remembers: bool = False
    memory: int = 0
    """Length of a memory; 0 for that of a controller without features."""
    setpoints: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Where set-points are in an observation: where one changes, another leaf is no switch."""


def frame_of(observations: int, actions: Box | Discrete) -> Frame:
    """Return the frame of a controller without features and memory."""
    columns = np.arange(observations)
    if isinstance(actions, Discrete):
        limit = np.array([[-np.inf, np.inf, np.inf, 0.0, 0.0, 1.0]]).T
        return Frame(observations, limit, columns, int(actions.n), discrete=True, first=int(actions.start))
    low, high = action_range(actions)
    limit = limits_of(low, high, np.clip(0.0, low, high))
    return Frame(observations, limit, columns, len(low))


class ActionRange(NamedTuple):
    """The range of each component of an action; empty for discrete actions."""

    low: Floats
    high: Floats


def action_range(actions: Box | Discrete) -> ActionRange:
    """Return the range of each component of an action."""
    if isinstance(actions, Discrete):
        return ActionRange(np.empty(0), np.empty(0))
    return ActionRange(*space_bounds(actions))


def limits_of(low: Floats, high: Floats, start: Floats) -> Floats:
    """Return the limits of an action whose rate and changes are free."""
    free = np.full(len(low), np.inf)
    return np.array([low, high, free, np.zeros(len(low)), start, high - low])


class Builder:
    """Collects rows and nodes."""

    def __init__(self) -> None:
        self.constant: list[float] = []
        self.span: list[int] = [0]
        self.term: list[int] = []
        self.weight: list[float] = []
        self.node: list[list[int]] = []

    def row(self, constant: float, weights: Iterable[float], columns: Iterable[int]) -> int:
        """Add a row; terms whose weight is 0 are left out, and the others keep their order."""
        for column, weight in zip(columns, weights, strict=True):
            if weight != 0.0:
                self.term.append(int(column))
                self.weight.append(float(weight))
        self.constant.append(float(constant))
        self.span.append(len(self.term))
        return len(self.constant) - 1

    def leaf(self, row: int) -> int:
        """Add a leaf with its first law."""
        self.node.append([row, -1, -1, -1, -1])
        return len(self.node) - 1

    def cut(self, row: int, left: int = -1, right: int = -1) -> int:
        """Add a cut, whose children may be set later."""
        first, last = self.span[row : row + 2]
        plain = last == first + 1 and self.weight[first] == 1.0
        self.node.append([row, left, right, -1, self.term[first] if plain else -1])
        return len(self.node) - 1

    def arrays(
        self,
        frame: Frame,
        *,
        root: Sequence[int] = (0,),
        margin: Sequence[float] = (),
    ) -> ControllerArrays:
        """Return the controller."""
        node = np.array(self.node, np.int64).reshape(-1, 5)
        inner = np.flatnonzero(node[:, LEFT] >= 0)
        for child in (LEFT, RIGHT):
            node[node[inner, child], PARENT] = inner
        actions = frame.limit.shape[1]
        remembers = frame.remembers or len(root) > 1
        memory = frame.memory or LAST + 2 * actions
        shape = [
            frame.observations,
            actions,
            frame.outputs,
            frame.discrete,
            frame.velocity,
            remembers,
            memory,
        ]
        arrays = Arrays(
            np.array(shape, np.int64),
            frame.feature,
            frame.setting,
            np.array(root, np.int64),
            node,
            np.array(margin, np.float64),
            np.array(self.span, np.int64),
            np.array(self.term, np.int64),
            frame.limit,
        )
        return ControllerArrays(arrays, Numbers(np.array(self.constant), np.array(self.weight)))


def tree_arrays(tree: Controller, frame: Frame, *, copied: bool = False) -> ControllerArrays:
    """Return a controller as arrays; with hysteresis shared subtrees must be `copied`."""
    columns = frame.columns.tolist()
    builder = Builder()
    firsts = _laws(builder, tree.laws, frame)
    order = copied_nodes(tree) if copied else list(range(tree.n_nodes))
    following = 1  # a copied node has its children after all that came before
    for node in order:
        j = int(tree.feature[node])
        if j < 0:
            builder.leaf(firsts[int(tree.leaf[node])])
            continue
        if j < tree.dims:
            row = builder.row(tree.threshold[node], [1.0], columns[j : j + 1])
        else:
            row = builder.row(tree.threshold[node], tree.combinations[j - tree.dims], columns)
        if copied:
            builder.cut(row, following, following + 1)
            following += 2
        else:
            builder.cut(row, int(tree.left[node]), int(tree.right[node]))
    margin: list[float] = []
    if any(tree.hysteresis):
        compared = [int(tree.feature[node]) for node in order]
        margin = [tree.hysteresis[j] if j >= 0 else 0.0 for j in compared]
    return builder.arrays(frame, margin=margin)


def copied_nodes(tree: Controller, root: int = 0) -> list[int]:
    """Return which node each is below a root where shared subtrees are copied, breadth first."""
    order = [root]
    for node in order:  # which grows
        if tree.feature[node] >= 0:
            order += [int(tree.left[node]), int(tree.right[node])]
        if len(order) > MOST_NODES:
            raise SettingError(f"The tree of a controller with memory has more than {MOST_NODES} nodes.")
    return order


def _laws(builder: Builder, laws: Laws, frame: Frame) -> list[int]:
    """Add a table of laws; returns the first row of each."""
    firsts = []
    for law in range(len(laws)):
        firsts.append(len(builder.constant))
        for k in range(frame.outputs):
            builder.row(float(laws.offset[law, k]), laws.gain[law, k], frame.columns)
    return firsts


def partition_arrays(policy: PartitionPolicy) -> ControllerArrays:
    """Return the greedy policy of a partition, with a root for each time step if it depends on it.

    A node of the partition has a child for each orthant: cuts of one dimension after the other.
    """
    flat = policy.flat
    dims = policy.states.dims
    actions = policy.actions.space
    frame = frame_of(dims, actions)
    laws, rows = laws_of(actions, policy.leaf_actions.reshape(len(flat.cut), -1), dims)
    builder = Builder()
    firsts = _laws(builder, laws, frame)

    def add(node: int, dim: int, orthant: int) -> int:
        """Add what is left of a node from a dimension on; returns where."""
        if flat.first_child[node] < 0:
            return builder.leaf(firsts[rows[node]])
        if dim == dims:
            return add(int(flat.first_child[node]) + orthant, 0, 0)
        here = builder.cut(builder.row(flat.cut[node, dim], [1.0], [dim]))
        builder.node[here][LEFT] = add(node, dim + 1, orthant)
        builder.node[here][RIGHT] = add(node, dim + 1, orthant + (1 << (dims - 1 - dim)))
        return here

    return builder.arrays(frame, root=[add(int(number), 0, 0) for number in flat.roots])


class Pattern(NamedTuple):
    """The structure of candidates, and which of their numbers each constant and weight is."""

    structure: ControllerArrays
    node: Ints
    """Of each row, with the output below."""
    output: Ints
    taken: NDArray[np.bool_]
    """Whether the row is of an action that may be taken."""
    term_node: Ints
    term_output: Ints
    term_column: Ints


def candidate_arrays(
    left: Ints, allowed: NDArray[np.bool_], numbers: Floats, frame: Frame
) -> tuple[Arrays, Floats, Floats]:
    """Return candidates of one structure: its arrays, and the constants and weights of each.

    Parameters
    ----------
    left
        The left child of each node, which its right one follows; -1 for a leaf.
    allowed
        Nodes × outputs: which discrete actions a leaf may take.
    numbers
        Candidates × nodes × outputs × (1 + what the tree reads): thresholds and weights of cuts in their
        first row, offsets and gains of laws.
    frame
        What surrounds the trees.
    """
    used = (numbers != 0.0).any(axis=0)
    ones = (numbers == 1.0).all(axis=0)
    at = _pattern(left.tobytes(), allowed.tobytes(), used.tobytes(), ones.tobytes(), used.shape, frame)
    constants = np.where(at.taken, numbers[:, at.node, at.output, 0], -np.inf)
    weights = numbers[:, at.term_node, at.term_output, 1 + at.term_column]
    return at.structure.arrays, constants, np.ascontiguousarray(weights)


@lru_cache(maxsize=64)
def _pattern(
    left: bytes, allowed: bytes, used: bytes, ones: bytes, shape: tuple[int, int, int], frame: Frame
) -> Pattern:
    children = np.frombuffer(left, np.int64)
    may = np.frombuffer(allowed, np.bool_).reshape(shape[:2])
    is_used, is_one = (np.frombuffer(part, np.bool_).reshape(shape)[:, :, 1:] for part in (used, ones))
    builder = Builder()
    rows: list[tuple[int, int, bool]] = []
    terms: list[tuple[int, int, int]] = []
    for node, child in enumerate(children.tolist()):
        for k in range(1 if child >= 0 else frame.outputs):
            taken = child >= 0 or bool(may[node, k]) or not frame.discrete
            weights = np.where(is_one[node, k], 1.0, 2.0) * (is_used[node, k] & taken)
            row = builder.row(0.0, weights, frame.columns)
            rows.append((node, k, taken))
            terms += [(node, k, int(j)) for j in np.flatnonzero(weights)]
            if k == 0 and child >= 0:
                builder.cut(row, child, child + 1)
            elif k == 0:
                builder.leaf(row)
    nodes, outputs, taken_rows = np.array(rows).T
    columns = np.array(terms, np.int64).reshape(-1, 3).T
    return Pattern(builder.arrays(frame), nodes, outputs, taken_rows.astype(np.bool_), *columns)


_MOST_MEMORY = 2**14


def controller_frame(controller: Controller) -> Frame:
    """Return a controller but for its tree."""
    plain = frame_of(len(controller.observations), controller.action_space)
    if not controller.features and not controller.remembers:
        return plain
    names = controller.observations, controller.components
    start = [x - plain.first for x in controller.start]
    table = feature_table(controller.features, *names, controller.sample_time or 1.0, start)
    if table.memory > _MOST_MEMORY:
        raise SettingError(f"The features remember more than {_MOST_MEMORY} numbers.")
    limit = plain.limit.copy()
    limit[RATE] = np.array(controller.rate_limit) * (controller.sample_time or 1.0)
    limit[DEAD_BAND] = controller.dead_band
    if controller.remembers:  # otherwise it is the action where none can be computed
        limit[RESET] = start
    return replace(
        plain,
        limit=limit,
        columns=table.columns if controller.features else plain.columns,
        feature=table.rows,
        setting=table.settings,
        velocity=controller.form == VELOCITY,
        remembers=controller.remembers,
        memory=table.memory,
    )
