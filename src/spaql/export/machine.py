"""The controller as it is exported: its names in code, its number type and its safe action."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.kernels.controller import COLUMN, DISCRETE, LARGEST, LAST, LEFT, ROW, ControllerArrays, Floats
from spaql.languages import PYTHON, STRUCTURED_TEXT, C, identifiers
from spaql.policy import FeatureController, Laws, RuleTree, SwitchingLaws
from spaql.policy.tracking import Tracking
from spaql.problems.guard import MARGIN
from spaql.program.numbers import Double, Fixed, Float, Number, checked_number
from spaql.program.specification import Names, Specification
from spaql.spaces import unbounded

TOLERANCE = MARGIN
"""Share of its range by which an observation may be out of bounds before the safe action is taken: the same
as is accepted of an environment in training, because sensor noise carries observations over a bound."""
MOST_LEAVES = 100_000
"""Of an exported tree, with shared subtrees written out."""
_ENDLESS = 1e30
"""Bounds beyond this count as infinite: environments use the largest float32 for no bound."""
_RESERVED = f"""
    {C} {STRUCTURED_TEXT} {PYTHON}
    action cut observation reset rounded self state started leaf keep waits angle_a angle_b angle_t angle_z
    angle_p angle_q angle_steep angle_turned n_observations n_actions act controller manual manual_action
    track applied_action by_hand chosen best score place column threshold next offset gain x z
"""


@dataclass(frozen=True)
class Limits:
    """Limits of the observations, ends included, beyond which the safe action is taken."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    tolerance: float
    """By how much they exceed the observation space on either side, as a share of each range."""


@dataclass(frozen=True, eq=False)
class Machine:
    """A controller as it is exported: the input of every target."""

    controller: RuleTree | FeatureController
    number: Number
    """Of observations and actions; what is computed, is computed in double precision."""
    safe: tuple[float, ...] | None
    """The action without a valid reading; None for the last one, of a controller with memory."""
    limits: Limits | None = None
    """Limits beyond which a reading is not valid; None without."""
    provenance: tuple[str, ...] = ()
    """Lines about the origin of the controller."""

    @cached_property
    def arrays(self) -> ControllerArrays:
        """The controller as the kernel reads it."""
        return self.controller.arrays

    @property
    def remembers(self) -> bool:
        """Whether it has a state."""
        return isinstance(self.controller, FeatureController)

    @property
    def discrete(self) -> bool:
        """Whether the action is the number of one of several."""
        return bool(self.arrays.arrays.shape[DISCRETE])

    @property
    def observations(self) -> tuple[str, ...]:
        """The names of the components of an observation."""
        return tuple(self.controller.observations)

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the components of an action, or of the discrete actions."""
        return tuple(self.controller.actions)

    @property
    def width(self) -> int:
        """The components of an action."""
        return 1 if self.discrete else len(self.actions)

    @property
    def first(self) -> int:
        """The number of the first discrete action."""
        space = self.controller.action_space
        return int(space.start) if isinstance(space, Discrete) else 0

    @property
    def computes(self) -> bool:
        """Whether there is arithmetic: memory, sums or laws."""
        return self.remembers or len(self.arrays.numbers.weight) > sum(
            self.arrays.arrays.node[:, COLUMN] >= 0
        )

    @property
    def ends(self) -> list[tuple[float, float]]:
        """The lowest and the highest valid reading of each component of an observation.

        What is remembered must be finite: without memory readings may be infinite.
        """
        n = len(self.observations)
        low, high = ((-math.inf,) * n, (math.inf,) * n)
        if self.limits is not None:
            low, high = self.limits.low, self.limits.high
        most = LARGEST if self.remembers else math.inf
        return [(max(a, -most), min(b, most)) for a, b in zip(low, high, strict=True)]

    @cached_property
    def names(self) -> Names:
        """The identifiers of everything."""
        controller = self.controller
        if not isinstance(controller, FeatureController):
            outputs = ["chosen"] if self.discrete else list(self.actions)
            wishes = [] if self.discrete else [f"wish {name}" for name in self.actions]
            parts = [list(self.observations), outputs, wishes]
            words = iter(
                identifiers([name for part in parts for name in part], _RESERVED.replace(" chosen", ""))
            )
            seen, done, wish = (tuple(next(words) for _ in part) for part in parts)
            return Names(seen, (), done, wishes=wish, choices=self.actions if self.discrete else ())
        features = [one.name for one in controller.computed_features]
        parts = [list(controller.observations), features, list(controller.actions)]
        actions = [name.split(" [")[0] for name in controller.actions]
        parts += [[f"{word} {name}" for name in actions] for word in ("last", "target", "wish", "cut")]
        parts += [list(self._slots()), [f"gain {a} {b}" for a in features for b in actions]]
        parts += [[f"{word} {name}" for name in controller.actions] for word in ("manual", "applied")]
        words = iter(identifiers([name for part in parts for name in part], _RESERVED))
        seen, x, done, last, target, wish, cut, memory, gain, manual, applied = (
            tuple(next(words) for _ in part) for part in parts
        )
        pairs = [(i, k) for i in range(len(features)) for k in range(len(actions))]
        gains = dict(zip(pairs, gain, strict=True))
        notes = tuple(self._notes())
        return Names(seen, x, done, last, target, memory, wish, cut, gains, manual, applied, notes=notes)

    def _slots(self) -> Iterator[str]:
        """Yield a name for each number that features remember."""
        assert isinstance(self.controller, FeatureController)
        for feature in self.controller.features:
            size = feature.memory()
            yield from (f"m {feature.name} {j + 1}" if size > 1 else f"m {feature.name}" for j in range(size))

    def _notes(self) -> Iterator[str]:
        """Yield what each number of the state is, after the first two."""
        assert isinstance(self.controller, FeatureController)
        yield from (f"the last action: {name}" for name in self.actions)
        yield from (f"the same before the dead band: {name}" for name in self.actions)
        yield from (f"memory of {f.name}" for f in self.controller.features for _ in range(f.memory()))

    @cached_property
    def tracking(self) -> Tracking:
        """Manual mode and tracking of a controller with memory."""
        assert isinstance(self.controller, FeatureController)
        return Tracking(self.controller)

    def specification(
        self, *, manual: bool = False, table: bool = False, parts: bool = True, adjustable: bool = False
    ) -> Specification:
        """Return what its program is written from.

        With `adjustable`, the parameters of its tree are variables of the state.
        """
        columns = None
        if adjustable:
            assert isinstance(self.controller, FeatureController)
            columns = self.controller.frame.columns.tolist()
        return Specification(
            self.arrays,
            self.names,
            self.number,
            self.ends,
            self.safe,
            self.first,
            self.tracking.gains if manual and self.remembers else None,
            columns,
            table,
            parts,
        )

    def valid(self, inputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which readings are valid, one a row."""
        low, high = np.array(self.ends).T
        batch = self.number.values(inputs)
        return np.asarray(((batch >= low) & (batch <= high)).all(axis=-1))

    def leaves(self, inputs: NDArray[Any]) -> NDArray[np.int64]:
        """Return the leaf of each row of valid inputs, by its node, without memory."""
        x = self.number.values(inputs)
        arrays, numbers = self.arrays
        node = np.full(len(x), arrays.root[0])
        while (inner := arrays.node[node, LEFT] >= 0).any():
            for at in np.unique(node[inner]).tolist():
                rows = np.flatnonzero(node == at)
                row = int(arrays.node[at, ROW])
                total = np.zeros(len(rows))
                with np.errstate(invalid="ignore", over="ignore"):
                    for t in range(*arrays.span[row : row + 2].tolist()):
                        total = total + numbers.weight[t] * x[rows, arrays.term[t]]
                left = np.where(total < numbers.constant[row], 0, 1)
                node[rows] = arrays.node[at, LEFT + left]
        return node

    def wanted(self, inputs: NDArray[Any]) -> Floats:
        """Return the actions for rows of inputs, each before any other sample."""
        return self.sample(inputs, self.arrays.new_memories(len(inputs)))[0]

    def sample(self, inputs: NDArray[Any], memory: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Take a sample in automatic mode in each row, and update the memory.

        Returns the actions, what the laws asked for (NaN without a valid reading), and which readings are
        valid.
        """
        valid = self.valid(inputs)
        width = self.arrays.arrays.limit.shape[1]
        actions = memory[:, LAST : LAST + width].copy()
        wishes = np.full((len(inputs), width), np.nan)
        if self.safe is not None:
            actions[~valid] = self.safe
            memory[~valid, LAST : LAST + 2 * width] = np.tile(self.safe, 2)
        rows = memory[valid]
        with np.errstate(invalid="ignore", over="ignore"):
            _, wishes[valid], done = self.arrays.sample(self.number.values(inputs[valid]), rows)
        memory[valid] = rows
        if self.discrete:
            done = done + self.first
        elif not self.remembers:  # infinite observations may cancel to NaN in a law
            done = np.where(np.isnan(wishes[valid]), np.array(self.safe), done)
        actions[valid] = done
        return self.number.rounded(actions), wishes, valid

    def operate(
        self, inputs: NDArray[Any], commands: NDArray[Any], memory: Floats
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Take a sample in each row, and update the memory: what exported code is compared with.

        Commands are 1 for manual mode, the actions given by hand, 1 if applied actions are tracked, and
        those; without columns all is automatic. Returns the actions, and which readings are valid.
        """
        if not commands.shape[1]:
            actions, _, valid = self.sample(inputs, memory)
            return actions, valid
        by_hand, applied = np.hsplit(commands.astype(np.float64), 2)
        manual, track, valid = by_hand[:, 0] > 0, applied[:, 0] > 0, self.valid(inputs)
        actions = np.empty((len(inputs), len(self.actions)))

        def in_rows(rows: NDArray[np.bool_], take: Callable[[Floats], Any]) -> Any:
            part = memory[rows]
            result = take(part)
            memory[rows] = part
            return result

        in_rows(track, partial(self.tracking.track, applied[track, 1:]))
        actions[~manual] = in_rows(~manual, lambda part: self.sample(inputs[~manual], part)[0])
        seen, blind = manual & valid, manual & ~valid
        batch = inputs[seen].astype(np.float64)
        actions[seen] = in_rows(seen, partial(self.tracking.manual, batch, by_hand[seen, 1:]))
        actions[blind] = in_rows(blind, partial(self.tracking.hold, by_hand[blind, 1:]))
        return self.number.rounded(actions), valid


def machine_of(
    controller: RuleTree | FeatureController,
    number: str = "double",
    safe_action: float | str | Sequence[float] | None = None,
    provenance: Sequence[str] = (),
    tolerance: float = TOLERANCE,
) -> Machine:
    """Return the controller to export.

    Parameters
    ----------
    controller
        The rules, or the controller with memory.
    number
        Number type of the machine: "double", "float" or "fixed".
    safe_action
        The action without a valid reading: for NaN, and for observations out of bounds by more than the
        tolerance. By default observations may be out of bounds, as in Python, and the action for NaN is the
        last one of a controller with memory, or else the first discrete action, or the one nearest to 0.
    provenance
        Lines about the origin of the controller.
    tolerance
        By how much an observation may be out of bounds before the safe action is taken, as a share of its
        range.
    """
    checked_number(number)
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise SettingError(
            f"tolerance is {tolerance}, and must be a share of each range, 0 or more, such as 0.1."
        )
    safe = controller.default_action if isinstance(controller, RuleTree) else None
    guard = None
    if safe_action is not None:
        safe = _checked_action(controller, safe_action)
        low, high = limits(controller.observation_space, tolerance)
        guard = Limits(tuple(low.tolist()), tuple(high.tolist()), tolerance)
    if isinstance(controller, RuleTree):
        _check_finite(controller)
        _check_size(controller)
    kind: Number = Double() if number == "double" else Float()
    if number == "fixed":
        kind = _fixed(controller, safe, guard)
    return Machine(controller, kind, safe, guard, tuple(provenance))


def _check_size(tree: RuleTree) -> None:
    """Refuse trees of too many leaves with shared subtrees written out, as test points see them."""
    sizes = [1] * tree.n_nodes
    for i in range(tree.n_nodes - 1, -1, -1):
        if tree.feature[i] >= 0:
            sizes[i] = sizes[tree.left[i]] + sizes[tree.right[i]]
    if sizes[0] > MOST_LEAVES:
        raise SettingError(
            f"The tree has {sizes[0]:,} leaves with its shared subtrees written out, more than the "
            f"{MOST_LEAVES:,} that can be exported: simplify it first."
        )


def _check_finite(tree: RuleTree) -> None:
    """Refuse leaves that are not finite, but for the offsets of actions never taken."""
    leaves = tree.leaves
    if isinstance(leaves, SwitchingLaws):
        finite = bool(np.isfinite(leaves.gain).all() and (leaves.offset < np.inf).all())
    else:
        finite = all(np.isfinite(table).all() for table in vars(leaves).values())
    if not finite:
        raise SettingError("The tree has an action or law that is not finite, which cannot be exported.")


def _fixed(
    controller: RuleTree | FeatureController, safe: tuple[float, ...] | None, guard: Limits | None
) -> Fixed:
    """Return the type whose bits suit the bounds of the observations, the thresholds and the actions."""
    what = ""
    if isinstance(controller, FeatureController):
        what = "a controller with memory is"
    elif isinstance(controller.leaves, Laws | SwitchingLaws):
        what = "laws are"
    elif len(controller.combinations):
        what = "sums of observations are"
    if what or not isinstance(controller, RuleTree):
        raise SettingError(
            f"number is 'fixed', and {what} computed in double precision: use 'double' or 'float'."
        )
    low, high = bounds(controller.observation_space)
    endless = unbounded(controller.observation_space)
    reach = np.where(endless, 0.0, np.maximum(np.abs(low), np.abs(high)))
    inner = controller.feature >= 0
    for j, t in zip(controller.feature[inner].tolist(), controller.threshold[inner].tolist(), strict=True):
        if math.isfinite(t):
            reach[j] = max(reach[j], abs(t))
    for ends in () if guard is None else (guard.low, guard.high):
        reach = np.where(np.isfinite(ends), np.maximum(reach, np.nextafter(np.abs(ends), np.inf)), reach)
    if isinstance(controller.action_space, Discrete):
        return Fixed(Fixed.reaching(reach, np.empty(0)).observation_bits, (0,))
    values = np.abs(np.vstack([vars(controller.leaves)["value"], np.array(safe)]))
    return Fixed.reaching(reach, values.max(axis=0))


def bounds(space: Box | Discrete) -> tuple[Floats, Floats]:
    """Return the lowest and the highest observation of a space."""
    if isinstance(space, Discrete):
        return np.array([float(space.start)]), np.array([float(space.start + space.n - 1)])
    return space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()


def limits(space: Box | Discrete, tolerance: float = TOLERANCE) -> tuple[Floats, Floats]:
    """Return the bounds of a space, each moved outwards by a share of the range between them.

    Bounds of a Discrete space stay, and so does a bound whose opposite is infinite.

    Examples
    --------
    >>> limits(Box(np.array([-1.0, 0.0, -np.inf]), np.array([1.0, np.inf, np.inf]), dtype=np.float64))
    (array([-1.2,  0. , -inf]), array([1.2, inf, inf]))
    """
    low, high = bounds(space)
    low, high = np.where(low < -_ENDLESS, -np.inf, low), np.where(high > _ENDLESS, np.inf, high)
    if isinstance(space, Discrete):
        return low, high
    reach = high - low
    margin = tolerance * np.where(np.isfinite(reach), reach, 0.0)
    return low - margin, high + margin


def _checked_action(
    controller: RuleTree | FeatureController, given: float | str | Sequence[float]
) -> tuple[float, ...]:
    """Return a safe action as its components; raises unless it is an action of the space."""
    space = controller.action_space
    if isinstance(space, Discrete):
        assert isinstance(controller, RuleTree)
        return (float(controller.action_number(given)),)
    low, high = space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()
    safe = np.empty(0) if isinstance(given, str) else np.asarray(given, np.float64).ravel()
    played = safe.astype(space.dtype)  # the type of the bounds: 0.7 is above the nearest float32
    if len(safe) != len(low) or not np.all((low <= played) & (played <= high) & np.isfinite(safe)):
        raise SettingError(
            f"The safe action is {given!r}, and must be {counted(len(low), 'finite number')} within "
            f"{low.tolist()} and {high.tolist()}."
        )
    return tuple(safe.tolist())
