"""A controller with memory as a function block in Structured Text (IEC 61131-3), and how it is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from spaql.export.memory.build import program_of
from spaql.export.memory.check import MemoryTarget, Run
from spaql.export.memory.comments import heading
from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.program import All, Program, Some, State
from spaql.export.memory.syntax import Syntax
from spaql.export.memory.tracking import track_program
from spaql.export.played import player_of_episodes
from spaql.export.st_common import LIBRARY, literal
from spaql.export.st_reader import FunctionBlock
from spaql.languages import in_comment

_TYPES = {"double": "LREAL", "float": "REAL"}
_KINDS = {"real": "LREAL", "flag": "BOOL", "leaf": "DINT"}


class StructuredTextMemory(MemoryTarget):
    """One function block, with inputs for a reset, manual mode and tracking."""

    name = "Structured Text"
    suffix = ".st"
    manual = True

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        lines = [f"(* {in_comment(line)} *)" for line in heading(machine, f"{name}.st", _USE) if line]
        lines += _block(machine, program_of(machine, manual=True), name[0].upper() + name[1:])
        return {f"{name}.st": ("\n".join(lines) + "\n").encode()}

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Interpret the text as the standard defines it; returns the function that plays episodes."""
        block = FunctionBlock.read(files[f"{name}.st"].decode())
        shown = [*block.outputs, *(one.name for one in program_of(machine).state)]
        return player_of_episodes(block.player(folder, shown, resets=True), len(block.outputs))

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return "spaql.export.st_reader, which follows the standard; not run on a PLC"


class StructuredTextSyntax(Syntax):
    """Structured Text."""

    words = MappingProxyType({All: "AND", Some: "OR"})
    otherwise, end = "ELSE", "END_IF;"

    def __init__(self, singles: Collection[str] = ()) -> None:
        self._singles = singles

    def plain(self, name: str) -> str:
        """Return the name of a variable; the names of the state are never those of the library."""
        return f"own_{name}" if name in LIBRARY.split() else name

    def number(self, x: float) -> str:
        """Return a constant."""
        return literal("LREAL", x)

    def name(self, name: str) -> str:
        """Return a variable."""
        return f"REAL_TO_LREAL({self.plain(name)})" if name in self._singles else self.plain(name)

    def negated(self, condition: str) -> str:
        """Return the negation of a condition."""
        return f"NOT ({condition})"

    def is_leaf(self, number: int) -> str:
        """Return the question whether the leaf has a number."""
        return f"leaf = {number}"

    def note(self, text: str) -> str:
        """Return a comment."""
        return f"(* {in_comment(text)} *)"

    def assigned(self, name: str, value: str) -> str:
        """Return an assignment."""
        return f"{name} := {value};"

    def truth(self, value: str | bool) -> str:
        """Return the value of a truth variable."""
        return str(value).upper() if isinstance(value, bool) else value

    def opening(self, condition: str, *, further: bool) -> str:
        """Return the line before the statements of a condition."""
        return f"{'ELSIF' if further else 'IF'} {condition} THEN"


_USE = (
    "Manual mode: while manual is TRUE, the output is the input manual_..., within its range and rate limit, "
    "also without a valid reading, and the memory follows it: automatic mode then starts from there "
    "(bumpless transfer).",
    "Tracking: if the plant gets another action than the output, set applied_... to it in the next call, and "
    "track to TRUE, so that integrals do not wind up. Both may stay connected to the actuator's position.",
)


def _block(machine: MemoryMachine, program: Program, block: str) -> Iterator[str]:
    controller, kind = machine.controller, _TYPES[machine.number]
    single, track = machine.number == "float", track_program(machine, program.state)
    syntax = StructuredTextSyntax([*program.inputs, *program.manual, *track.inputs] if single else ())
    outputs = {word: f"{word}_out" for word in program.outputs} if single else {}
    yield f"FUNCTION_BLOCK {block}"
    yield from ("VAR_INPUT", "    reset : BOOL; (* TRUE for a sample that begins anew *)")
    for word, name in zip(program.inputs, controller.observations, strict=True):
        yield f"    {syntax.plain(word)} : {kind}; (* {in_comment(name)} *)"
    yield "    manual : BOOL; (* TRUE for manual mode; bumpless when it ends *)"
    for word, name in zip(program.manual, controller.actions, strict=True):
        yield f"    {word} : {kind}; (* given by hand in manual mode: {in_comment(name)} *)"
    yield "    track : BOOL; (* TRUE where the inputs below are what the actuators applied *)"
    for word, name in zip(track.inputs, controller.actions, strict=True):
        yield f"    {word} : {kind}; (* applied since the last sample: {in_comment(name)} *)"
    yield from ("END_VAR", "VAR_OUTPUT")
    for word, name in zip(program.outputs, controller.actions, strict=True):
        yield f"    {outputs.get(word, syntax.plain(word))} : {kind}; (* {in_comment(name)} *)"
    yield from ("END_VAR", "VAR")
    for one in program.state:
        yield f"    {one.name} : {_KINDS[one.kind]} := {_value(one)}; (* {in_comment(one.note)} *)"
    yield from (f"    {syntax.plain(word)} : LREAL;" for word in [*outputs, *program.numbers])
    yield from (f"    {word} : BOOL;" for word in program.flags)
    yield from ("END_VAR", "", "IF reset THEN")
    yield from (f"    {one.name} := {_value(one)};" for one in program.state)
    yield from ("END_IF;", "IF track THEN")
    yield from syntax.lines(track.statements, 1)
    yield "END_IF;"
    yield from syntax.lines(program.statements, 0)
    yield from (f"{out} := LREAL_TO_REAL({syntax.plain(word)});" for word, out in outputs.items())
    yield "END_FUNCTION_BLOCK"


def _value(one: State) -> str:
    if one.kind == "real":
        return literal("LREAL", one.reset)
    return str(bool(one.reset)).upper() if one.kind == "flag" else str(int(one.reset))
