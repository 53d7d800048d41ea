"""A controller with memory as C99: its state in one struct, without allocation or the C library."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.export.c_common import TYPES, arithmetic_checks, comment_of, rounding
from spaql.export.compilers import FLAGS, compiled, compiler_version
from spaql.export.equivalence import EquivalenceError
from spaql.export.memory.build import program_of
from spaql.export.memory.check import Bools, MemoryTarget, Run
from spaql.export.memory.comments import heading
from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.program import (
    All,
    Binary,
    Expression,
    If,
    Program,
    SetFlag,
    Some,
    State,
    Statement,
)
from spaql.export.memory.syntax import Syntax
from spaql.export.memory.tracking import track_program
from spaql.export.misra import check_misra, checked_standard, reviewed
from spaql.export.processes import run
from spaql.export.trace import MemoryTrace
from spaql.kernels.controller import Floats
from spaql.languages import in_comment

_PROGRAM = "driver.exe" if os.name == "nt" else "driver"


@dataclass(frozen=True)
class CMemory(MemoryTarget):
    """C99, as a header and a source file."""

    flags: tuple[str, ...] = FLAGS
    """Of the compiler."""
    standard: str | None = None
    """As of `spaql.export.c_code.CCode`."""
    name = "C"
    suffix = ".c"
    manual = True

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        program, misra = program_of(machine, manual=True), checked_standard(self.standard) is not None
        syntax = MisraSyntax(program) if misra else CSyntax(program)
        header, source = _header(machine, program, name), _source(machine, program, name, syntax)
        if not misra:
            return {f"{name}.h": _bytes(header), f"{name}.c": _bytes(source)}
        return reviewed(name, header, source)

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Compile the files with a driver program; returns the function that plays episodes."""
        for file, content in files.items():
            (folder / file).write_bytes(content)
        if self.standard is not None:
            check_misra(folder, name)
        driver = folder / "driver.c"
        driver.write_text(_driver(machine, program_of(machine), name), encoding="utf-8")
        built = compiled([folder / f"{name}.c", driver], folder / _PROGRAM, self.flags)
        return lambda resets, inputs: _run(built, machine, resets, inputs)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"{compiler_version()}, {' '.join(self.flags)}"

    def trace(self, machine: MemoryMachine, name: str) -> MemoryTrace | None:
        """Return the trace of the equivalence check to write beside the files; None for none."""
        if self.standard is None:
            return None
        from spaql.export.machines.timing import timing_of_samples  # which runs what is written here

        return MemoryTrace(
            machine, name, lambda: timing_of_samples(machine, self.write(machine, "controller"))
        )


class CSyntax(Syntax):
    """C; the variables of the state are in a struct."""

    words = MappingProxyType({All: "&&", Some: "||"})
    otherwise, end = "} else {", "}"

    def __init__(self, program: Program) -> None:
        self._kept = {one.name for one in program.state}

    def number(self, x: float) -> str:
        """Return a constant."""
        return repr(x)

    def name(self, name: str) -> str:
        """Return a variable."""
        return f"state->{name}" if name in self._kept else name

    def expression(self, given: Expression, *, inner: bool = False) -> str:
        """Return an expression, in which every product is rounded on its own."""
        if isinstance(given, Binary) and given.operator == "*":
            return f"rounded({super().expression(given)})"
        return super().expression(given, inner=inner)

    def flag(self, name: str) -> str:
        """Return whether a truth variable is set."""
        return f"{self.name(name)} != 0"

    def negated(self, condition: str) -> str:
        """Return the negation of a condition."""
        return f"!({condition})"

    def is_leaf(self, number: int) -> str:
        """Return the question whether the leaf has a number."""
        return f"state->leaf == {number}"

    def note(self, text: str) -> str:
        """Return a comment."""
        return f"/* {in_comment(text)} */"

    def assigned(self, name: str, value: str) -> str:
        """Return an assignment."""
        return f"{name} = {value};"

    def truth(self, value: str | bool) -> str:
        """Return the value of a truth variable."""
        return f"{int(value)}" if isinstance(value, bool) else f"({value}) ? 1 : 0"

    def opening(self, condition: str, *, further: bool) -> str:
        """Return the line before the statements of a condition."""
        return f"{'} else if' if further else 'if'} ({condition}) {{"


class MisraSyntax(CSyntax):
    """C in which every chain of conditions ends with `else`, and conditions are not assigned."""

    def lines(self, statements: Sequence[Statement], level: int) -> Iterator[str]:
        """Yield the lines of statements."""
        return super().lines([_branched(one) for one in statements], level)

    def _chain(self, first: If, level: int) -> Iterator[str]:
        *lines, end = super()._chain(first, level)
        yield from lines
        indent = "    " * level
        chained, otherwise = (f"{indent}{text}" for text in ("} else if", self.otherwise))
        if any(line.startswith(chained) for line in lines) and otherwise not in lines:
            yield from (otherwise, f"{indent}    /* no other case */")
        yield end


def _branched(statement: Statement) -> Statement:
    """Return a statement that sets a truth variable by a condition as one with two branches."""
    if not isinstance(statement, SetFlag) or isinstance(statement.value, bool):
        return statement
    yes, no = (SetFlag(statement.name, value) for value in (True, False))
    return If(statement.value, (yes,), (no,))


def _bytes(lines: Iterator[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _type(one: State) -> str:
    return "double" if one.kind == "real" else "int"


def _header(machine: MemoryMachine, program: Program, name: str) -> Iterator[str]:
    controller, prefix, kind = machine.controller, name.upper(), TYPES[machine.number]
    yield from comment_of(heading(machine, f"{name}.h", _use(name)))
    yield from (f"#ifndef {prefix}_H", f"#define {prefix}_H", "")
    yield f"#define {prefix}_OBSERVATIONS {len(program.inputs)}"
    yield f"#define {prefix}_ACTIONS {len(program.outputs)}"
    yield f"#define {prefix}_SAMPLE_TIME {controller.sample_time!r} /* seconds between samples */"
    yield from ("", "#ifdef __cplusplus", 'extern "C" {', "#endif", "")
    yield from ("/* What the controller remembers: one for each plant. */", "typedef struct {")
    yield from (f"    {_type(one)} {one.name}; /* {in_comment(one.note)} */" for one in program.state)
    yield from (f"}} {name}_state;", "")
    yield "/* Writes the state before the first sample. */"
    yield from (f"void {name}_reset({name}_state *state);", "")
    yield from ("/* Takes a sample: writes the action for an observation, and updates the state.", " *")
    yield from (f" * observation[{j}]  {in_comment(one)}" for j, one in enumerate(controller.observations))
    yield from (f" * action[{k}]  {in_comment(one)}" for k, one in enumerate(controller.actions))
    yield " */"
    functions = _Functions(name, kind)
    yield from functions.declared("act", ";")
    yield from ("", *_MANUAL, *functions.declared("manual", ";"))
    yield from ("", *_TRACK, *functions.declared("track", ";"))
    yield from ("", "#ifdef __cplusplus", "}", "#endif", "", "#endif")


def _use(name: str) -> tuple[str, ...]:
    """Return lines on manual mode and tracking."""
    return (
        f"Manual mode: call {name}_manual in place of {name}_act. The action is the one given by hand, "
        "within its range and rate limit, also without a valid reading, and the state follows it: automatic "
        "mode then starts from there (bumpless transfer).",
        f"Tracking: if the plant gets another action than the one written here, call {name}_track with it "
        "before the next sample, so that integrals do not wind up.",
    )


_MANUAL = (
    "/* Takes a sample in manual mode: writes the action given by hand, within its limits, and updates the",
    " * state so that the next sample in automatic mode starts from it (bumpless transfer). */",
)
_TRACK = (
    "/* Tells which action was applied since the last sample, where a limiter, a selector or a local switch",
    " * after the controller changed it: call it before the next sample. */",
)


@dataclass(frozen=True)
class _Functions:
    """The functions of a controller."""

    name: str
    kind: str
    """The type of observations and actions."""

    def declared(self, function: str, end: str = "") -> Iterator[str]:
        """Yield the lines that declare a function."""
        prefix, kind = self.name.upper(), self.kind
        observation, action = f"const {kind} observation[{prefix}_OBSERVATIONS]", f"action[{prefix}_ACTIONS]"
        parameters = {
            "act": (observation, f"{kind} {action}"),
            "manual": (observation, f"const {kind} manual_{action}", f"{kind} {action}"),
            "track": (f"const {kind} applied_{action}",),
            "sample": (observation, "int manual", f"const {kind} manual_{action}", f"{kind} {action}"),
        }[function]
        begin = f"{'static ' if function == 'sample' else ''}void {self.name}_{function}("
        *lines, last = (f"{self.name}_state *state", *parameters)
        for line in lines:
            yield f"{begin}{line},"
            begin = " " * len(begin)
        yield f"{begin}{last}){end}"


def _source(machine: MemoryMachine, program: Program, name: str, syntax: CSyntax) -> Iterator[str]:
    functions = list(_functions(machine, program, name, syntax))
    yield from comment_of(heading(machine, f"{name}.c", _use(name)))
    yield f'#include "{name}.h"'
    yield from arithmetic_checks("the state needs it", single=machine.number == "float", sums=True)
    yield from (*rounding(functions), *functions)


def _functions(machine: MemoryMachine, program: Program, name: str, syntax: CSyntax) -> Iterator[str]:
    single = machine.number == "float"
    kind, cast = TYPES[machine.number], ("(double)", "(float)") if single else ("", "")
    functions, track = _Functions(name, kind), track_program(machine, program.state)
    yield from ("", f"void {name}_reset({name}_state *state)", "{")
    for one in program.state:
        value = repr(one.reset) if one.kind == "real" else str(int(one.reset))
        yield f"    state->{one.name} = {value};"
    yield from (
        "}",
        "",
        "/* Takes a sample in automatic or in manual mode. */",
        *functions.declared("sample"),
        "{",
    )
    yield from _inputs({"observation": program.inputs, "manual_action": program.manual}, cast[0])
    yield from (f"    double {word} = 0.0;" for word in [*program.outputs, *program.numbers])
    yield from (f"    int {word} = 0;" for word in program.flags)
    yield ""
    yield from syntax.lines(program.statements, 1)
    yield from (f"    (void){word};" for word in program.numbers if word not in program.read)
    yield from (f"    action[{k}] = {cast[1]}{word};" for k, word in enumerate(program.outputs))
    none = ", ".join("0.0f" if single else "0.0" for _ in program.outputs)
    yield from ("}", "", *functions.declared("act"), "{")
    yield f"    static const {kind} by_hand[{name.upper()}_ACTIONS] = {{{none}}};"
    yield f"    {name}_sample(state, observation, 0, by_hand, action);"
    yield from ("}", "", *functions.declared("manual"), "{")
    yield f"    {name}_sample(state, observation, 1, manual_action, action);"
    yield from ("}", "", *functions.declared("track"), "{")
    yield from _inputs({"applied_action": track.inputs}, cast[0])
    yield from (f"    double {word} = 0.0;" for word in track.numbers)
    yield ""
    yield from syntax.lines(track.statements, 1)
    yield "}"


def _inputs(arrays: Mapping[str, Sequence[str]], cast: str) -> Iterator[str]:
    """Yield variables for the numbers of arrays."""
    for array, words in arrays.items():
        yield from (f"    const double {word} = {cast}{array}[{j}];" for j, word in enumerate(words))


def _driver(machine: MemoryMachine, program: Program, name: str) -> str:
    """Return a C program that plays the samples on its standard input, each after a number for a reset.

    After an observation come the commands of `spaql.export.memory.check.Episodes`.
    """
    kind, prefix = TYPES[machine.number], name.upper()
    dump = ", ".join(f"(double)state.{one.name}" for one in program.state)
    return f"""#include <stdio.h>
#include "{name}.h"
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

int main(void)
{{
    {kind} sample[1 + {prefix}_OBSERVATIONS + 2 * (1 + {prefix}_ACTIONS)];
    const {kind} *manual = sample + 1 + {prefix}_OBSERVATIONS;
    const {kind} *track = manual + 1 + {prefix}_ACTIONS;
    {kind} action[{prefix}_ACTIONS];
    {name}_state state;
#ifdef _WIN32 /* where a stream of text changes bytes that happen to be line ends */
    (void)_setmode(_fileno(stdin), _O_BINARY);
    (void)_setmode(_fileno(stdout), _O_BINARY);
#endif
    {name}_reset(&state);
    while (fread(sample, sizeof sample, 1, stdin) == 1) {{
        if (sample[0] > 0) {{
            {name}_reset(&state);
        }}
        if (track[0] > 0) {{
            {name}_track(&state, track + 1);
        }}
        if (manual[0] > 0) {{
            {name}_manual(&state, sample + 1, manual + 1, action);
        }} else {{
            {name}_act(&state, sample + 1, action);
        }}
        double dump[] = {{{dump}}};
        if (fwrite(action, sizeof action, 1, stdout) != 1 || fwrite(dump, sizeof dump, 1, stdout) != 1) {{
            return 1;
        }}
    }}
    return 0;
}}
"""


def _run(program: Path, machine: MemoryMachine, resets: Bools, inputs: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the actions and states of a compiled controller, which plays one episode after the other."""
    steps, rows, width = inputs.shape
    samples = np.empty((rows, steps, 1 + width), machine.dtype)
    samples[..., 0], samples[..., 1:] = resets.T, inputs.transpose(1, 0, 2)
    failed = "The exported controller failed"
    written = run([str(program)], program.parent, EquivalenceError, failed, samples.tobytes())
    controller = machine.controller
    sizes = len(controller.actions), controller.memory_size
    row = np.dtype([("action", machine.dtype, sizes[:1]), ("state", np.float64, sizes[1:])])
    played = np.frombuffer(written, row).reshape(rows, steps)
    return (
        played["action"].transpose(1, 0, 2).astype(np.float64),
        played["state"].transpose(1, 0, 2).astype(np.float64),
    )
