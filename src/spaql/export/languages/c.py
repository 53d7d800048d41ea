"""A controller as C99: a header and a source file, without allocation, recursion or the C library."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spaql.export.language import Source, Target
from spaql.export.running import FLAGS, PLAYED, SAMPLES, Player, compiled, compiler_version, driven
from spaql.export.syntax import Syntax
from spaql.languages import C as WORDS
from spaql.languages import in_comment
from spaql.program.ir import Binary, Call, Expression, If, Program, SetFlag, Statement

ROUNDED = (
    "/* A product as it is stored. GCC follows the pragma above, and some processors cannot fuse; any other",
    " * compiler must store it: with -ffp-contract=fast, clang ignores its pragmas. */",
    "#if defined(__GNUC__) && !defined(__clang__)",
    "#define STORED",
    "#elif defined(__wasm__) || (defined(__x86_64__) && !defined(__FMA__) && !defined(__FMA4__))",
    "#define STORED",
    "#else",
    "#define STORED volatile",
    "#endif",
    "static double rounded(double product)",
    "{",
    "    const STORED double kept = product;",
    "    return kept;",
    "}",
)


def arithmetic_checks(doubles: str | None, *, single: bool, sums: bool) -> Iterator[str]:
    """Yield checks of the compiler's arithmetic.

    Parameters
    ----------
    doubles
        What to do if doubles do not have 64 bits; None if none are used.
    single
        Whether floats are used.
    sums
        Whether there are sums of products.
    """
    yield "#include <float.h>"
    yield ""
    if doubles is not None:
        yield "#if DBL_MANT_DIG != 53"
        yield f'#error "double must have 64 bits: {doubles}"'
        yield "#endif"
    if single:
        yield "#if FLT_MANT_DIG != 24"
        yield '#error "float must have 32 bits"'
        yield "#endif"
    # 16 is for compilers with half precision: the other types are still computed as stored.
    yield "#if (FLT_EVAL_METHOD != 0) && (FLT_EVAL_METHOD != 16)"
    yield '#error "numbers must be computed as they are stored: on x86 compile with -msse2 -mfpmath=sse"'
    yield "#endif"
    yield "#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && (__FINITE_MATH_ONLY__ > 0))"
    yield '#error "compile without -ffast-math: it assumes that there is no NaN"'
    yield "#endif"
    if doubles is not None:
        yield "#if defined(__STDC_VERSION__) && (__STDC_VERSION__ >= 201112L)"
        yield '_Static_assert(sizeof(0.1) == sizeof(double), "compile without -fsingle-precision-constant");'
        yield "#endif"
    if sums:
        yield from _SEPARATE


_SEPARATE = (
    "#if defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)",
    '#error "compile without -funsafe-math-optimizations: it computes sums in another order"',
    "#endif",
    "/* Every product, sum and quotient is rounded on its own, in the order that is written here. */",
    "#if defined(__GNUC__) && !defined(__clang__)",
    '#pragma GCC optimize ("fp-contract=off")',
    "#else",
    "#if defined(__clang__) && (defined(__x86_64__) || defined(__i386__))",
    "#pragma float_control(precise, on)",
    "#elif defined(__clang__)",
    "#pragma clang fp reassociate(off)",
    "#endif",
    "#pragma STDC FP_CONTRACT OFF",
    "#endif",
)


_LARGEST_SINGLE = 3.4028234663852886e38


class CSyntax(Syntax):
    """C; the variables of the state are in a struct. Numbers are `real`.

    By MISRA C:2012, every chain of conditions ends with `else`, and conditions are not assigned.
    """

    truths = ("0", "1")
    flag = "{} != 0"
    in_leaf = "state->leaf == {}"
    comment = "/* {} */"
    no_other_case = comment.format("no other case")
    kept = "state->{}"
    reserved = f"{WORDS} action observation state rounded"

    def __init__(self, program: Program, real: str, used: set[str], *, direct: bool = False) -> None:
        """If products are rounded by the function, "rounded" is added to what is `used`."""
        super().__init__(program)
        self.real = real
        self.used = used
        self._direct: dict[str, str] = {}
        if direct:  # the outputs are written where they go
            self._direct = {word: f"action[{k}]" for k, word in enumerate(program.outputs)}
            self.outputs = list(self._direct.values())

    def name(self, name: str) -> str:
        """Return a variable."""
        return self._direct.get(name) or super().name(name)

    def number(self, x: float) -> str:
        """Return a constant."""
        if self.real == "double":
            return repr(x)
        text = str(np.float32(min(max(x, -_LARGEST_SINGLE), _LARGEST_SINGLE)))  # the fewest digits
        return f"{text}{'' if any(c in text for c in '.en') else '.0'}f"

    def expression(self, expression: Expression, *, inner: bool = False) -> str:
        """Return an expression, in which every product is rounded on its own."""
        if isinstance(expression, Binary) and expression.operator == "*":
            self.used.add("rounded")
            return f"rounded({super().expression(expression)})"
        return super().expression(expression, inner=inner)

    def called(self, call: Call) -> str:
        """Return the statement that sets numbers by the outputs of a part of the program."""
        passed = [*self.plain(call.arguments), *(f"&{self.name(word)}" for word in call.outputs)]
        return f"{call.part}({', '.join(passed)});"

    def lines(self, statements: Sequence[Statement], level: int) -> Iterator[str]:
        """Yield the lines of statements."""
        return super().lines([_branched(statement) for statement in statements], level)


def _branched(statement: Statement) -> Statement:
    """Return a statement that sets a truth variable by a condition as one with two branches."""
    if not isinstance(statement, SetFlag) or isinstance(statement.value, bool):
        return statement
    yes, no = (SetFlag(statement.name, value) for value in (True, False))
    return If(statement.value, (yes,), (no,))


_KINDS = {"flag": "int", "leaf": "int", "real": "double"}
_PROGRAM = "driver.exe" if os.name == "nt" else "driver"


@dataclass(frozen=True)
class C(Target):
    """C99; with memory its state is one struct."""

    flags: tuple[str, ...] = FLAGS
    """Of the compiler."""
    name = "C"
    suffix = ".c"
    numbers = ("double", "float")
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
        doubles = None
        if _real(source) == "double":
            doubles = "the state needs it" if source.program.state else "laws and sums need it"
            if not source.computes:
                doubles = "export float numbers instead"
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
    return "double" if source.computes else source.number


def _declared(source: Source, function: str, end: str = "") -> Iterator[str]:
    """Yield the lines that declare a function."""
    name = source.name
    kind = source.number
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
    lines += [f"#define {prefix}_OBSERVATIONS {n}", f"#define {prefix}_ACTIONS {m}"]
    if state:
        lines += [f"#define {prefix}_SAMPLE_TIME {source.sample_time!r} /* seconds between samples */"]
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
    direct = not source.program.state and real == source.number
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
    kind = source.number
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
    kind = source.number
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
