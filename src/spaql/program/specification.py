"""What the program of a controller is written from: its arrays, names, number type and safe action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spaql.kernels import controller as kernels
from spaql.kernels.controller import ControllerArrays
from spaql.kernels.numerics import Floats
from spaql.program.ir import Expression, Name, Number
from spaql.program.numbers import NumberType


@dataclass(frozen=True)
class Names:
    """Identifiers of the variables of a program."""

    observations: tuple[str, ...]
    features: tuple[str, ...]
    """Those that are computed."""
    actions: tuple[str, ...]
    """Of the outputs; a discrete action has one."""
    last: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    """What the features remember."""
    wishes: tuple[str, ...] = ()
    """What the laws ask for."""
    cuts: tuple[str, ...] = ()
    """What the limits took from that."""
    gains: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """By computed feature and component of the action."""
    manual: tuple[str, ...] = ()
    """The actions given by hand."""
    applied: tuple[str, ...] = ()
    """The actions that were applied since the last sample."""
    choices: tuple[str, ...] = ()
    """What the discrete actions are called, for people."""
    notes: tuple[str, ...] = ()
    """What each variable of the state is, after the first two, for people."""

    @property
    def x(self) -> tuple[str, ...]:
        """What rules and laws read."""
        return (*self.observations, *self.features)


@dataclass(frozen=True, eq=False)
class Specification:
    """What a controller is written as a program from."""

    controller: ControllerArrays
    names: Names
    number: NumberType
    ends: Sequence[tuple[float, float]]
    """The lowest and the highest valid reading of each observation; may be infinite."""
    safe: tuple[float, ...] | None
    """The action without a valid reading, and of a law that is NaN; None for the last action."""
    first: int = 0
    """The number of the first discrete action."""
    shifts: Floats | None = None
    """For manual mode: by how much integrals change for a change of each action (nodes × features × actions);
    None for a program without manual mode."""
    columns: Sequence[int] | None = None
    """The columns of x that the page's tree reads, where its parameters are variables of the state."""
    parts: bool = True
    """Whether large trees are several functions."""

    @property
    def manual(self) -> bool:
        """Whether there is manual mode."""
        return self.shifts is not None

    @property
    def discrete(self) -> bool:
        """Whether the action is the number of one of several."""
        return bool(self.controller.arrays.shape[kernels.DISCRETE])

    @property
    def remembers(self) -> bool:
        """Whether there is a state."""
        return bool(self.controller.arrays.shape[kernels.REMEMBERS])

    @property
    def actions(self) -> range:
        """The components of an action."""
        return range(int(self.controller.arrays.shape[kernels.ACTIONS]))

    @property
    def given(self) -> list[Expression]:
        """The action of a sample, as it is remembered: of a list, its number from 0 on."""
        first = Number(float(self.first))
        return [Name(name) - first if self.first else Name(name) for name in self.names.actions]

    @property
    def kinds(self) -> list[int]:
        """The kind of each computed feature."""
        kinds: list[int] = self.controller.arrays.feature[:, kernels.KIND].tolist()
        return kinds

    @property
    def integrals(self) -> list[int]:
        """The features that are integrals."""
        return [i for i, kind in enumerate(self.kinds) if kind == kernels.INTEGRAL]

    def memory_word(self, i: int, j: int = 0) -> str:
        """Return a variable that a feature remembers."""
        first = kernels.LAST + 2 * len(self.names.last)
        return self.names.memory[int(self.controller.arrays.feature[i, kernels.SLOT]) - first + j]
