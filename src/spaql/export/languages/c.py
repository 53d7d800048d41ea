"""A controller as C99: a header and a source file, without allocation, recursion or the C library."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spaql.export.compilers import FLAGS, compiled, compiler_version
from spaql.export.language import Source, Target
from spaql.export.languages.c_arithmetic import ROUNDED, TYPES, arithmetic_checks
from spaql.export.languages.c_syntax import CSyntax
from spaql.export.played import PLAYED, SAMPLES, Player, driven
from spaql.languages import in_comment
from spaql.program.ir import Program

_KINDS = {"flag": "int", "leaf": "int", "real": "double"}
_PROGRAM = "driver.exe" if os.name == "nt" else "driver"


@dataclass(frozen=True)
class C(Target):
    """C99; with memory its state is one struct."""

    flags: tuple[str, ...] = FLAGS
    """Of the compiler."""
    name = "C"
    suffix = ".c"
    numbers = ("double", "float", "fixed")
    manual = True

    def use(self, name: str) -> tuple[str, ...]:
        """Return lines on manual mode and tracking."""
        return (
            f"Manual mode: call {name}_manual in place of {name}_act. The action is the one given by hand, "
            "within its range and rate limit, also without a valid reading, and the state follows it: "
            "automatic mode then starts from there (bumpless transfer).",
            f"Tracking: if the plant gets another action than the one written here, call {name}_track with "
            "it before the next sample, so that integrals do not wind up.",
        )

    def files(self, source: Source) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        header = "\n".join(_header(source)) + "\n"
        return {f"{source.name}.h": header.encode(), f"{source.name}.c": self.text(source).encode()}

    def text(self, source: Source) -> str:
        """Return the content of the source file."""
        used: set[str] = set()
        written = _functions(source, used)
        functions = [part for line in written for part in _wrapped(line)]
        lines = [*comment_of(source.heading), f'#include "{source.name}.h"']
        if source.number != "fixed":
            doubles = None
            if _real(source) == "double":
                doubles = "the state needs it" if source.program.state else "laws and sums need it"
                if not source.computes:
                    doubles = "export float or fixed numbers instead"
            lines += arithmetic_checks(doubles, single=source.number == "float", sums=source.computes)
        lines += ["", *ROUNDED] if "rounded" in used else []
        lines += functions
        return "\n".join(lines) + "\n"

    def player(self, source: Source, folder: Path) -> Player:
        """Compile the files with a driver program; returns the function that plays samples."""
        (folder / "driver.c").write_text(_driver(source), encoding="utf-8")
        sources = [folder / f"{source.name}.c", folder / "driver.c"]
        return driven([str(compiled(sources, folder / _PROGRAM, self.flags))], folder, source.played)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"{compiler_version()}, {' '.join(self.flags)}"


def comment_of(lines: Sequence[str]) -> list[str]:
    """Return lines as a comment."""
    kept = enumerate(map(in_comment, lines))
    return [*(f"{'/*' if not i else ' *'} {line}".rstrip() for i, line in kept), " */"]


def _wrapped(line: str) -> list[str]:
    """Return a line of code in lines of limited length; comments are as long as they are."""
    if len(line) <= 110 or "/*" in line:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    first, *others = re.split(r" (?=\|\| |&& |\+ )", line)
    lines = [first]
    for part in others:
        if len(lines[-1]) + 1 + len(part) <= 110:
            lines[-1] += " " + part
        else:
            lines.append(indent + part)
    return lines


def _real(source: Source) -> str:
    """Return the type of numbers in between: where there is no arithmetic, that of observations."""
    return "double" if source.computes else TYPES[source.number]


def _declared(source: Source, function: str, end: str = "") -> Iterator[str]:
    """Yield the lines that declare a function."""
    name = source.name
    kind = TYPES[source.number]
    observation = f"const {kind} observation[{name.upper()}_OBSERVATIONS]"
    action = f"action[{name.upper()}_ACTIONS]"
    by_hand = f"const {kind} manual_{action}"
    parameters = {
        "reset": (),
        "act": (observation, f"{kind} {action}"),
        "manual": (observation, by_hand, f"{kind} {action}"),
        "track": (f"const {kind} applied_{action}",),
        "sample": (observation, "int manual", by_hand, f"{kind} {action}"),
    }[function]
    state = [f"{name}_state *state"] if source.program.state else []
    begin = f"{'static ' if function == 'sample' else ''}void {name}_{function}("
    *lines, last = [*state, *parameters]
    for line in lines:
        yield f"{begin}{line},"
        begin = " " * len(begin)
    yield f"{begin}{last}){end}"


def _header(source: Source) -> list[str]:
    prefix = source.name.upper()
    state = source.program.state
    n, m, _ = source.widths
    first, *others = source.heading
    lines = comment_of([first.replace(".c:", ".h:", 1), *others])
    lines += [f"#ifndef {prefix}_H", f"#define {prefix}_H", ""]
    lines += ["#include <stdint.h>", ""] if source.number == "fixed" else []
    lines += [f"#define {prefix}_OBSERVATIONS {n}", f"#define {prefix}_ACTIONS {m}"]
    if state:
        lines += [f"#define {prefix}_SAMPLE_TIME {source.sample_time!r} /* seconds between samples */"]
    if source.bits is not None:
        lines += ["", "/* A number is the real one times 2 to the power of its bits, rounded down. */"]
        for what, all_bits in zip(("OBSERVATION", "ACTION"), source.bits, strict=True):
            lines += [f"#define {prefix}_{what}_{j}_BITS ({bits})" for j, bits in enumerate(all_bits)]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    if state:
        lines += ["/* What the controller remembers: one for each plant. */", "typedef struct {"]
        lines += [
            f"    {_KINDS[variable.kind]} {variable.name}; /* {in_comment(variable.note)} */"
            for variable in state
        ]
        lines += [f"}} {source.name}_state;", "", "/* Writes the state before the first sample. */"]
        lines += [*_declared(source, "reset", ";"), ""]
    lines += [
        "/* Takes a sample: writes the action for an observation, and updates the state."
        if state
        else "/* Writes the action for an observation.",
        " *",
        *(f" * {in_comment(line)}" for line in source.notes()),
        " */",
        *_declared(source, "act", ";"),
    ]
    if source.track is not None:
        lines += ["", *_MANUAL, *_declared(source, "manual", ";")]
        lines += ["", *_TRACK, *_declared(source, "track", ";")]
    return [*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif"]


_MANUAL = (
    "/* Takes a sample in manual mode: writes the action given by hand, within its limits, and updates the",
    " * state so that the next sample in automatic mode starts from it (bumpless transfer). */",
)
_TRACK = (
    "/* Tells which action was applied since the last sample, where a limiter, a selector or a local switch",
    " * after the controller changed it: call it before the next sample. */",
)


def _functions(source: Source, used: set[str]) -> Iterator[str]:
    """Yield the functions of the source file."""
    real = _real(source)
    for name, part in source.parts.items():
        syntax = CSyntax(part, real, used)
        parameters = [f"const {real} {word}" for word in syntax.plain(part.inputs)]
        parameters += [f"{real} *out_{k}" for k in range(len(part.outputs))]
        yield from ("", f"static void {name}({', '.join(parameters)})", "{", *_body(part, syntax))
        yield from (f"    *out_{k} = {word};" for k, word in enumerate(syntax.outputs))
        yield "}"
    direct = not source.program.state and real == TYPES[source.number]
    syntax = CSyntax(source.program, real, used, direct=direct)
    if source.program.state:
        yield from _with_state(source, syntax)
    else:
        yield from ("", *_declared(source, "act"), "{", *_sample(source, syntax), "}")


def _with_state(source: Source, syntax: CSyntax) -> Iterator[str]:
    """Yield the functions of a controller with memory."""
    single = source.number == "float"
    yield from ("", *_declared(source, "reset"), "{")
    for variable in source.program.state:
        value = repr(variable.reset) if variable.kind == "real" else str(int(variable.reset))
        yield f"    state->{variable.name} = {value};"
    yield "}"
    if source.track is None:
        yield from ("", *_declared(source, "act"), "{", *_sample(source, syntax), "}")
        return
    yield from ("", "/* Takes a sample in automatic or in manual mode. */", *_declared(source, "sample"))
    yield from ("{", *_sample(source, syntax), "}", "", *_declared(source, "act"), "{")
    none = ", ".join("0.0f" if single else "0.0" for _ in source.program.outputs)
    kind = TYPES[source.number]
    name = source.name
    yield f"    static const {kind} by_hand[{name.upper()}_ACTIONS] = {{{none}}};"
    yield f"    {name}_sample(state, observation, 0, by_hand, action);"
    yield from ("}", "", *_declared(source, "manual"), "{")
    yield f"    {name}_sample(state, observation, 1, manual_action, action);"
    yield from ("}", "", *_declared(source, "track"), "{")
    track = CSyntax(source.track, syntax.real, syntax.used)
    yield from _inputs(source, "applied_action", track.plain(source.track.inputs))
    yield from (*_body(source.track, track), "}")


def _sample(source: Source, syntax: CSyntax) -> Iterator[str]:
    """Yield the statements from observation to action."""
    program = source.program
    cast = "(float)" if source.number == "float" and syntax.real == "double" else ""
    yield from _inputs(source, "observation", syntax.plain(program.inputs), source.observations)
    yield from _inputs(source, "manual_action", syntax.plain(program.manual))
    yield from _body(program, syntax)
    for k, word in enumerate(syntax.outputs):
        if word != f"action[{k}]":
            yield f"    action[{k}] = {cast}{word};"


def _inputs(source: Source, array: str, words: Sequence[str], notes: Sequence[str] = ()) -> Iterator[str]:
    """Yield variables for the numbers of an array."""
    real = _real(source)
    cast = "(double)" if real == "double" and source.number == "float" else ""
    for j, word in enumerate(words):
        note = f" /* {in_comment(notes[j])} */" if notes else ""
        yield f"    const {real} {word} = {cast}{array}[{j}];{note}"


def _body(program: Program, syntax: CSyntax) -> Iterator[str]:
    """Yield the variables and the statements of a program."""
    own = [word for word in syntax.outputs if "[" not in word] + syntax.plain(program.numbers)
    yield from (f"    {syntax.real} {word} = {syntax.number(0.0)};" for word in own)
    yield from (f"    int {word} = 0;" for word in syntax.plain(program.flags))
    yield ""
    yield from syntax.lines(program.statements, 1)
    unread = [word for word in (*program.inputs, *program.numbers) if word not in program.read]
    yield from (f"    (void){word};" for word in syntax.plain(unread))


def _driver(source: Source) -> str:
    """Return a C program that plays the samples in a file."""
    name = source.name
    kind = TYPES[source.number]
    state = source.program.state
    n, m, _ = source.widths
    width = 1 + n + (2 * (1 + m) if source.track is not None else 0)
    dump = "".join(
        f"        out[{m + i}] = (double)state.{variable.name};\n" for i, variable in enumerate(state)
    )
    reset = f"if (row[0] > 0.0) {{ {name}_reset(&state); }}" if state else ""
    call = f"{name}_act({'&state, ' if state else ''}given, action);"
    if source.track is not None:
        call = f"""if (row[{2 + n + m}] > 0.0) {{
            {name}_track(&state, given + {2 + n + m});
        }}
        if (row[{1 + n}] > 0.0) {{
            {name}_manual(&state, given, given + {1 + n}, action);
        }} else {{
            {name}_act(&state, given, action);
        }}"""
    return f"""#include <stdio.h>
#include "{name}.h"

int main(void)
{{
    double row[{width}], out[{source.played}];
    {kind} given[{width}], action[{m}];
    FILE *samples = fopen("{SAMPLES}", "rb");
    FILE *played = fopen("{PLAYED}", "wb");
    {f"{name}_state state;" if state else ""}
    if (samples == NULL || played == NULL) {{
        return 1;
    }}
    {f"{name}_reset(&state);" if state else ""}
    while (fread(row, sizeof row, 1, samples) == 1) {{
        for (int j = 1; j < {width}; j++) {{
            given[j - 1] = ({kind})row[j];
        }}
        {reset}
        {call}
        for (int k = 0; k < {m}; k++) {{
            out[k] = (double)action[k];
        }}
{dump}        if (fwrite(out, sizeof out, 1, played) != 1) {{
            return 1;
        }}
    }}
    return fclose(played);
}}
"""
