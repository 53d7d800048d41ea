"""The closed loop of a controller and a plant, ready to be followed on sets."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.controllers import Controller
from spaql.controllers.laws import Laws
from spaql.errors import SettingError, nearest
from spaql.kernels.controller import HIGH, LOW
from spaql.kernels.verify.closed_loop import LoopArrays
from spaql.kernels.verify.codes import TreeArrays
from spaql.problems import Dynamics
from spaql.problems.tapes import trace_observe, trace_step
from spaql.program.numbers import Fixed, Number
from spaql.program.tape import Tape
from spaql.verify.analysis import check_names, periods, same_numbers, state_names

if TYPE_CHECKING:
    from spaql.export.exported_policy import ExportedPolicy

REBOX = 0.3
"""Share of its form to which an interval has to narrow for the form to be replaced by it."""
Floats = NDArray[np.float64]
_TO_SINGLE = 1.0 + 2.0**-22
"""Factor by which an error of an observation may grow when the sum is rounded to single precision: by 2**-24.
What the observation itself is rounded by, `put_single` covers."""


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A controller and the tapes of a plant."""

    dynamics: Dynamics
    tree: Controller
    """The controller, in the numbers of a machine if it is exported."""
    player: Controller | ExportedPolicy
    """What computes the actions in an episode: the controller, or exported code."""
    source: Controller
    """The controller as it was given."""
    step: Tape
    observe: Tape
    names: tuple[str, ...]
    """Of the state variables."""
    numbers: tuple[int, ...]
    """Which numbers of the plant's state they are."""
    noise: Floats
    push: Floats

    @classmethod
    def of(
        cls,
        dynamics: Dynamics,
        tree: Controller,
        *,
        noise: Sequence[float] | float = 0.0,
        push: Sequence[float] | float = 0.0,
        delayed: bool = False,
        number: str | None = None,
    ) -> ClosedLoop:
        """Trace a plant, and join it with a tree.

        Parameters
        ----------
        dynamics
            The plant.
        tree
            The controller.
        noise
            Bound of the error of each observation.
        push
            Bound of what is added to each state variable at every step.
        delayed
            Whether every action comes a step late: the one that waits is among the state variables.
        number
            Number type of the exported controller, as in `spaql.export.c`; by default the tree itself.
        """
        step = trace_step(dynamics, delayed=delayed)
        observe = trace_observe(dynamics)
        if tree.dims != len(dynamics.observations):
            raise SettingError(
                f"The tree takes {tree.dims} observations, and {dynamics.id} has "
                f"{len(dynamics.observations)}."
            )
        names = state_names(observe, tuple(dynamics.observations), dynamics.state_dims)
        if delayed:
            listed = not isinstance(dynamics.actions, Mapping)
            names += ("waiting action",) if listed else tuple(f"waiting {name}" for name in dynamics.actions)
        check_names(names, observe, tuple(dynamics.observations))
        n = len(names)
        error = _vector("noise", noise, tree.dims) * _TO_SINGLE
        source = tree
        player: Controller | ExportedPolicy = tree
        if number is not None:
            from spaql.export.exported_policy import ExportedPolicy  # loads all targets

            player = ExportedPolicy(source, number=number)
            kind = player.machine.number
            tree = in_fixed_point(source, kind)
            error += conversion_error(kind, source.dims) * _TO_SINGLE
        return cls(
            dynamics,
            tree,
            player,
            source,
            step,
            observe,
            names,
            tuple(range(n)),
            error,
            _vector("push", push, n),
        )

    @property
    def program(self) -> str:
        """The SHA-256 of the controller's program, which exported code has as well."""
        from spaql.export.hashes import program_digest  # loads all targets

        return program_digest(self.source)

    @property
    def fingerprint(self) -> str:
        """A hash of the plant's tapes and the tree, which differs if either was changed."""
        digest = hashlib.sha256(repr((self.dynamics.id, self.names)).encode())
        for part in (self.step.arrays, self.observe.arrays, tree_arrays(self.tree)):
            for name, value in part._asdict().items():
                array = np.ascontiguousarray(value)
                digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
        return digest.hexdigest()

    def waiting_ranges(self) -> dict[str, tuple[float, float]]:
        """Return the range of each component of an action that waits.

        Actions of a list are the middles of cells: the range is a power of two wide, and begins a quarter
        below the first.
        """
        space = self.tree.action_space
        if isinstance(space, Discrete):
            first = float(space.start) - 0.25
            return {"waiting action": (first, first + 2.0 ** math.ceil(math.log2(int(space.n))))}
        assert isinstance(space, Box)
        assert isinstance(self.dynamics.actions, Mapping)
        return {f"waiting {name}": ends for name, ends in self.dynamics.actions.items()}

    @property
    def arrays(self) -> LoopArrays:
        """The arrays that kernels take."""
        n = len(self.names)
        return LoopArrays(
            step=self.step.arrays,
            observe=self.observe.arrays,
            tree=tree_arrays(self.tree),
            same=same_numbers(self.observe),
            period=periods(self.step, self.observe, n),
            noise=self.noise,
            push=self.push,
            rebox=REBOX,
        )

    @property
    def turning(self) -> tuple[str, ...]:
        """The state variables that have a period: they are known up to whole turns."""
        period = periods(self.step, self.observe, len(self.names))
        return tuple(name for name, turn in zip(self.names, period, strict=True) if turn > 0.0)

    def needed(self, numbers: Sequence[int], *, flags: bool) -> list[int]:
        """Return the state variables that some of them depend on, in the closed loop, for ever.

        With `flags`, those that termination depends on count as well.
        """
        n = len(self.names)
        needed = set(numbers) | {j for j in self.observe.needed(self._used_observations()) if j < n}
        while True:
            more = {j for j in self.step.needed(sorted(needed), flags=flags) if j < n}
            if more <= needed:
                return sorted(needed)
            needed |= more

    def _used_observations(self) -> list[int]:
        """Return the observations that the tree depends on."""
        tree = self.tree
        arrays = tree_arrays(self.tree)
        compared = np.concatenate([np.eye(tree.dims), tree.combinations]) != 0.0
        used = compared[tree.feature[tree.feature >= 0]].any(axis=0) | (arrays.gain != 0.0).any(axis=(0, 1))
        return [int(j) for j in np.flatnonzero(used)]

    def restricted(self, numbers: Sequence[int], *, flags: bool) -> ClosedLoop:
        """Return the closed loop of some state variables, which depend on no others."""
        n = len(self.names)
        used = self._used_observations()
        kept = list(numbers)
        actions = list(range(n, self.step.inputs))
        # Observations that the tree does not look at may depend on other numbers: one stands in for them.
        known = used or [j for j in range(self.tree.dims) if self.observe.needed([j]) <= set(kept)]
        if not known:
            kept = list(range(n))
            known = [0]
        outputs = [j if j in known else known[0] for j in range(self.tree.dims)]
        step = self.step.restricted([*kept, *actions], kept, flags=flags)
        observe = self.observe.restricted(kept, outputs, flags=False)
        return dataclasses.replace(
            self,
            step=step,
            observe=observe,
            names=tuple(self.names[j] for j in kept),
            numbers=tuple(self.numbers[j] for j in kept),
            push=self.push[kept],
        )


def tree_arrays(controller: Controller) -> TreeArrays:
    """Return the arrays of a controller without features and memory."""
    laws = controller.laws
    offset = laws.offset.copy()
    if controller.discrete:  # a law that is constant has one action to choose from
        constant = np.flatnonzero(laws.constant)
        actions = [controller.constant_action(row)[0] for row in constant.tolist()]  # type: ignore[index]
        offset[constant] = Laws.of_actions(actions, controller.action_space, controller.dims).offset
    low, high = controller.frame.limit[[LOW, HIGH]]
    return TreeArrays(
        feature=controller.feature.astype(np.int64),
        threshold=np.array(controller.threshold),
        left=controller.left.astype(np.int64),
        right=controller.right.astype(np.int64),
        leaf=controller.leaf.astype(np.int64),
        sums=np.array(controller.combinations),
        gain=np.array(laws.gain),
        offset=offset,
        low=np.resize(low, offset.shape[1]),
        high=np.resize(high, offset.shape[1]),
        discrete=controller.discrete,
        start=controller.frame.first,
    )


def in_fixed_point(controller: Controller, number: Number) -> Controller:
    """Return a controller whose actions are as code in fixed point gives them, which has constants only.

    Rules are decided for the converted observation, so that thresholds stay as they are. What code rounds to
    single precision counts as rounded in any case.
    """
    if controller.discrete or not isinstance(number, Fixed):
        return controller
    actions = number.rounded(np.clip(controller.laws.offset, *controller.frame.limit[[LOW, HIGH]]))
    shape = controller.action_space.shape
    space = Box(actions.min(axis=0).reshape(shape), actions.max(axis=0).reshape(shape), dtype=np.float64)
    laws = Laws.of_actions(actions, space, controller.dims)
    return dataclasses.replace(controller, laws=laws, action_space=space, start=())


def conversion_error(number: Number, observations: int) -> Floats:
    """Return the most by which code changes each observation, besides rounding to single precision."""
    if isinstance(number, Fixed):
        return np.asarray(np.ldexp(1.0, -np.array(number.observation_bits)))
    return np.zeros(observations)


def _vector(what: str, value: Sequence[float] | float, n: int) -> Floats:
    bounds = np.asarray(value, np.float64)
    bounds = np.full(n, bounds) if bounds.shape == () else bounds
    if bounds.shape != (n,) or not np.all(np.isfinite(bounds)) or np.any(bounds < 0.0):
        raise SettingError(f"{what} is {value!r}, and must be one number from 0 on, or {n} of them.")
    return bounds


def box_of(names: Sequence[str], box: Mapping[str, tuple[float, float]]) -> tuple[Floats, Floats]:
    """Return the ends of a box over some state variables, infinite where it has none."""
    ends = np.array([box.get(name, (-np.inf, np.inf)) for name in names], np.float64).reshape(-1, 2)
    return ends[:, 0].copy(), ends[:, 1].copy()


def check_box(names: Sequence[str], box: Mapping[str, tuple[float, float]]) -> None:
    """Refuse a box over numbers that the state does not have, or with ends in the wrong order."""
    for name, (low, high) in box.items():
        if name not in names:
            raise SettingError(f"There is no state variable {name!r}: {nearest(name, names)}")
        if not low < high:
            raise SettingError(f"The range of {name} is {low} to {high}: the lower end must come first.")
