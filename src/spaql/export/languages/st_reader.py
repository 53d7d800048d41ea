"""Function blocks in Structured Text, read as the standard defines it: what exports are compared by.

A block becomes Python, of assignments and conditions only, which an interpreter of its own runs. REAL and
LREAL are IEEE 754 numbers of 32 and 64 bits; a literal is the nearest number of its type.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spaql.errors import SettingError
from spaql.export.running import Player, driven_by_python

_BLOCK = re.compile(r"^FUNCTION_BLOCK (\w+)\n(.*^END_VAR)\n(.*)^END_FUNCTION_BLOCK", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r" *\(\*.*?\*\)")
_VARIABLE = re.compile(r"(\w+) : (\w+)(?: := (.*?))?;")
_SECTION = re.compile(r"^(VAR_INPUT|VAR_OUTPUT|VAR)\n(.*?)^END_VAR$", re.DOTALL | re.MULTILINE)
_STATEMENT = re.compile(r"(IF|ELSIF) (.*?) THEN|(ELSE)|(END_IF);|(\w+) := (.*?);", re.DOTALL)
_ALLOWED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop),
    *(ast.BoolOp, ast.boolop, ast.Compare, ast.cmpop),
)
_SINGLE = ["import ctypes", "def single(x):", "    return ctypes.c_float(x).value"]


class BlockVariable(NamedTuple):
    """A variable of a function block."""

    name: str
    kind: str
    """Its type."""
    value: str = ""
    """At the beginning."""
    note: str = ""

    @property
    def text(self) -> str:
        """Its declaration."""
        value = f" := {self.value}" if self.value else ""
        return f"{self.name} : {self.kind}{value};" + (f" (* {self.note} *)" if self.note else "")


@dataclass(frozen=True)
class FunctionBlock:
    """A function block; its variables keep their values from call to call."""

    name: str
    variables: Mapping[str, tuple[BlockVariable, ...]]
    """By section: VAR_INPUT, VAR_OUTPUT and VAR."""
    body: str

    @classmethod
    def read(cls, text: str) -> FunctionBlock:
        """Return the function block of a text; comments are left out."""
        block = _BLOCK.search(_COMMENT.sub("", text))
        if block is None:
            raise SettingError("The text does not hold one function block.")
        variables = {
            section: tuple(BlockVariable(*declared) for declared in _VARIABLE.findall(part))
            for section, part in _SECTION.findall(block[2])
        }
        return cls(block[1], variables, block[3].strip("\n"))

    def player(self, folder: Path, state: Sequence[str]) -> Player:
        """Return the function that plays samples; with names of a `state` the first input is a reset."""
        inputs, outputs = (self.variables[section] for section in ("VAR_INPUT", "VAR_OUTPUT"))
        own = [*outputs, *self.variables.get("VAR", ())]
        names = [variable.name for variable in own]
        values = (
            _python(variable.value or ("FALSE" if variable.kind == "BOOL" else "0.0")) for variable in own
        )
        declared = [variable.name for variable in inputs]
        kept = "".join(f"{name}, " for name in names)
        setup = [*_SINGLE, f"def sample({', '.join([*declared, *names])}):"]
        setup += [
            f"    {variable.name} = single({variable.name})" for variable in inputs if variable.kind == "REAL"
        ]
        setup += [
            *_statements(_COMMENT.sub("", self.body)),
            f"    return ({kept})",
            f"kept = ({''.join(f'{x}, ' for x in values)})",
        ]
        places = [names.index(name) for name in (*(variable.name for variable in outputs), *state)]
        row = "row" if state else "row[1:]"
        sample = [f"kept = sample(*{row}, *kept)", f"played.extend([kept[i] for i in {places}])"]
        return driven_by_python(setup, sample, folder, len(declared) - bool(state), len(places))


def _statements(body: str) -> list[str]:
    """Return assignments and conditions as the statements of a Python function."""
    lines = list[str]()
    depth = 1
    end = 0
    for match in _STATEMENT.finditer(body):
        if body[end : match.start()].strip():
            raise SettingError(f"Unknown statement: {body[end : match.start()].strip()}")
        end = match.end()
        word, condition, otherwise, closed, name, value = match.groups()
        depth -= 1 if otherwise or closed or word == "ELSIF" else 0
        indent = "    " * depth
        if word:
            lines.append(f"{indent}{'if' if word == 'IF' else 'elif'} {_python(condition)}:")
        elif otherwise:
            lines.append(f"{indent}else:")
        elif name:
            lines.append(f"{indent}{name} = {_python(value)}")
        depth += 1 if word or otherwise else 0
    return lines


def _python(expression: str) -> str:
    """Return an expression as one of Python; raises if it is more than arithmetic and comparisons."""
    text = re.sub(r"(?<![<>:=!])=(?!=)", "==", expression.replace("<>", "!="))
    text = re.sub(r"\s+OR\s+", " or ", text).replace("NOT (", "not (").replace(" AND ", " and ")
    text = text.replace("TRUE", "True").replace("FALSE", "False").replace("LREAL#", "")
    text = re.sub(r"\bREAL#([-+.0-9E]+)", lambda m: repr(float(np.float32(m[1]))), text)
    text = text.replace("LREAL_TO_REAL", "single").replace("REAL_TO_LREAL", "float")
    text = text.replace("LREAL_TO_DINT", "round")
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise SettingError(f"Unknown expression: {expression}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            known = isinstance(node.func, ast.Name) and node.func.id in ("single", "float", "round")
        else:
            known = isinstance(node, _ALLOWED)
        if not known:
            raise SettingError(f"Unknown expression: {expression}")
    return text
