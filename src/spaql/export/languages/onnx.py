"""A controller as an ONNX model; with memory, the state goes in and comes out.

Both sides of every condition are computed, and the variables that differ are chosen after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import MissingExtraError
from spaql.export.language import Source, Target
from spaql.export.running import Player
from spaql.kernels.numerics import Floats
from spaql.languages import printable
from spaql.program.ir import (
    All,
    Assign,
    Binary,
    Compare,
    Condition,
    Expression,
    Flag,
    If,
    IsLeaf,
    Name,
    Not,
    Note,
    Number,
    SetFlag,
    SetLeaf,
    Statement,
)

_OPERATORS = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"}
_COMPARISONS = {"<": "Less", ">": "Greater", "<=": "LessOrEqual", ">=": "GreaterOrEqual"}
_VERSION = 18
"""Of the set of operators."""
Variables = dict[str, str]
"""The tensor that holds each variable: rows × 1, or 1 × 1 for a constant."""


class Onnx(Target):
    """One model, from a batch `observation` to a batch `action`.

    With memory, batches `state` and `episode_start` go in as well, and `next_state` comes out.
    """

    name = "ONNX"
    suffix = ".onnx"
    numbers = ("double", "float")
    parts = False

    def files(self, source: Source) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        return {f"{source.name}.onnx": _Graph(source).model().SerializeToString(deterministic=True)}

    def player(self, source: Source, folder: Path) -> Player:
        """Return the function that plays samples in onnxruntime, episodes side by side."""
        runtime = runtime_module()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        file = folder / f"{source.name}.onnx"
        session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        dtype = np.float64 if source.number == "double" else np.float32

        def play(samples: Floats) -> Floats:
            observations = samples[..., 1:].astype(dtype)
            if not source.program.state:
                (action,) = session.run(["action"], {"observation": observations})
                return np.asarray(action, np.float64).reshape(len(samples), -1)
            played = []
            state = np.zeros((len(samples), len(source.program.state)))
            for step in range(samples.shape[1]):
                inputs = {
                    "observation": observations[:, step],
                    "state": state,
                    "episode_start": samples[:, step, 0] > 0,
                }
                action, state = session.run(["action", "next_state"], inputs)
                played.append(np.hstack([action.reshape(len(samples), -1), state]))
            return np.stack(played, axis=1)

        return play

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"onnxruntime {version('onnxruntime')}"


def onnx_module() -> Any:
    """Return the package onnx; raises `MissingExtraError` if it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError("ONNX models need onnx: pip install 'spaql[onnx]'.") from error
    return onnx


def runtime_module() -> Any:
    """Return the package onnxruntime; raises `MissingExtraError` if it is not installed."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(
            "The equivalence check needs onnxruntime: pip install 'spaql[onnx]'."
        ) from error
    return onnxruntime


class _Graph:
    """A model under construction."""

    def __init__(self, source: Source) -> None:
        self._onnx = onnx_module()
        self._source = source
        self._program = source.program
        kept = [variable.name for variable in self._program.state if variable.kind == "flag"]
        self._flags = {*self._program.flags, *kept}
        self._nodes: dict[bytes, Any] = {}
        self._constants: dict[bytes, Any] = {}

    def model(self) -> Any:
        """Return the model."""
        helper = self._onnx.helper
        kinds = self._onnx.TensorProto
        program = self._program
        discrete = self._source.discrete
        size = len(program.state)
        observed = kinds.DOUBLE if self._source.number == "double" else kinds.FLOAT
        acted = kinds.INT64 if discrete else observed
        self._write(acted)
        info = helper.make_tensor_value_info
        text = list(map(printable, self._source.heading))
        inputs = [info("observation", observed, ["n", len(program.inputs)])]
        outputs = [info("action", acted, ["n"] if discrete else ["n", len(program.outputs)])]
        if size:
            inputs += [info("state", kinds.DOUBLE, ["n", size]), info("episode_start", kinds.BOOL, ["n"])]
            outputs += [info("next_state", kinds.DOUBLE, ["n", size])]
            text += [
                "",
                "The next_state is the state of the next sample. Where episode_start is true, the state "
                "that is given does not matter.",
                f"The state variables: {', '.join(variable.name for variable in program.state)}.",
            ]
        nodes = list(self._nodes.values())
        constants = list(self._constants.values())
        model = helper.make_model(
            helper.make_graph(nodes, self._source.name, inputs, outputs, constants),
            opset_imports=[helper.make_opsetid("", _VERSION)],
            producer_name="spaql",
            producer_version=version("spaql"),
            ir_version=10,
            doc_string="\n".join(text),
        )
        self._onnx.checker.check_model(model)
        return model

    def _write(self, acted: int) -> None:
        program = self._program
        kinds = self._onnx.TensorProto
        observed = self._add("Cast", "observation", to=kinds.DOUBLE)
        values = {name: self._column(observed, j) for j, name in enumerate(program.inputs)}
        if program.state:
            reset = self._constant([[variable.reset for variable in program.state]])
            starts = self._add("Unsqueeze", "episode_start", self._constant([1]))
            state = self._add("Where", starts, reset, "state")
        for j, variable in enumerate(program.state):
            column = self._column(state, j)
            values[variable.name] = (
                self._add("Cast", column, to=kinds.BOOL) if variable.kind == "flag" else column
            )
        after = self._run(program.statements, values)
        if program.state:
            flags = {variable.name for variable in program.state if variable.kind == "flag"}
            for name in flags:
                after[name] = self._add("Cast", after[name], to=kinds.DOUBLE)
            kept = self._columns([after[variable.name] for variable in program.state], observed)
            self._add("Identity", kept, output="next_state")
        action = self._columns([after[name] for name in program.outputs], observed)
        if self._source.discrete:
            action = self._add("Squeeze", action, self._constant([1]))
        self._add("Cast", action, to=acted, output="action")

    def _columns(self, names: Iterable[str], like: str) -> str:
        """Return columns side by side, with the rows of a batch: a constant has one row only."""
        rows = self._add("Concat", self._add("Shape", like, end=1), self._constant([1]), axis=0)
        return self._add("Concat", *(self._add("Expand", name, rows) for name in names), axis=1)

    def _column(self, batch: str, j: int) -> str:
        return self._add("Gather", batch, self._constant([j]), axis=1)

    def _run(self, statements: Sequence[Statement], before: Variables) -> Variables:
        """Add statements; returns the variables after them."""
        values = dict(before)
        for statement in statements:
            if isinstance(statement, Assign):
                values[statement.name] = self._expression(statement.value, values)
            elif isinstance(statement, SetLeaf):
                values["leaf"] = self._constant([[float(statement.number)]])
            elif isinstance(statement, SetFlag):
                values[statement.name] = self._condition(statement.value, values)
            elif isinstance(statement, If):
                values = self._choose(statement, values)
            else:
                assert isinstance(statement, Note)
        return values

    def _choose(self, statement: If, before: Variables) -> Variables:
        """Add both sides of a condition, and the choice between their variables."""
        condition = self._condition(statement.condition, before)
        then, otherwise = (self._run(side, before) for side in (statement.then, statement.otherwise))
        values = dict(before)
        for name in {**then, **otherwise}:
            sides = then.get(name), otherwise.get(name)
            yes, no = (str(side or sides[1 - i]) for i, side in enumerate(sides))
            if yes == no:
                values[name] = yes
            elif name not in self._flags:
                values[name] = self._add("Where", condition, yes, no)
            else:  # onnxruntime has no Where for truth values
                neither = self._add("And", self._add("Not", condition), no)
                values[name] = self._add("Or", self._add("And", condition, yes), neither)
        return values

    def _expression(self, expression: Expression, values: Variables) -> str:
        if isinstance(expression, Number):
            return self._constant([[expression.value]])
        if isinstance(expression, Name):
            return values[expression.name]
        assert isinstance(expression, Binary)
        return self._add(_OPERATORS[expression.operator], *self._sides(expression, values))

    def _sides(self, parent: Binary | Compare, values: Variables) -> list[str]:
        return [self._expression(part, values) for part in (parent.left, parent.right)]

    def _condition(self, condition: Condition | bool, values: Variables) -> str:
        if isinstance(condition, bool):
            return self._constant([[condition]])
        if isinstance(condition, Flag):
            return values[condition.name]
        if isinstance(condition, IsLeaf):
            return self._add("Equal", values["leaf"], self._constant([[float(condition.number)]]))
        if isinstance(condition, Not):
            return self._add("Not", self._condition(condition.of, values))
        if isinstance(condition, Compare):
            sides = self._sides(condition, values)
            if condition.operator == "!=":
                return self._add("Not", self._add("Equal", *sides))
            return self._add(_COMPARISONS[condition.operator], *sides)
        joined, *others = (self._condition(part, values) for part in condition.of)
        for part in others:
            joined = self._add("And" if isinstance(condition, All) else "Or", joined, part)
        return joined

    def _add(self, kind: str, *inputs: str, output: str = "", **settings: Any) -> str:
        """Return the name of the result of a node; equal nodes are stored once."""
        node = self._onnx.helper.make_node(kind, inputs, [output] if output else [], **settings)
        key = node.SerializeToString(deterministic=True)
        if key not in self._nodes:
            node.output[:] = [output or f"t{len(self._nodes)}"]
            self._nodes[key] = node
        return str(self._nodes[key].output[0])

    def _constant(self, content: Any) -> str:
        """Return the name of a constant; equal ones are stored once."""
        value: NDArray[Any] = np.ascontiguousarray(content)
        key = f"{value.dtype}{np.shape(content)}".encode() + value.tobytes()
        if key not in self._constants:
            name = f"c{len(self._constants)}"
            self._constants[key] = self._onnx.numpy_helper.from_array(value, name)
        return str(self._constants[key].name)
