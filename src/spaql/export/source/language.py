"""What the languages have in common: one program, with or without memory, and one way to run it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gymnasium.spaces import Discrete

from spaql.errors import SettingError
from spaql.export.comments import heading, name_of_action
from spaql.export.equivalence import Run, Target
from spaql.export.memory.build import program_of
from spaql.export.memory.check import MemoryTarget
from spaql.export.memory.check import Run as MemoryRun
from spaql.export.memory.comments import heading as memory_heading
from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.program import Program, State
from spaql.export.memory.syntax import Syntax
from spaql.export.played import Player, player_of_episodes, player_of_rows
from spaql.export.source.rules import rule_program
from spaql.export.target_controller import MachineController
from spaql.policy import Laws, SwitchingLaws


@dataclass(frozen=True)
class Source:
    """A controller to write in a language."""

    name: str
    """Of the file, without a suffix."""
    number: str
    """The type of observations and actions, "double" or "float"."""
    heading: tuple[str, ...]
    program: Program
    parts: Mapping[str, Program]
    observations: tuple[str, ...]
    """For people, with units."""
    actions: tuple[str, ...]
    """Lines for people."""
    discrete: bool
    """Whether the action is the number of one in a list."""
    computes: bool
    """Whether there is arithmetic: laws, sums or memory."""
    sample_time: float | None = None
    """None without memory."""

    @property
    def widths(self) -> tuple[int, int, int]:
        """The numbers of an observation, of an action and of the state."""
        program = self.program
        return len(program.inputs), len(program.outputs), len(program.state)

    @property
    def played(self) -> int:
        """The numbers that a driver writes for a sample: those of the action and of the state."""
        return sum(self.widths[1:])


class Language(Target, ABC):
    """A target that is a language: how it writes a program, and how it runs one.

    A subclass has the three abstract methods and `tool`. `numbers` are the number types that it knows.
    """

    numbers: tuple[str, ...] = ("double",)

    @abstractmethod
    def text(self, source: Source) -> str:
        """Return the content of the file."""

    @abstractmethod
    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the file in a folder."""

    def refuse(self, source: Source) -> None:
        """Raise if a controller cannot be written."""
        if source.number not in self.numbers:
            known = " or ".join(map(repr, self.numbers))
            raise SettingError(f"number is {source.number!r}, and must be {known} for {self.name}.")

    def files(self, source: Source) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        self.refuse(source)
        return {source.name + self.suffix: self.text(source).encode()}

    def prepared(self, source: Source, files: Mapping[str, bytes], folder: Path) -> Player:
        """Write files to a folder; returns the function that plays samples by them."""
        for file, content in files.items():
            (folder / file).write_bytes(content)
        return self.player(source, folder)

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        return self.files(self._source(controller, name))

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Prepare the files in a folder; returns the function from inputs to actions."""
        return player_of_rows(self.prepared(self._source(controller, name), files, folder))

    def with_memory(self) -> LanguageMemory:
        """Return the target for controllers with memory."""
        return LanguageMemory(self)

    def _source(self, controller: MachineController, name: str) -> Source:
        if controller.number.name not in ("double", "float"):
            known = " or ".join(map(repr, self.numbers))
            raise SettingError(f"number is {controller.number.name!r}, and must be {known} for {self.name}.")
        tree = controller.tree
        made = rule_program(controller)
        return Source(
            name,
            controller.number.name,
            tuple(heading(controller, name + self.suffix)),
            made.main,
            made.parts,
            tuple(tree.observations),
            tuple(name_of_action(controller, "The action is ")),
            isinstance(tree.action_space, Discrete),
            isinstance(tree.leaves, Laws | SwitchingLaws) or len(tree.combinations) > 0,
        )


class LanguageMemory(MemoryTarget):
    """The same for controllers with memory."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self.name, self.suffix = language.name, language.suffix

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        return self._language.files(self.source(machine, name))

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> MemoryRun:
        """Prepare the files in a folder; returns the function that plays episodes."""
        source = self.source(machine, name)
        return player_of_episodes(self._language.prepared(source, files, folder), source.widths[1])

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return self._language.tool()

    def source(self, machine: MemoryMachine, name: str) -> Source:
        """Return the controller to write."""
        controller = machine.controller
        return Source(
            name,
            machine.number,
            tuple(memory_heading(machine, name + self.suffix)),
            program_of(machine),
            {},
            tuple(controller.observations),
            tuple(f"action[{k}]  {one}" for k, one in enumerate(controller.actions)),
            discrete=False,
            computes=True,
            sample_time=controller.sample_time,
        )


class LanguageSyntax(Syntax):
    """How a language writes the statements of a program."""

    reserved = ""
    """Words that no variable may have: they get an underscore."""
    kept = "{}"
    """How a variable of the state is written."""

    def __init__(self, program: Program) -> None:
        self._kept = {one.name for one in program.state}
        self.outputs = self.plain(program.outputs)

    def plain(self, names: Sequence[str]) -> list[str]:
        """Return variables that are not of the state."""
        reserved = self.reserved.split()
        return [f"{name}_" if name in reserved else name for name in names]

    def name(self, name: str) -> str:
        """Return a variable."""
        return self.kept.format(name) if name in self._kept else self.plain([name])[0]

    def assigned(self, name: str, value: str) -> str:
        """Return an assignment."""
        return f"{name} = {value};"

    def negated(self, condition: str) -> str:
        """Return the negation of a condition."""
        return f"!({condition})"

    def truth(self, value: str | bool) -> str:
        """Return the value of a truth variable."""
        return str(value).lower() if isinstance(value, bool) else value

    def number(self, x: float) -> str:
        """Return a constant."""
        return repr(x).removesuffix(".0")

    def value(self, one: State) -> str:
        """Return the value of a variable of the state at a reset."""
        if one.kind == "flag":
            return self.truth(bool(one.reset))
        return str(int(one.reset)) if one.kind == "leaf" else self.number(one.reset)
