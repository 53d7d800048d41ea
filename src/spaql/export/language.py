"""Targets: how a language or format writes a program with its heading, and how its files are run."""

from __future__ import annotations

import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from gymnasium.spaces import Discrete

from spaql.controllers.controller import VELOCITY, Controller
from spaql.controllers.feature_table import formulas
from spaql.controllers.features import Integral
from spaql.controllers.text import limits_text
from spaql.errors import SettingError
from spaql.export.machine import Limits, Machine
from spaql.export.running import Player
from spaql.formatting import counted
from spaql.kernels.controller import LARGEST, LEFT
from spaql.program.controller import controller_program
from spaql.program.ir import Program
from spaql.program.manual import track_program


def heading(machine: Machine, file: str, manual: Sequence[str] = ()) -> list[str]:
    """Return lines that say what a file is, how the controller is used, and where it comes from.

    `manual` says how manual mode and tracking are used, in a target that has them.
    """
    lines = [
        f"{file}: {_size(machine)}.",
        f"Written by spaql {version('spaql')} after an equivalence check. Do not edit: export it again.",
        *([""] if machine.provenance else []),
        *machine.provenance,
        *_formulas(machine.controller),
        *(_with_memory(machine, manual) if machine.remembers else _without_memory(machine)),
    ]
    return [part for line in lines for part in (textwrap.wrap(line, 96) or [""])]


def _size(machine: Machine) -> str:
    controller = machine.controller
    leaves = counted(controller.n_leaves, "leaf")
    if controller.features:
        return f"{leaves} over {counted(len(controller.features), 'feature')}"
    return f"{leaves}, {counted(controller.depth, 'question')} at most"


def _formulas(controller: Controller) -> Iterator[str]:
    """Yield lines on the features."""
    if controller.features:
        names = (controller.observations, controller.components)
        yield from ("", *formulas(controller.features, *names, controller.sample_time or 1.0))


def _without_memory(machine: Machine) -> Iterator[str]:
    """Yield lines on invalid readings."""
    beyond = " and observations beyond their limits" if machine.limits is not None else ""
    safe = ", ".join(f"{x:g}" for x in machine.safe or ())
    yield from ("", f"For NaN{beyond} the action is {safe}.")
    if machine.limits is not None:
        yield from _limits(machine.limits, machine)


def _limits(guard: Limits, machine: Machine) -> Iterator[str]:
    """Yield lines with the limits of each observation, beyond which the safe action is taken."""
    moved = f"of each observation, if it has two, moved outwards by {100 * guard.tolerance:g} % of its range"
    listed = isinstance(machine.controller.observation_space, Discrete)
    yield f"Limits are the bounds {'of the observation' if listed else f'{moved} on either side'}:"
    for name, low, high in zip(machine.observations, guard.low, guard.high, strict=True):
        below = f"below {low:.6g}" if low > -math.inf else ""
        above = f"above {high:.6g}" if high < math.inf else ""
        yield f"- {name}: {' or '.join(filter(None, [below, above])) or 'no limits'}"


def _with_memory(machine: Machine, manual: Sequence[str]) -> Iterator[str]:
    controller = machine.controller
    yield from ("", *limits_text(controller), "")
    yield from _readings(machine, controller)
    yield from (
        (*manual, *_limits_of_tracking(machine, controller)) if manual else _by_hand(machine, controller)
    )


def _readings(machine: Machine, controller: Controller) -> Iterator[str]:
    """Yield lines on resets and invalid readings."""
    yield f"Reset it before the first sample, and act exactly every {controller.sample_time:g} s."
    if machine.safe is None:
        yield (
            f"A reading is invalid if it is NaN or beyond {LARGEST:g} in magnitude: then the last action is "
            "given again, and the state does not change."
        )
    else:
        pairs = zip(controller.observations, machine.ends, strict=True)
        ends = ", ".join(f"{name} outside {low:g} and {high:g}" for name, (low, high) in pairs)
        action = ", ".join(f"{x:g}" for x in machine.safe)
        yield f"A reading is invalid if it is NaN, or {ends}: then the action is {action}, which also counts "
        yield "as the last action, and the memory of the features does not change."


def _limits_of_tracking(machine: Machine, controller: Controller) -> Iterator[str]:
    """Yield a line on actions whose laws have no integral that could follow another action."""
    if controller.form == VELOCITY:
        return
    leaves = controller.arrays.arrays.node[:, LEFT] < 0
    followed = np.abs(machine.shifts[leaves]).max(axis=1, initial=0.0) > 0
    if some := [name for k, name in enumerate(controller.actions) if not followed[:, k].all()]:
        where = " in some leaves" if followed.any() else ""
        yield (
            f"{', '.join(some)}: no integral{where} can follow another action, so that automatic mode "
            "returns to the law at once, or as fast as the rate limit allows."
        )


def _by_hand(machine: Machine, controller: Controller) -> Iterator[str]:
    """Yield lines on manual mode in a target that has none."""
    kept = ", ".join([*machine.names.last, *machine.names.target])
    kept += ": its number from 0 on" if machine.discrete else ""
    yield (
        "Manual mode: go on calling it every sample, ignore its action, and then write the action that was "
        f"given by hand into the state ({kept})."
    )
    if controller.form == VELOCITY:
        yield "The first automatic action then starts from there (bumpless transfer)."
    elif machine.discrete:
        return
    elif integrals := [feature.name for feature in controller.features if isinstance(feature, Integral)]:
        yield (
            "The rate limit then starts from there. For bumpless transfer also set the memory of "
            f"{' or '.join(integrals)} so that the law equals the action given by hand: its value plus the "
            "difference of that action and the law, divided by its gain."
        )
    else:
        yield "The rate limit then starts from there."


def action_numbers(machine: Machine) -> str:
    """Return the numbers and names of discrete actions."""
    return ", ".join(f"{machine.first + k}: {name}" for k, name in enumerate(machine.actions))


POINTS = 1_000_000
"""Random points to compare, besides all leaves and boundaries."""
SLOW_POINTS = 100_000
"""The same in interpreters that take a millisecond for some controllers."""


@dataclass(frozen=True)
class Source:
    """A controller to write in a language."""

    machine: Machine
    """For formats that hold more of a controller than its program."""
    name: str
    """Of the file, without a suffix."""
    number: str
    """The type of observations and actions, "double" or "float"."""
    heading: tuple[str, ...]
    program: Program
    parts: Mapping[str, Program]
    """Functions that the program calls, each before those that call it."""
    observations: tuple[str, ...]
    """For people, with units."""
    actions: tuple[str, ...]
    """For people, with units; of a list of actions one text with their numbers and names."""
    discrete: bool
    """Whether the action is the number of one of several."""
    computes: bool
    """Whether there is arithmetic: laws, sums or memory."""
    sample_time: float | None = None
    """None without memory."""
    track: Program | None = None
    """Corrects the state by the actions that were applied since the last sample; None without manual mode."""

    def notes(self, place: str = "{}[{}]", first: int = 0) -> list[str]:
        """Return lines on observations and actions; `place` and `first` are of the arrays of a language."""
        lines = [
            f"{place.format('observation', j)}  {name}" for j, name in enumerate(self.observations, first)
        ]
        if self.discrete:
            return [*lines, f"The action is {self.actions[0]}"]
        return lines + [f"{place.format('action', k)}  {name}" for k, name in enumerate(self.actions, first)]

    @property
    def widths(self) -> tuple[int, int, int]:
        """The components of an observation, of an action and of the state."""
        program = self.program
        return len(program.inputs), len(program.outputs), len(program.state)

    @property
    def played(self) -> int:
        """How many numbers a driver writes for a sample: those of the action and of the state."""
        return sum(self.widths[1:])


class Target(ABC):
    """A language or format: how it writes a program, and how it runs one.

    A subclass has `text` or `files`, `player` and `tool`.
    """

    name: str
    """Of the language or format, for people."""
    suffix: str
    """Of the file that an export is asked for by, such as `.c`."""
    points: int = POINTS
    """Random points to compare by default."""
    numbers: tuple[str, ...] = ("double",)
    """The number types that it knows."""
    parts = True
    """Whether a program can call others: the parts of large trees."""
    manual = False
    """Whether controllers with memory have manual mode and tracking; see `Source.track`."""

    def text(self, source: Source) -> str:
        """Return the content of the file, where there is one."""
        raise NotImplementedError

    def files(self, source: Source) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        return {source.name + self.suffix: self.text(source).encode()}

    @abstractmethod
    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the files in a folder."""

    @abstractmethod
    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""

    def use(self, name: str) -> tuple[str, ...]:
        """Return lines on manual mode and tracking, in a language that has them."""
        return ()

    def refuse(self, source: Source) -> None:
        """Raise if a controller cannot be written."""
        return

    def source(self, machine: Machine, name: str) -> Source:
        """Return a controller to write; refuses a number type that the language does not know."""
        if machine.number.name not in self.numbers:
            known = " or ".join(map(repr, self.numbers))
            raise SettingError(f"number is {machine.number.name!r}, and must be {known} for {self.name}.")
        manual = self.manual and machine.tracks
        specification = machine.specification(manual=manual, parts=self.parts)
        program, parts = controller_program(specification)
        source = Source(
            machine,
            name,
            machine.number.name,
            tuple(heading(machine, name + self.suffix, self.use(name) if manual else ())),
            program,
            parts,
            machine.observations,
            machine.actions if not machine.discrete else (action_numbers(machine),),
            machine.discrete,
            machine.computes,
            machine.controller.sample_time,
            track_program(specification, program.state) if manual else None,
        )
        self.refuse(source)
        return source

    def write(self, machine: Machine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        return self.files(self.source(machine, name))

    def load(self, machine: Machine, files: Mapping[str, bytes], name: str, folder: Path) -> Player:
        """Write files to a folder; returns the function that plays samples by them."""
        for file, content in files.items():
            (folder / file).write_bytes(content)
        return self.player(self.source(machine, name), folder)
