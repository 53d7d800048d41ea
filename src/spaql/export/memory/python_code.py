"""A controller with memory as one Python file without imports."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from spaql.export.memory.build import program_of
from spaql.export.memory.check import MemoryTarget, Run
from spaql.export.memory.comments import heading
from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.program import All, Program, Some
from spaql.export.memory.syntax import Syntax
from spaql.export.played import driven_by_python, player_of_episodes, run_file
from spaql.languages import in_comment


class PythonMemory(MemoryTarget):
    """One file of plain Python, with a class."""

    name = "Python"
    suffix = ".py"

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        head = "\n".join(map(in_comment, heading(machine, f"{name}.py")))
        lines = [f'"""{head}\n"""', "", "", *_class(machine, program_of(machine))]
        return {f"{name}.py": ("\n".join(lines) + "\n").encode()}

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Return the function that plays episodes, in an interpreter that runs the file."""
        (folder / f"{name}.py").write_bytes(files[f"{name}.py"])
        setup = [*run_file(name), "controller = namespace['Controller']()"]
        sample = ["if row[0] > 0.0:", "    controller.reset()", "played.extend(controller.act(row[1:]))"]
        sample += [f"played.append(controller.{one.name})" for one in program_of(machine).state]
        n = len(machine.controller.observations)
        m = len(machine.controller.actions)
        width = m + machine.controller.memory_size
        return player_of_episodes(driven_by_python(setup, sample, folder, n, width), m)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"{platform.python_implementation()} {platform.python_version()}"


class PythonSyntax(Syntax):
    """Python; the variables of the state are attributes."""

    words = MappingProxyType({All: "and", Some: "or"})
    otherwise, end = "else:", ""

    def __init__(self, program: Program) -> None:
        self._kept = {one.name for one in program.state}

    def number(self, x: float) -> str:
        """Return a constant."""
        return repr(x)

    def name(self, name: str) -> str:
        """Return a variable."""
        return f"self.{name}" if name in self._kept else name

    def negated(self, condition: str) -> str:
        """Return the negation of a condition."""
        return f"not ({condition})"

    def is_leaf(self, number: int) -> str:
        """Return the question whether the leaf has a number."""
        return f"self.leaf == {number}"

    def note(self, text: str) -> str:
        """Return a comment."""
        return f"# {in_comment(text)}"

    def assigned(self, name: str, value: str) -> str:
        """Return an assignment."""
        return f"{name} = {value}"

    def truth(self, value: str | bool) -> str:
        """Return the value of a truth variable."""
        return str(value)

    def opening(self, condition: str, *, further: bool) -> str:
        """Return the line before the statements of a condition."""
        return f"{'elif' if further else 'if'} {condition}:"


def _class(machine: MemoryMachine, program: Program) -> Iterator[str]:
    controller = machine.controller
    yield from (
        "class Controller:",
        '    """The controller, with what it remembers; one for each plant."""',
        "",
    )
    yield f"    sample_time = {controller.sample_time!r}"
    yield '    """Seconds between samples."""'
    yield from ("", "    def __init__(self):", "        self.reset()", "")
    yield from ("    def reset(self):", '        """Forget everything, before the first sample."""')
    for one in program.state:
        value = {"real": repr(one.reset), "flag": str(bool(one.reset)), "leaf": str(int(one.reset))}[one.kind]
        yield f"        self.{one.name} = {value}  # {in_comment(one.note)}"
    yield from ("", "    def act(self, observation):", '        """Return the action for an observation.', "")
    yield from (
        f"        observation[{j}]  {in_comment(name)}" for j, name in enumerate(controller.observations)
    )
    yield from (f"        action[{k}]  {in_comment(name)}" for k, name in enumerate(controller.actions))
    yield '        """'
    comma = "," if len(program.inputs) == 1 else ""
    yield f"        {', '.join(program.inputs)}{comma} = map(float, observation)"
    yield from PythonSyntax(program).lines(program.statements, 2)
    yield f"        return ({', '.join(program.outputs)},)"
