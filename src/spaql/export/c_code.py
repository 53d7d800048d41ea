"""A controller as C99, without allocation, recursion or the C library."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.export.c_common import (
    CUT,
    TYPES,
    checks,
    comment,
    literal,
    names_in,
    needs_infinity,
    prototype,
    rounding,
    undefined,
    weighted,
)
from spaql.export.c_table import table
from spaql.export.comments import name_of_action
from spaql.export.compilers import FLAGS, compiled, compiler_version
from spaql.export.conditions import Keywords, chosen_form, nested, refuse_form
from spaql.export.equivalence import EquivalenceError, Run, Target
from spaql.export.memory.c_code import CMemory
from spaql.export.misra import check_misra, checked_standard, reviewed
from spaql.export.numbers import Fixed
from spaql.export.processes import run
from spaql.export.target_controller import MachineController
from spaql.export.trace import RuleTrace
from spaql.languages import in_comment
from spaql.policy import Laws

_PROGRAM = "driver.exe" if os.name == "nt" else "driver"
_KEYWORDS = Keywords("if ({}) {{", "}} else if ({}) {{", "} else {", "}")


@dataclass(frozen=True)
class CCode(Target):
    """C99, as a header and a source file."""

    form: str | None = None
    """"rules", "table", or None to choose by size."""
    flags: tuple[str, ...] = FLAGS
    """Of the compiler."""
    standard: str | None = None
    """"misra" for C that follows MISRA C:2012, as far as cppcheck checks it."""
    name = "C"
    suffix = ".c"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        misra = checked_standard(self.standard) is not None
        rules = chosen_form(controller.tree, self.form) == "rules"
        lines = [
            *comment(controller, f"{name}.c"),
            f'#include "{name}.h"',
            *checks(controller),
            *(_rules(controller, name) if rules else table(controller, name, inside=misra)),
        ]
        header = _header(controller, name)
        if not misra:
            return {f"{name}.h": _bytes(header), f"{name}.c": _bytes(lines)}
        return reviewed(name, header, lines)

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Compile the files with a driver program; returns the function from inputs to actions."""
        for file, content in files.items():
            (folder / file).write_bytes(content)
        if self.standard is not None:
            check_misra(folder, name)
        driver = folder / "driver.c"
        driver.write_text(driver_source(controller, name), encoding="utf-8")
        program = compiled([folder / f"{name}.c", driver], folder / _PROGRAM, self.flags)
        return lambda inputs: run_program([str(program)], controller, inputs)

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"{compiler_version()}, {' '.join(self.flags)}"

    def trace(self, controller: MachineController, name: str) -> RuleTrace | None:
        """Return the trace of the equivalence check to write beside the files; None for none."""
        if self.standard is None:
            return None
        from spaql.export.machines.timing import timing_of  # which runs what is written here

        return RuleTrace(
            controller, name, lambda: timing_of(controller, self.write(controller, "controller"))
        )

    def with_memory(self) -> CMemory:
        """Return the target for controllers with memory."""
        refuse_form(self.form)
        return CMemory(self.flags, self.standard)


def run_program(
    command: Sequence[str], controller: MachineController, inputs: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the actions of a compiled controller for rows of inputs."""
    dtype = controller.number.dtype
    failed = "The exported controller failed"
    given = inputs.astype(dtype).tobytes()
    written = run(command, Path(command[0]).parent, EquivalenceError, failed, given)
    outputs = np.frombuffer(written, dtype).reshape(-1, controller.n_actions)
    return controller.number.actions(outputs)


def driver_source(controller: MachineController, name: str) -> str:
    """Return a C program that writes an action for each observation on its standard input."""
    kind = TYPES[controller.number.name]
    return f"""#include <stdio.h>
#include "{name}.h"
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

int main(void)
{{
    {kind} observation[{name.upper()}_OBSERVATIONS];
    {kind} action[{name.upper()}_ACTIONS];
#ifdef _WIN32 /* where a stream of text changes bytes that happen to be line ends */
    (void)_setmode(_fileno(stdin), _O_BINARY);
    (void)_setmode(_fileno(stdout), _O_BINARY);
#endif
    while (fread(observation, sizeof observation, 1, stdin) == 1) {{
        {name}_act(observation, action);
        if (fwrite(action, sizeof action, 1, stdout) != 1) {{
            return 1;
        }}
    }}
    return 0;
}}
"""


def _bytes(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _header(controller: MachineController, name: str) -> list[str]:
    tree, number, prefix = controller.tree, controller.number, name.upper()
    lines = [*comment(controller, f"{name}.h"), f"#ifndef {prefix}_H", f"#define {prefix}_H", ""]
    if isinstance(number, Fixed):
        lines += ["#include <stdint.h>", ""]
    lines += [
        f"#define {prefix}_OBSERVATIONS {tree.dims}",
        f"#define {prefix}_ACTIONS {controller.n_actions}",
        "",
    ]
    if isinstance(number, Fixed):
        lines += ["/* A number is the real one times 2 to the power of its bits, rounded down. */"]
        for what, all_bits in (("OBSERVATION", number.observation_bits), ("ACTION", number.action_bits)):
            lines += [f"#define {prefix}_{what}_{j}_BITS ({bits})" for j, bits in enumerate(all_bits)]
        lines += [""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += ["/* Writes the action for an observation.", " *"]
    lines += [f" * observation[{j}]  {in_comment(seen)}" for j, seen in enumerate(tree.observations)]
    lines += [" *", *(f" * {in_comment(line)}" for line in name_of_action(controller)), " */"]
    lines += [*prototype(controller, name, ";"), ""]
    return [*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif"]


def _rules(controller: MachineController, name: str) -> Iterator[str]:
    body = list(_body(controller))
    if needs_infinity(controller):
        yield "#include <math.h>"
    yield from rounding(body)
    if isinstance(controller.tree.leaves, Laws):
        yield from ("", *CUT)
    yield from ("", *prototype(controller, name, ""), "{", *body, "}")


def _body(controller: MachineController) -> Iterator[str]:
    """Yield the statements of the function."""
    tree, number = controller.tree, controller.number
    names, kind, laws = names_in(controller), TYPES[number.name], controller.tree.leaves

    def condition(j: int, t: float, below: bool) -> str:
        cast = "(float)" if kind == "float" and j < tree.dims else ""
        end = f"{cast}INFINITY" if t == math.inf else literal(controller, t, j)
        if j >= tree.dims and not below:  # a sum may be NaN
            return f"!({names[j]} < {end})"
        return f"{names[j]} {'<' if below else '>='} {end}"

    def leaf(row: int) -> list[str]:
        if isinstance(laws, Laws):
            return [_law(controller, names, row, i) for i in range(controller.n_actions)]
        if controller.scores(row):
            return _switching_law(controller, names, row)
        note = f" /* {in_comment(controller.leaf_name(row))} */" if controller.leaf_name(row) else ""
        values = enumerate(controller.leaf_value(row))
        return [f"action[{i}] = {literal(controller, value, action=i)};{note}" for i, value in values]

    used = set(tree.feature.tolist())
    for j, seen in enumerate(tree.observations):
        if j in used or number.name != "fixed":
            yield f"    const {kind} {names[j]} = observation[{j}]; /* {in_comment(seen)} */"
    for name, weights in zip(names[tree.dims :], tree.combinations, strict=True):
        yield f"    const double {name} = {weighted(controller, names, weights, None)};"
    if controller.switches:
        yield from ("    double best;", "    double score;")
    if number.name == "fixed" and used == {-1}:
        yield "    (void)observation;"
    yield ""
    exception = None
    if number.name != "fixed":
        safe = enumerate(controller.safe)
        lines = [f"action[{i}] = {literal(controller, x, action=i)}; /* the safe action */" for i, x in safe]
        exception = undefined(names[: tree.dims]), lines
    yield from nested(tree, _KEYWORDS, condition, leaf, exception, 1)


def _law(controller: MachineController, names: Sequence[str], row: int, i: int) -> str:
    """Return the assignment of a law."""
    laws = controller.tree.leaves
    assert isinstance(laws, Laws)
    total = weighted(controller, names, laws.gain[row, i], float(laws.offset[row, i]))
    ends = ", ".join(repr(float(x)) for x in (laws.low[i], laws.high[i], controller.safe[i]))
    return f"action[{i}] = {'(float)' if controller.number.name == 'float' else ''}cut({total}, {ends});"


def _switching_law(controller: MachineController, names: Sequence[str], row: int) -> list[str]:
    """Return the statements of a switching law; a score that is NaN is never higher."""

    def chosen(number: int) -> str:
        (value,) = controller.machine_action(number)
        note = in_comment(controller.action_name(number))
        return f"action[0] = {literal(controller, value, action=0)}; /* {note} */"

    lines = ["best = -INFINITY;", chosen(int(controller.tree.default_action[0]))]
    for number, offset, gain in controller.scores(row):
        lines.append(f"score = {weighted(controller, names, gain, offset)};")
        lines += ["if (score > best) {", "    best = score;", f"    {chosen(number)}", "}"]
    return lines
