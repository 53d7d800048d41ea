"""A controller as a function block in Structured Text (IEC 61131-3)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from spaql.export.language import Source, Target
from spaql.export.languages.st_reader import BlockVariable, FunctionBlock
from spaql.export.running import Player
from spaql.export.syntax import Syntax
from spaql.languages import ST_LIBRARY, STRUCTURED_TEXT, in_comment
from spaql.program.ir import Assign, Compare, Name, Number

_TYPES = {"double": "LREAL", "float": "REAL"}
_KINDS = {"real": "LREAL", "flag": "BOOL", "leaf": "DINT"}
_LARGEST = sys.float_info.max
_AT_INFINITY = {
    "<=": (_LARGEST, "({x} <= {zero}) OR ({x} < {x} + {x})"),
    ">": (_LARGEST, "({x} > {zero}) AND ({x} >= {x} + {x})"),
    ">=": (-_LARGEST, "({x} >= {zero}) OR ({x} > {x} + {x})"),
    "<": (-_LARGEST, "({x} < {zero}) AND ({x} <= {x} + {x})"),
}
"""Comparisons with the largest number, which compilers refuse as out of range: of the positive numbers, only
infinity is not below its double."""


class StructuredText(Target):
    """One function block; one with memory has inputs for a reset, manual mode and tracking."""

    name = "Structured Text"
    suffix = ".st"
    numbers = ("double", "float")
    parts = False
    manual = True

    def use(self, name: str) -> tuple[str, ...]:
        """Return lines on manual mode and tracking."""
        return (
            "Manual mode: while manual is TRUE, the output is the input manual_..., within its range and "
            "rate limit, also without a valid reading, and the memory follows it: automatic mode then "
            "starts from there (bumpless transfer).",
            "Tracking: if the plant gets another action than the output, set applied_... to it in the next "
            "call, and track to TRUE, so that integrals do not wind up. Both may stay connected to the "
            "actuator's position.",
        )

    def text(self, source: Source) -> str:
        """Return the content of the file."""
        block = function_block(source)
        lines = [f"(* {in_comment(line)} *)" for line in source.heading if line]
        lines += [f"FUNCTION_BLOCK {block.name}"]
        for section, variables in block.variables.items():
            lines += [section, *(f"    {variable.text}" for variable in variables), "END_VAR"]
        return "\n".join([*lines, "", block.body, "END_FUNCTION_BLOCK"]) + "\n"

    def read(self, content: bytes) -> FunctionBlock:
        """Return the function block in a file."""
        return FunctionBlock.read(content.decode())

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples by the file in a folder, which is interpreted."""
        block = self.read((folder / (source.name + self.suffix)).read_bytes())
        return block.player(folder, [variable.name for variable in source.program.state])

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"{FunctionBlock.__module__}, which follows the standard; not run on a PLC"


class StructuredTextSyntax(Syntax):
    """Structured Text."""

    conjunction = "AND"
    disjunction = "OR"
    negation = "NOT ({})"
    unequal = "<>"
    truths = ("FALSE", "TRUE")
    in_leaf = "leaf = {}"
    assignment = "{} := {};"
    comment = "(* {} *)"
    opening = "IF {} THEN"
    further = "ELSIF {} THEN"
    otherwise = "ELSE"
    end = "END_IF;"
    reserved = STRUCTURED_TEXT + ST_LIBRARY
    widened = "REAL_TO_LREAL({})"

    def __init__(self, source: Source) -> None:
        program = source.program
        track = source.track
        single = source.number == "float"
        inputs = (*program.inputs, *program.manual, *(track.inputs if track else ()))
        super().__init__(program, inputs if single else ())
        self.output = "DINT" if source.discrete else _TYPES[source.number]
        # A program with memory reads its outputs, as doubles.
        self.wide = program.outputs if self.output != "LREAL" and program.state else ()
        self._converted = set(program.outputs) - set(self.wide) if self.output != "LREAL" else set[str]()

    def plain(self, names: Sequence[str]) -> list[str]:
        """Return variables that are not of the state; an identifier must not end with an underscore."""
        reserved = self.reserved.split()
        return [
            f"own_{name}" if name in reserved or name.startswith(("own_", "wide_")) else name
            for name in names
        ]

    def name(self, name: str) -> str:
        """Return a variable."""
        return f"wide_{name}" if name in self.wide else super().name(name)

    def number(self, x: float) -> str:
        """Return a constant."""
        return literal("LREAL", x)

    def single(self, x: float) -> str:
        """Return a constant of single precision."""
        return literal("REAL", x)

    def set(self, statement: Assign) -> str:
        """Return the statement that sets a number."""
        if statement.name not in self._converted:
            return super().set(statement)
        value = statement.value
        if isinstance(value, Number):
            text = literal(self.output, value.value)
        else:
            text = f"LREAL_TO_REAL({self.expression(value)})"
        return self.assigned(self.plain([statement.name])[0], text)

    def compared(self, compare: Compare) -> str:
        """Return a comparison."""
        end, text = _AT_INFINITY.get(compare.operator, (None, ""))
        if not (isinstance(compare.right, Number) and compare.right.value == end):
            return super().compared(compare)
        if isinstance(compare.left, Name) and compare.left.name in self._singles:
            return text.format(x=self.plain([compare.left.name])[0], zero=self.single(0.0))
        return text.format(x=self.expression(compare.left, inner=True), zero=self.number(0.0))


def function_block(source: Source) -> FunctionBlock:
    """Return the function block of a controller."""
    program = source.program
    track = source.track
    syntax = StructuredTextSyntax(source)
    kind = _TYPES[source.number]

    def variables(names: Sequence[str], kind: str, notes: Iterable[str]) -> list[BlockVariable]:
        declared = zip(syntax.plain(names), notes, strict=True)
        return [BlockVariable(word, kind, note=in_comment(note)) for word, note in declared]

    inputs = variables(program.inputs, kind, source.observations)
    body: list[str] = []
    if program.state:
        inputs.insert(0, BlockVariable("reset", "BOOL", note="TRUE for a sample that begins anew"))
        body += [
            "IF reset THEN",
            *(f"    {variable.name} := {syntax.value(variable)};" for variable in program.state),
        ]
        body += ["END_IF;"]
    if track is not None:
        inputs += [BlockVariable("manual", "BOOL", note="TRUE for manual mode; bumpless when it ends")]
        by_hand = (f"given by hand in manual mode: {name}" for name in source.actions)
        inputs += variables(program.manual, kind, by_hand)
        inputs += [
            BlockVariable("track", "BOOL", note="TRUE where the inputs below are what the actuators applied")
        ]
        applied = (f"applied since the last sample: {name}" for name in source.actions)
        inputs += variables(track.inputs, kind, applied)
        body += ["IF track THEN", *syntax.lines(track.statements, 1), "END_IF;"]
    outputs = variables(program.outputs, syntax.output, source.actions)
    own = [BlockVariable(s.name, _KINDS[s.kind], syntax.value(s), in_comment(s.note)) for s in program.state]
    own += [BlockVariable(syntax.name(name), "LREAL") for name in [*syntax.wide, *program.numbers]]
    own += [BlockVariable(word, "BOOL") for word in syntax.plain(program.flags)]
    body += syntax.lines(program.statements, 0)
    body += [
        f"{word} := LREAL_TO_{syntax.output}({syntax.name(name)});"
        for name, word in zip(program.outputs, syntax.outputs, strict=True)
        if name in syntax.wide
    ]
    sections = {"VAR_INPUT": inputs, "VAR_OUTPUT": outputs, "VAR": own}
    name = source.name[0].upper() + source.name[1:]
    return FunctionBlock(name, {key: tuple(part) for key, part in sections.items() if part}, "\n".join(body))


def literal(kind: str, x: float) -> str:
    """Return a number as a typed literal, with the decimal point that the standard requires."""
    if kind == "DINT":
        return str(int(x))
    text = str(np.float32(x)) if kind == "REAL" else repr(x)
    mantissa, _, exponent = text.partition("e")
    mantissa += "" if "." in mantissa else ".0"
    return f"{kind}#{mantissa}" + (f"E{int(exponent)}" if exponent else "")
