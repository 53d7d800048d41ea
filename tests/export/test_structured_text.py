"""Structured Text as another parser reads it (blark, with the grammar of a PLC maker), run by statements.

Nothing is taken from the reader by which the export is compared.
"""

import math
import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from export_forms import SAFE
from random_trees import random_tree
from spaql.export.structured_text import StructuredText
from spaql.export.target_controller import controller_of
from spaql.export.test_states import comparison_points

blark = pytest.importorskip("blark")
OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<>": operator.ne,
    "+": operator.add,
    "*": operator.mul,
    "OR": operator.or_,
}
FUNCTIONS = {"REAL_TO_LREAL": np.float64, "LREAL_TO_REAL": np.float32}


def value(node: Any, variables: dict[str, Any]) -> Any:
    kind = type(node).__name__
    if kind == "ParenthesizedExpression":
        return value(node.expr, variables)
    if kind == "SimpleVariable":
        return variables[str(node.name)]
    if kind == "Real":
        return (np.float32 if node.type_name == "REAL" else np.float64)(str(node.value))
    if kind == "Integer":
        return int(str(node.value))
    if kind == "FunctionCall":
        return FUNCTIONS[str(node.name.name)](value(node.parameters[0].value, variables))
    if kind == "UnaryOperation":
        assert str(node.op) == "NOT"
        return not value(node.expr, variables)
    assert kind == "BinaryOperation", kind
    return OPERATORS[str(node.op)](value(node.left, variables), value(node.right, variables))


def execute(statements: Any, variables: dict[str, Any]) -> None:
    for statement in statements.statements if statements is not None else ():
        if type(statement).__name__ == "AssignmentStatement":
            variables[str(statement.variables[0].name)] = value(statement.expression, variables)
            continue
        for branch in (statement, *statement.else_ifs):
            if value(branch.if_expression, variables):
                execute(branch.statements, variables)
                break
        else:
            if statement.else_clause is not None:
                execute(statement.else_clause.statements, variables)


def names(block: Any, part: str) -> list[str]:
    declared = next(d for d in block.declarations if type(d).__name__ == part)
    return [str(item.variables[0].variable.name) for item in declared.items]


@pytest.mark.parametrize("number", ["double", "float"])
@pytest.mark.parametrize(
    ("kind", "sums"),
    [
        ("choices", 0),
        pytest.param("laws", 0, marks=pytest.mark.long),
        ("constants", 0),
        ("choices", 2),
        ("switching laws", 0),
    ],
)
def test_another_parser_comes_to_the_same_actions(kind: str, sums: int, number: str, tmp_path: Path) -> None:
    tree = random_tree(np.random.default_rng(5), 3, 4 if kind.endswith("laws") else 12, kind, sums=sums)
    controller = controller_of(tree, number, SAFE[kind])
    text = StructuredText().write(controller, "controller")["controller.st"].decode()
    block = blark.parse_source_code(text).transform().items[0]
    assert str(block.name) == "Controller"
    inputs, outputs = names(block, "InputDeclarations"), names(block, "OutputDeclarations")
    points = np.concatenate([batch for _, batch in comparison_points(controller, 200)])
    points = points[np.random.default_rng(0).permutation(len(points))[:600]]
    given = []
    with np.errstate(all="ignore"):
        for row in points:
            variables = dict(zip(inputs, row, strict=True))
            execute(block.body, variables)
            given.append([float(variables[name]) for name in outputs])
    assert not any(math.isnan(x) for row in given for x in row)
    assert np.array_equal(given, controller.wanted(points))
