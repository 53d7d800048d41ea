"""Literals and comments of Structured Text, and its statements as Python."""

from __future__ import annotations

import re

import numpy as np

from spaql.errors import SettingError

_STATEMENT = re.compile(r"(IF|ELSIF) (.*?) THEN|(ELSE)|(END_IF);|(\w+) := (.*?);", re.DOTALL)


LIBRARY = """
    add concat ctd ctu ctud delete derivative div eq f_trig find ge gt hysteresis insert integral le left len
    limit lt mid mul ne pid r_trig ramp replace right rs rtc sema sr tof ton tp trunc
"""
"""Functions and function blocks of the standard library, whose names some compilers refuse for variables."""


def literal(kind: str, x: float) -> str:
    """Return a number as a typed literal, with the decimal point that the standard requires."""
    text = str(np.float32(x)) if kind == "REAL" else repr(x)
    mantissa, _, exponent = text.partition("e")
    mantissa += "" if "." in mantissa else ".0"
    return f"{kind}#{mantissa}" + (f"E{int(exponent)}" if exponent else "")


def python_statements(body: str) -> list[str]:
    """Return assignments and conditions as the statements of a Python function."""
    lines, depth, end = [], 1, 0
    for found in _STATEMENT.finditer(body):
        if body[end : found.start()].strip():
            raise SettingError(f"Unknown statement: {body[end : found.start()].strip()}")
        end = found.end()
        word, condition, otherwise, closed, name, value = found.groups()
        depth -= 1 if otherwise or closed or word == "ELSIF" else 0
        indent = "    " * depth
        if word:
            lines.append(f"{indent}{'if' if word == 'IF' else 'elif'} {python_expression(condition)}:")
        elif otherwise:
            lines.append(f"{indent}else:")
        elif name:
            lines.append(f"{indent}{name} = {python_expression(value)}")
        depth += 1 if word or otherwise else 0
    return lines


def python_expression(expression: str) -> str:
    """Return an expression as one of Python."""
    expression = re.sub(r"(?<![<>:=!])=(?!=)", "==", expression.replace("<>", "!="))
    expression = re.sub(r"\s+OR\s+", " or ", expression).replace("NOT (", "not (").replace(" AND ", " and ")
    expression = expression.replace("TRUE", "True").replace("FALSE", "False")
    expression = expression.replace("LREAL#", "")
    expression = re.sub(r"\bREAL#([-+.0-9E]+)", lambda m: repr(float(np.float32(m[1]))), expression)
    return expression.replace("LREAL_TO_REAL", "single").replace("REAL_TO_LREAL", "float")
