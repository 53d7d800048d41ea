"""Function blocks in Structured Text, read as the standard defines it: what exports are compared by.

A block becomes Python, of assignments and conditions only, which an interpreter of its own runs. REAL and
LREAL are IEEE 754 numbers of 32 and 64 bits; a literal is the nearest number of its type.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spaql.errors import SettingError
from spaql.export.played import Player, driven_by_python

_SECTION = re.compile(r"^(VAR_INPUT|VAR_OUTPUT|VAR)\n(.*?)^END_VAR$", re.DOTALL | re.MULTILINE)
_STATEMENT = re.compile(r"(IF|ELSIF) (.*?) THEN|(ELSE)|(END_IF);|(\w+) := (.*?);", re.DOTALL)
_ALLOWED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop),
    *(ast.BoolOp, ast.boolop, ast.Compare, ast.cmpop),
)
_SINGLE = ["import ctypes", "def single(x):", "    return ctypes.c_float(x).value"]


@dataclass(frozen=True)
class FunctionBlock:
    """A function block; its variables keep their values from call to call."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    initial: dict[str, str]
    """The value of each variable but the inputs at the beginning, as Python."""
    singles: frozenset[str]
    """The variables of the type REAL."""
    statements: tuple[str, ...]
    """Of the body, as lines of a Python function."""

    @classmethod
    def read(cls, text: str) -> FunctionBlock:
        """Return the function block of a text."""
        text = re.sub(r" *\(\*.*?\*\)", "", text)
        parts = {"VAR_INPUT": [], "VAR_OUTPUT": [], "VAR": []} | {
            part: re.findall(r"(\w+) : (\w+)(?: := (.*?))?;", declared)
            for part, declared in _SECTION.findall(text)
        }
        own = [*parts["VAR_OUTPUT"], *parts["VAR"]]
        body = text[text.rindex("END_VAR") + len("END_VAR") : text.index("END_FUNCTION_BLOCK")]
        return cls(
            tuple(name for name, _, _ in parts["VAR_INPUT"]),
            tuple(name for name, _, _ in parts["VAR_OUTPUT"]),
            {name: _python(value or ("FALSE" if kind == "BOOL" else "0.0")) for name, kind, value in own},
            frozenset(name for part in parts.values() for name, kind, _ in part if kind == "REAL"),
            tuple(_statements(body)),
        )

    def player(self, folder: Path, shown: Sequence[str], *, resets: bool) -> Player:
        """Return the function that plays samples, and what variables are `shown` after each.

        With `resets` the first input is whether a sample is a reset.
        """
        own = "".join(f"{name}, " for name in self.initial)
        setup = [*_SINGLE, f"def sample({', '.join([*self.inputs, *self.initial])}):", *self.statements]
        setup += [
            f"    return ({own})",
            f"kept = ({''.join(f'{value}, ' for value in self.initial.values())})",
        ]
        given = "row" if resets else "row[1:]"
        places = [list(self.initial).index(name) for name in shown]
        sample = [f"kept = sample(*{given}, *kept)", f"played.extend([kept[i] for i in {places}])"]
        return driven_by_python(setup, sample, folder, len(self.inputs) - resets, len(shown))


def _statements(body: str) -> list[str]:
    """Return assignments and conditions as the statements of a Python function."""
    lines = list[str]()
    depth = 1
    end = 0
    for found in _STATEMENT.finditer(body):
        if body[end : found.start()].strip():
            raise SettingError(f"Unknown statement: {body[end : found.start()].strip()}")
        end = found.end()
        word, condition, otherwise, closed, name, value = found.groups()
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
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise SettingError(f"Unknown expression: {expression}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            known = isinstance(node.func, ast.Name) and node.func.id in ("single", "float")
        else:
            known = isinstance(node, _ALLOWED)
        if not known:
            raise SettingError(f"Unknown expression: {expression}")
    return text
