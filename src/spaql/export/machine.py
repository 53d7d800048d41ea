"""The controller as it is exported: its names, number type and safe action, and how it acts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.controllers import Controller, Policy
from spaql.controllers.limits import checked_action
from spaql.controllers.policy import Rng
from spaql.controllers.tracking import tracking_gains
from spaql.errors import SettingError
from spaql.kernels.controller import COLUMN, HIGH, LARGEST, LAST, LOW, ControllerArrays
from spaql.kernels.numerics import Floats
from spaql.languages import PYTHON, STRUCTURED_TEXT, C, identifiers
from spaql.problems.guard import MARGIN
from spaql.program.controller import controller_program
from spaql.program.evaluate import RowsInterpreter
from spaql.program.ir import Program
from spaql.program.manual import track_program
from spaql.program.numbers import NumberType, number_type
from spaql.program.specification import Names, Specification
from spaql.spaces import environment_actions, space_bounds

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
    track applied_action by_hand best score place column threshold next offset gain x z
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

    controller: Controller
    number: NumberType
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
        return self.controller.remembers

    @property
    def discrete(self) -> bool:
        """Whether the action is the number of one of several."""
        return self.controller.discrete

    @property
    def tracks(self) -> bool:
        """Whether there is manual mode and tracking: with a state, and an action with a range."""
        return self.remembers and not self.discrete

    @property
    def observations(self) -> tuple[str, ...]:
        """The names of the components of an observation."""
        return self.controller.observations

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the components of an action, or of the discrete actions."""
        return self.controller.actions

    @property
    def width(self) -> int:
        """The components of an action."""
        return self.controller.action_size

    @property
    def first(self) -> int:
        """The number of the first discrete action."""
        return self.controller.frame.first

    @property
    def computes(self) -> bool:
        """Whether there is arithmetic: memory, features, sums or laws."""
        plain = np.count_nonzero(self.arrays.arrays.node[:, COLUMN] >= 0)
        features = self.controller.computed_features
        return bool(self.remembers or features or len(self.arrays.numbers.weight) > plain)

    @property
    def ends(self) -> list[tuple[float, float]]:
        """The lowest and the highest valid reading of each component of an observation.

        What is remembered must be finite: without memory readings may be infinite.
        """
        n = len(self.observations)
        low = (-math.inf,) * n
        high = (math.inf,) * n
        if self.limits is not None:
            low = self.limits.low
            high = self.limits.high
        most = LARGEST if self.remembers else math.inf
        return [(max(a, -most), min(b, most)) for a, b in zip(low, high, strict=True)]

    @cached_property
    def names(self) -> Names:
        """The identifiers of everything."""
        controller = self.controller
        features = [feature.name for feature in controller.computed_features]
        outputs = ["chosen"] if self.discrete else list(self.actions)
        components = [name.split(" [")[0] for name in controller.components]
        limited = [] if self.discrete else components
        parts = [list(self.observations), features, outputs]
        parts += [[f"{word} {name}" for name in components if self.remembers] for word in ("last", "target")]
        parts += [[f"wish {name}" for name in limited]]
        parts += [[f"cut {name}" for name in limited if self.remembers]]
        parts += [list(self._slots())]
        integrated = features if self.remembers else []
        parts += [[f"gain {a} {b}" for a in integrated for b in limited]]
        by_hand = self.actions if self.tracks else ()
        parts += [[f"{word} {name}" for name in by_hand] for word in ("manual", "applied")]
        words = iter(identifiers([name for part in parts for name in part], _RESERVED))
        observed, x, done, last, target, wish, cut, memory, gain, manual, applied = (
            tuple(next(words) for _ in part) for part in parts
        )
        pairs = [(i, k) for i in range(len(integrated)) for k in range(len(limited))]
        gains = dict(zip(pairs, gain, strict=True))
        choices = self.actions if self.discrete else ()
        notes = tuple(self._notes())
        return Names(
            observed, x, done, last, target, memory, wish, cut, gains, manual, applied, choices, notes
        )

    def _slots(self) -> Iterator[str]:
        """Yield a name for each number that features remember."""
        for feature in self.controller.features:
            size = feature.memory()
            yield from (f"m {feature.name} {j + 1}" if size > 1 else f"m {feature.name}" for j in range(size))

    def _notes(self) -> Iterator[str]:
        """Yield what each number of the state is, after the first two."""
        if self.discrete:
            yield from ("the last action, from 0 on", "the same")
        else:
            yield from (f"the last action: {name}" for name in self.actions)
            yield from (f"the same before the dead band: {name}" for name in self.actions)
        yield from (f"memory of {f.name}" for f in self.controller.features for _ in range(f.memory()))

    @cached_property
    def shifts(self) -> Floats:
        """By how much integrals change for a change of each action, where that is followed."""
        return tracking_gains(self.controller)

    @cached_property
    def _operated(self) -> tuple[Program, Program]:
        """The programs of a sample with manual mode, and of tracking."""
        specification = self.specification(manual=True, parts=False)
        program, _ = controller_program(specification)
        return program, track_program(specification, program.state)

    def specification(
        self, *, manual: bool = False, parts: bool = True, adjustable: bool = False
    ) -> Specification:
        """Return what its program is written from.

        With `adjustable`, the parameters of its tree are variables of the state.
        """
        return Specification(
            self.arrays,
            self.names,
            self.number,
            self.ends,
            self.safe,
            self.first,
            self.shifts if manual and self.tracks else None,
            self.controller.frame.columns.tolist() if adjustable else None,
            parts,
        )

    def valid(self, inputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which readings are valid, one a row."""
        low, high = np.array(self.ends).T
        batch = self.number.values(inputs)
        return np.asarray(((batch >= low) & (batch <= high)).all(axis=-1))

    def leaves(self, inputs: NDArray[Any]) -> NDArray[np.int64]:
        """Return the leaf of each row of inputs, by its node, without memory; NaN counts as 0."""
        with np.errstate(invalid="ignore", over="ignore"):
            x, _, _ = self.arrays.sample(self.number.values(inputs), self.arrays.new_memories(len(inputs)))
        return self.controller.find_nodes(np.nan_to_num(x[:, self.controller.frame.columns]))

    def wanted(self, inputs: NDArray[Any]) -> Floats:
        """Return the actions for rows of inputs, each before any other sample."""
        return self.sample(inputs, self.arrays.new_memories(len(inputs)))[0]

    def sample(self, inputs: NDArray[Any], memory: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Take a sample in automatic mode in each row, and update the memory.

        Returns the actions, what the laws asked for (NaN without a valid reading, and of discrete actions),
        and which readings are valid.
        """
        valid = self.valid(inputs)
        width = self.width
        if self.safe is not None:
            memory[~valid, LAST : LAST + 2 * width] = np.tile(np.array(self.safe) - self.first, 2)
        actions = memory[:, LAST : LAST + width].copy()
        wishes = np.full((len(inputs), width), np.nan)
        rows = memory[valid]
        with np.errstate(invalid="ignore", over="ignore"):
            _, asked, done = self.arrays.sample(self.number.values(inputs[valid]), rows)
        memory[valid] = rows
        if not self.discrete:
            wishes[valid] = asked
            if not self.remembers:  # infinite observations may cancel to NaN in a law
                done = np.where(np.isnan(asked), np.array(self.safe), done)
        actions[valid] = done
        if self.discrete:
            actions += self.first
        return self.number.rounded(actions), wishes, valid

    def operate(
        self, inputs: NDArray[Any], commands: NDArray[Any], memory: Floats
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Take a sample in each row, and update the memory: what exported code is compared with.

        Commands are 1 for manual mode, the actions given by hand, 1 if applied actions are tracked, and
        those; without columns all is automatic. Manual mode and tracking are what the program says.
        Returns the actions, and which readings are valid.
        """
        if not commands.shape[1]:
            actions, _, valid = self.sample(inputs, memory)
            return actions, valid
        program, tracking = self._operated
        values = self.number.values(np.hstack([inputs, commands])).T
        names = (*program.inputs, "manual", *program.manual, "track", *tracking.inputs)
        variables = dict(zip(names, values, strict=True))
        for variable, column in zip(program.state, memory.T, strict=True):
            variables[variable.name] = column > 0 if variable.kind == "flag" else column
        manual = variables["manual"] = variables["manual"] > 0
        samples = RowsInterpreter(variables)
        state = tuple(variable.name for variable in program.state)
        with np.errstate(all="ignore"):
            samples.run(tracking.statements, variables["track"] > 0)
            memory[:] = np.stack([samples.values[name] for name in state], axis=1)
            samples.run(program.statements, manual)
        actions = np.empty((len(inputs), self.width))
        automatic = memory[~manual]
        actions[~manual] = self.sample(inputs[~manual], automatic)[0]
        memory[~manual] = automatic
        for names, array in ((state, memory), (program.outputs, actions)):
            for name, column in zip(names, array.T, strict=True) if manual.any() else ():
                column[manual] = samples.values[name][manual]
        return self.number.rounded(actions), self.valid(inputs)


def machine_of(
    controller: Controller,
    number: str = "double",
    safe_action: float | str | Sequence[float] | None = None,
    provenance: Sequence[str] = (),
    tolerance: float = TOLERANCE,
) -> Machine:
    """Return the controller to export.

    Parameters
    ----------
    controller
        The controller.
    number
        Number type of the machine: "double" or "float".
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
    kind = number_type(number)
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise SettingError(
            f"tolerance is {tolerance}, and must be a share of each range, 0 or more, such as 0.1."
        )
    safe = None if controller.remembers else controller.default_action
    guard = None
    if safe_action is not None:
        safe = checked_action(controller, safe_action, "The safe action")
        low, high = limits(controller.observation_space, tolerance)
        guard = Limits(tuple(low.tolist()), tuple(high.tolist()), tolerance)
    _check_size(controller)
    return Machine(controller, kind, safe, guard, tuple(provenance))


def _check_size(controller: Controller) -> None:
    """Refuse trees of too many leaves with shared subtrees written out, as test points see them."""
    if controller.n_leaves > MOST_LEAVES:
        raise SettingError(
            f"The tree has {controller.n_leaves:,} leaves with its shared subtrees written out, more than "
            f"the {MOST_LEAVES:,} that can be exported: simplify it first."
        )


def constant_actions(controller: Controller) -> Floats:
    """Return the actions with a range that laws always take, one a row."""
    low, high = controller.frame.limit[[LOW, HIGH]]
    return np.clip(controller.laws.offset[controller.laws.constant], low, high)


def limits(space: Box | Discrete, tolerance: float = TOLERANCE) -> tuple[Floats, Floats]:
    """Return the bounds of a space, each moved outwards by a share of the range between them.

    Bounds of a Discrete space stay, and so does a bound whose opposite is infinite.

    Examples
    --------
    >>> limits(Box(np.array([-1.0, 0.0, -np.inf]), np.array([1.0, np.inf, np.inf]), dtype=np.float64))
    (array([-1.2,  0. , -inf]), array([1.2, inf, inf]))
    """
    low, high = space_bounds(space)
    low = np.where(low < -_ENDLESS, -np.inf, low)
    high = np.where(high > _ENDLESS, np.inf, high)
    if isinstance(space, Discrete):
        return low, high
    reach = high - low
    margin = tolerance * np.where(np.isfinite(reach), reach, 0.0)
    return low - margin, high + margin


class ExportedPolicy(Policy):
    """The policy of exported code: with its number type and its safe action.

    It computes what exported files are compared with, so its actions equal theirs to the last bit.

    Parameters
    ----------
    tree, number, safe_action, tolerance
        As in `spaql.export.write`.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.controller_of(agent.learn(iterations=100, progress_bar=False))
    >>> exported = ExportedPolicy(tree, number="float", safe_action="push left")
    >>> 150 < spaql.evaluate(exported, agent.problem, episodes=20).mean <= 200
    True
    """

    def __init__(
        self,
        tree: Controller,
        *,
        number: str = "double",
        safe_action: float | str | Sequence[float] | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        if tree.remembers:
            raise SettingError(
                "Code of a controller with memory acts as the controller itself: evaluate that."
            )
        self.machine = machine_of(tree, number, safe_action, (), tolerance)
        self.observation_space = tree.observation_space
        self.action_space = tree.action_space

    def act(
        self,
        observations: NDArray[Any],
        steps: NDArray[np.int64] | None = None,
        rng: Rng | None = None,
    ) -> Any:
        """Return a raw action for each observation of a batch."""
        inputs = self._inputs(observations)
        return environment_actions(self.action_space, self.machine.wanted(inputs) - self.machine.first)

    def is_safe_action(self, observations: NDArray[Any]) -> NDArray[np.bool_]:
        """Return, for rows of observations, which get the safe action instead of that of the policy."""
        inputs = self._inputs(observations)
        _, wishes, valid = self.machine.sample(inputs, self.machine.arrays.new_memories(len(inputs)))
        if self.machine.discrete:
            return ~valid
        return np.asarray(~valid | np.isnan(wishes).any(axis=1))

    def _inputs(self, observations: NDArray[Any]) -> NDArray[Any]:
        batch = np.asarray(observations, np.float64).reshape(len(observations), -1)
        return self.machine.number.inputs(batch)
