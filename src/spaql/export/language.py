"""Targets: how a language or format writes a program, and how its files are run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spaql.errors import SettingError
from spaql.export.comments import action_numbers, heading
from spaql.export.machine import Machine
from spaql.export.played import Player
from spaql.program.controller import controller_program
from spaql.program.ir import Program
from spaql.program.manual import track_program
from spaql.program.numbers import Fixed

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
    """The type of observations and actions, "double", "float" or "fixed"."""
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
    bits: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """Of observations and actions in fixed point; None for other numbers."""

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
            (machine.number.observation_bits, machine.number.action_bits)
            if isinstance(machine.number, Fixed)
            else None,
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
