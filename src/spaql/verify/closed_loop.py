"""The closed loop of a controller and a plant, ready to be followed on sets, and what its tapes show."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.controllers import Controller
from spaql.controllers.laws import Laws
from spaql.errors import SettingError, nearest
from spaql.kernels.controller import HIGH, LOW
from spaql.kernels.verify.closed_loop import LoopArrays
from spaql.kernels.verify.points import TreeArrays
from spaql.problems import Dynamics
from spaql.problems.tapes import trace_observe, trace_step
from spaql.program.operations import operands
from spaql.program.tape import Tape


def periods(step: Tape, observe: Tape, n: int) -> NDArray[np.float64]:
    """Return a period of each state variable, 0 where none is shown.

    A number has a period if the next state of a shifted state is the shifted next state, and no observation
    and no condition differ: every use of it ends in a sine, a cosine or a remainder, or in itself.

    Examples
    --------
    >>> from spaql.problems.classic import find_dynamics
    >>> from spaql.problems.tapes import trace_observe, trace_step
    >>> plant = find_dynamics("Pendulum-v1")
    >>> periods(trace_step(plant), trace_observe(plant), 2).round(3).tolist()
    [6.283, 0.0]
    """
    period_of = np.zeros(n)
    for j in range(n):
        for period in (math.tau, 360.0):
            if _is_shifted(step, j, period, own=j) and _is_shifted(observe, j, period, own=None):
                period_of[j] = period
                break
    return period_of


def _is_shifted(tape: Tape, number: int, period: float, own: int | None) -> bool:
    """Return whether a shift of one input by a period shifts the output `own` likewise, and nothing else."""
    shifts = _shifts(tape, number, period)
    waiting = [tape.decisions]
    while waiting:
        node = waiting.pop()
        if len(node) == 2:
            expected = [period if j == own else 0.0 for j in range(len(node[0]))]
            if [shifts[row] for row in node[0]] != expected:
                return False
            continue
        (_, a, b), *sides = node
        if shifts[a] is None or shifts[a] != shifts[b]:
            return False
        waiting += sides
    return True


def _shifts(tape: Tape, number: int, period: float) -> list[float | None]:
    """Return by how much each row grows if an input does by a period; None if it is not known."""
    shifts: list[float | None] = []
    for row in tape.operations:
        name, first, second, _ = row
        if name == "unknown":
            shifts.append(None)
        elif name == "input":
            shifts.append(period if first == number else 0.0)
        else:
            known = [shifts[operand] for operand in operands(row)]
            a, b = [*known, 0.0, 0.0][:2]
            constants = _constant(tape, first), _constant(tape, second)
            shifts.append(None if a is None or b is None else _shift(name, a, b, constants))
    return shifts


def _constant(tape: Tape, row: int) -> float | None:
    if row < 0:
        return None
    name, _, _, value = tape.operations[row]
    return value if name == "const" else None


def _shift(name: str, a: float, b: float, constants: tuple[float | None, float | None]) -> float | None:
    """Return the shift of an operation on operands that are shifted by a and b."""
    left, right = constants
    if a == b == 0.0:
        return 0.0
    if name == "add":
        return a + b
    if name == "sub":
        return a - b
    if name == "neg":
        return -a
    if name == "mul" and (left is not None or right is not None):
        return a * right if right is not None else (left or 0.0) * b
    if name == "div" and right:
        return a / right
    if name in ("sin", "cos") and _is_multiple(a, math.tau):
        return 0.0
    if name == "mod" and right and _is_multiple(a, right):
        return 0.0
    return None


def _is_multiple(shift: float, period: float) -> bool:
    turns = shift / period
    return abs(turns) < 100 and abs(turns - round(turns)) < 1e-12


def same_numbers(observe: Tape) -> NDArray[np.int64]:
    """Return the state variable that each observation is, or -1 if it is none."""
    if observe.paths > 1:
        return np.full(observe.arrays.outputs.shape[1], -1, np.int64)
    shown = [observe.operations[row] for row in observe.arrays.outputs[0]]
    return np.array([first if name == "input" else -1 for name, first, _, _ in shown], np.int64)


def state_names(observe: Tape, observations: Sequence[str], n: int) -> tuple[str, ...]:
    """Return a name for each state variable: that of its observation, or `state 2` and so on.

    An angle that is observed as `cos(angle)` is called `angle [rad]`.
    """
    names = [f"state {j}" for j in range(n)]
    for rows, name in zip(observe.arrays.outputs.T, observations, strict=True):
        if np.any(rows != rows[0]):
            continue  # which state variable it shows depends on a condition
        operation, first, _, _ = observe.operations[rows[0]]
        if operation == "input":
            names[first] = name
        angle = re.fullmatch(r"(cos|sin)\((.+)\)", name)
        if angle and operation == angle[1] and observe.operations[first][0] == "input":
            names[observe.operations[first][1]] = f"{angle[2]} [rad]"
    return tuple(names)


def check_names(names: Sequence[str], observe: Tape, observations: Sequence[str]) -> None:
    """Refuse a name of two state variables, or of one and of an observation that does not show it."""
    for j, name in enumerate(names):
        shown = True
        if name in observations:
            rows = observe.arrays.outputs[:, observations.index(name)]
            shown = all(observe.operations[row][:2] == ("input", j) for row in rows)
        if names.count(name) > 1 or not shown:
            raise SettingError(
                f"{name!r} names two different variables of the plant, so that a statement about it would "
                "not say which one it means: give the observation another name."
            )


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
    """The controller."""
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
        return cls(
            dynamics,
            tree,
            step,
            observe,
            names,
            tuple(range(n)),
            _vector("noise", noise, tree.dims) * _TO_SINGLE,
            _vector("push", push, n),
        )

    @property
    def program(self) -> str:
        """The SHA-256 of the controller's program, which exported code has as well."""
        from spaql.export.targets import program_digest  # loads all targets

        return program_digest(self.tree)

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
