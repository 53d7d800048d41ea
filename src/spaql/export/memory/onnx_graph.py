"""A controller with memory as an ONNX model: the state goes in and comes out.

Both sides of every condition are computed, and the variables that differ are chosen after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.export.memory.build import program_of
from spaql.export.memory.check import Bools, MemoryTarget, Run
from spaql.export.memory.comments import heading
from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.program import (
    All,
    Assign,
    Compare,
    Condition,
    Expression,
    Flag,
    IsLeaf,
    Name,
    Not,
    Note,
    Number,
    SetFlag,
    SetLeaf,
    Some,
    Statement,
)
from spaql.export.onnx_modules import onnx_module, runtime_module
from spaql.kernels.controller import Floats
from spaql.languages import printable

_OPERATORS = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"}
_COMPARISONS = {"<": "Less", ">": "Greater", "<=": "LessOrEqual", ">=": "GreaterOrEqual"}
Variables = dict[str, str]
"""The tensor that holds each variable: episodes × 1."""


class OnnxMemory(MemoryTarget):
    """One model, from batches `observation`, `state` and `episode_start` to `action` and `next_state`."""

    name = "ONNX"
    suffix = ".onnx"

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        return {f"{name}.onnx": _Graph(machine).model(name).SerializeToString(deterministic=True)}

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Open a session of onnxruntime; returns the function that plays episodes."""
        runtime = runtime_module()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        session = runtime.InferenceSession(files[f"{name}.onnx"], options, providers=["CPUExecutionProvider"])

        def run(resets: Bools, inputs: NDArray[Any]) -> tuple[Floats, Floats]:
            actions, states = [], []
            state = np.zeros((inputs.shape[1], machine.controller.memory_size))
            for starts, seen in zip(resets, inputs, strict=True):
                given = {"observation": seen, "state": state, "episode_start": starts}
                action, state = session.run(["action", "next_state"], given)
                actions.append(action)
                states.append(state)
            return np.array(actions, np.float64), np.array(states)

        return run

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"onnxruntime {version('onnxruntime')}"


class _Graph:
    """A model under construction."""

    def __init__(self, machine: MemoryMachine) -> None:
        self._onnx = onnx_module()
        self._machine, self._program = machine, program_of(machine)
        kept = [one.name for one in self._program.state if one.kind == "flag"]
        self._flags = {*self._program.flags, *kept}
        self._nodes: list[Any] = []
        self._constants: dict[bytes, Any] = {}

    def model(self, name: str) -> Any:
        """Return the model."""
        helper, kinds, program = self._onnx.helper, self._onnx.TensorProto, self._program
        seen = kinds.DOUBLE if self._machine.number == "double" else kinds.FLOAT
        self._write(seen)
        info, size = helper.make_tensor_value_info, len(program.state)
        graph = helper.make_graph(
            self._nodes,
            name,
            [
                info("observation", seen, ["n", len(program.inputs)]),
                info("state", kinds.DOUBLE, ["n", size]),
                info("episode_start", kinds.BOOL, ["n"]),
            ],
            [
                info("action", seen, ["n", len(program.outputs)]),
                info("next_state", kinds.DOUBLE, ["n", size]),
            ],
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 18)],
            producer_name="spaql",
            producer_version=version("spaql"),
            ir_version=10,
            doc_string="\n".join(
                [
                    *map(printable, heading(self._machine, f"{name}.onnx")),
                    "",
                    "The next_state is the state of the next sample. Where episode_start is true, the state "
                    "that is given does not matter.",
                    f"The numbers of a state: {', '.join(one.name for one in program.state)}.",
                ]
            ),
        )
        self._onnx.checker.check_model(model)
        return model

    def _write(self, kind: int) -> None:
        program, kinds = self._program, self._onnx.TensorProto
        seen = self._add("Cast", "observation", to=kinds.DOUBLE)
        reset = self._constant(np.array([[one.reset for one in program.state]]))
        starts = self._add("Unsqueeze", "episode_start", self._constant(np.array([1])))
        state = self._add("Where", starts, reset, "state")
        values = {name: self._column(seen, j) for j, name in enumerate(program.inputs)}
        for j, one in enumerate(program.state):
            column = self._column(state, j)
            values[one.name] = self._add("Cast", column, to=kinds.BOOL) if one.kind == "flag" else column
        after = self._run(program.statements, values)
        columns = []
        for one in program.state:
            value = after[one.name]
            columns.append(self._add("Cast", value, to=kinds.DOUBLE) if one.kind == "flag" else value)
        self._add("Concat", *(self._filled(name, seen) for name in columns), axis=1, output="next_state")
        given = [self._filled(after[name], seen) for name in program.outputs]
        self._add("Cast", self._add("Concat", *given, axis=1), to=kind, output="action")

    def _filled(self, name: str, like: str) -> str:
        """Return a column with a row for each episode: a constant has one row only."""
        shape = self._add("Concat", self._add("Shape", like, end=1), self._constant(np.array([1])), axis=0)
        return self._add("Expand", name, shape)

    def _column(self, batch: str, j: int) -> str:
        return self._add("Gather", batch, self._constant(np.array([j])), axis=1)

    def _run(self, statements: Sequence[Statement], before: Variables) -> Variables:
        """Add statements; returns the variables after them."""
        values = dict(before)
        for statement in statements:
            if isinstance(statement, Note):
                continue
            if isinstance(statement, Assign):
                values[statement.name] = self._expression(statement.value, values)
            elif isinstance(statement, SetLeaf):
                values["leaf"] = self._constant(np.array([[float(statement.number)]]))
            elif isinstance(statement, SetFlag):
                value = statement.value
                fixed = isinstance(value, bool)
                values[statement.name] = (
                    self._constant(np.array([[value]])) if fixed else self._condition(value, values)
                )
            else:
                values = self._choose(statement, values)
        return values

    def _choose(self, statement: Any, before: Variables) -> Variables:
        """Add both sides of a condition, and the choice between their variables."""
        condition = self._condition(statement.condition, before)
        then, otherwise = (self._run(side, before) for side in (statement.then, statement.otherwise))
        values = dict(before)
        for name in {**then, **otherwise}:
            sides = then.get(name), otherwise.get(name)
            one, other = (str(side or sides[1 - i]) for i, side in enumerate(sides))
            if one == other:
                values[name] = one
            elif name not in self._flags:
                values[name] = self._add("Where", condition, one, other)
            else:  # onnxruntime has no Where for truth values
                neither = self._add("And", self._add("Not", condition), other)
                values[name] = self._add("Or", self._add("And", condition, one), neither)
        return values

    def _expression(self, given: Expression, values: Variables) -> str:
        if isinstance(given, Number):
            return self._constant(np.array([[given.value]]))
        if isinstance(given, Name):
            return values[given.name]
        sides = (self._expression(part, values) for part in (given.left, given.right))
        return self._add(_OPERATORS[given.operator], *sides)

    def _condition(self, given: Condition | bool, values: Variables) -> str:
        if isinstance(given, Flag):
            return values[given.name]
        if isinstance(given, IsLeaf):
            return self._add("Equal", values["leaf"], self._constant(np.array([[float(given.number)]])))
        if isinstance(given, Not):
            return self._add("Not", self._condition(given.of, values))
        if isinstance(given, Compare):
            sides = (self._expression(part, values) for part in (given.left, given.right))
            return self._add(_COMPARISONS[given.operator], *sides)
        assert isinstance(given, All | Some)
        found = self._condition(given.of[0], values)
        for part in given.of[1:]:
            found = self._add("And" if isinstance(given, All) else "Or", found, self._condition(part, values))
        return found

    def _add(self, kind: str, *inputs: str, output: str = "", **settings: Any) -> str:
        output = output or f"t{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [output], **settings))
        return output

    def _constant(self, value: NDArray[Any]) -> str:
        """Return the name of a constant; equal ones are stored once."""
        key = f"{value.dtype}{value.shape}".encode() + value.tobytes()
        if key not in self._constants:
            name = f"c{len(self._constants)}"
            self._constants[key] = self._onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        return str(self._constants[key].name)
