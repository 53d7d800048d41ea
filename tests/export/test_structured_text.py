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
from feature_controllers import random_controller, two_leaf_pi
from random_trees import random_tree
from spaql.export.memory.check import episodes
from spaql.export.memory.machine import machine_of
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
    "=": operator.eq,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "OR": operator.or_,
    "AND": operator.and_,
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
    if kind == "Boolean":
        return str(node.value).upper() == "TRUE"
    if kind == "FunctionCall":
        return FUNCTIONS[str(node.name.name)](value(node.parameters[0].value, variables))
    if kind == "UnaryOperation":
        assert str(node.op) in ("NOT", "-")
        inner = value(node.expr, variables)
        return -inner if str(node.op) == "-" else not inner
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


@pytest.mark.parametrize(
    ("made", "number"),
    [
        (two_leaf_pi(hysteresis=(0.1, 0.0)), "float"),
        pytest.param(random_controller(3), "double", marks=pytest.mark.long),
    ],
    ids=["pi", "all features"],
)
def test_another_parser_comes_to_the_same_actions_and_states(made: Any, number: str) -> None:
    """A controller with memory, whose variables begin with their initial values and are kept."""
    machine = machine_of(made, number)
    text = StructuredText().with_memory().write(machine, "controller")["controller.st"].decode()
    block = blark.parse_source_code(text).transform().items[0]
    inputs, outputs = names(block, "InputDeclarations"), names(block, "OutputDeclarations")
    kept = names(block, "VariableDeclarations")[: made.memory_size]
    part = next(episodes(machine, 300))
    for row in range(part.inputs.shape[1]):
        variables: dict[str, Any] = {}
        for step, seen in enumerate(part.inputs[:, row]):
            variables |= dict(zip(inputs, [bool(part.resets[step, row]), *seen], strict=True))
            with np.errstate(all="ignore"):
                execute(block.body, variables)
            assert [float(variables[name]) for name in outputs] == part.actions[step, row].tolist()
            assert [float(variables[name]) for name in kept] == part.states[step, row].tolist()
