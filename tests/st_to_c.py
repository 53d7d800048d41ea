"""Function blocks in Structured Text as C, by the parse tree of blark (the grammar of a PLC maker).

Nothing is taken from the reader by which the export is compared: types, literals, operators and initial
values are translated as IEC 61131-3 defines them, and a C compiler makes a program of them.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import blark
import numpy as np

from spaql.export.running import compiler

# Not -O2: GCC 12 then leaves out the rounding of neighbouring (double)(float)x.
FLAGS = ("-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-ffp-contract=off")
TYPES = {"LREAL": "double", "REAL": "float", "DINT": "int32_t", "BOOL": "bool"}
OPERATORS = {"<>": "!=", "=": "==", "AND": "&&", "OR": "||"}
SAME = ("<", "<=", ">", ">=", "+", "-", "*", "/")
FUNCTIONS = {"REAL_TO_LREAL": "(double)", "LREAL_TO_REAL": "(float)", "LREAL_TO_DINT": "(int32_t)"}
PARTS = ("InputDeclarations", "OutputDeclarations", "VariableDeclarations")


class Block:
    """A function block, compiled."""

    def __init__(self, text: str, folder: Path) -> None:
        (block,) = blark.parse_source_code(text).transform().items
        self.name = str(block.name)
        declared = {type(part).__name__: list(_declared(part)) for part in block.declarations}
        self.inputs, self.outputs, self.own = (declared.get(part, []) for part in PARTS)
        (folder / "block.c").write_text("\n".join(self._source(block)) + "\n", encoding="utf-8")
        self._program = folder / "block"
        words = [*compiler(), *FLAGS, str(folder / "block.c"), "-o", str(self._program)]
        subprocess.run(words, check=True)

    def _source(self, block: Any) -> Iterator[str]:
        variables = [*self.inputs, *self.outputs, *self.own]
        yield from ("#include <stdbool.h>", "#include <stdint.h>", "#include <stdio.h>", "")
        for name, kind, value in variables:
            yield f"static {TYPES[kind]} v_{name} = {value or 0};"
        yield from ("", "static void call(void)", "{", *_statements(block.body, 1), "}", "")
        yield from ("int main(void)", "{", f"    double sample[{len(self.inputs)}];")
        yield "    while (fread(sample, sizeof sample, 1, stdin) == 1) {"
        for j, (name, kind, _) in enumerate(self.inputs):
            yield f"        v_{name} = ({TYPES[kind]})sample[{j}];"
        shown = ", ".join(f"(double)v_{name}" for name, _, _ in [*self.outputs, *self.own])
        yield from ("        call();", f"        const double after[] = {{{shown}}};")
        yield from ("        if (fwrite(after, sizeof after, 1, stdout) != 1) {", "            return 1;")
        yield from ("        }", "    }", "    return 0;", "}")

    def play(self, samples: np.ndarray) -> np.ndarray:
        """Call it with rows of inputs; returns the outputs and the other variables after each call."""
        given = subprocess.run(
            [str(self._program)], input=samples.astype(np.float64).tobytes(), capture_output=True, check=True
        )
        return np.frombuffer(given.stdout).reshape(len(samples), -1)


def _declared(part: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the type and the initial value of each variable."""
    for item in part.items:
        value = item.init.value
        yield (
            str(item.variables[0].variable.name),
            str(item.init.spec.type if hasattr(item.init, "spec") else item.init.name),
            "" if value is None else expression(value),
        )


def expression(node: Any) -> str:
    """Return an expression in C."""
    kind = type(node).__name__
    if kind == "ParenthesizedExpression":
        return f"({expression(node.expr)})"
    if kind == "SimpleVariable":
        return f"v_{node.name}"
    if kind == "Real":
        return f"{node.value}f" if node.type_name == "REAL" else str(node.value)
    if kind == "Integer":
        return str(node.value)
    if kind == "Boolean":
        return str(node.value).lower()
    if kind == "FunctionCall":
        return f"({FUNCTIONS[str(node.name.name)]}({expression(node.parameters[0].value)}))"
    if kind == "UnaryOperation":
        return f"({ {'NOT': '!', '-': '-'}[str(node.op)] }({expression(node.expr)}))"
    assert kind == "BinaryOperation", kind
    operator = OPERATORS.get(str(node.op)) or SAME[SAME.index(str(node.op))]
    return f"(({expression(node.left)}) {operator} ({expression(node.right)}))"


def _statements(statements: Any, level: int) -> Iterator[str]:
    indent = "    " * level
    for statement in statements.statements if statements is not None else ():
        if type(statement).__name__ == "AssignmentStatement":
            yield f"{indent}v_{statement.variables[0].name} = {expression(statement.expression)};"
            continue
        assert type(statement).__name__ == "IfStatement"
        word = "if"
        for branch in (statement, *statement.else_ifs):
            yield f"{indent}{word} ({expression(branch.if_expression)}) {{"
            yield from _statements(branch.statements, level + 1)
            word = "} else if"
        if statement.else_clause is not None:
            yield f"{indent}}} else {{"
            yield from _statements(statement.else_clause.statements, level + 1)
        yield f"{indent}}}"
