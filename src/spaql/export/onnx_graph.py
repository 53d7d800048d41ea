"""A controller as an ONNX model: a TreeEnsemble that finds the leaf, and the action of the leaf."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.export.comments import heading
from spaql.export.conditions import numbered
from spaql.export.equivalence import Run, Target
from spaql.export.memory.onnx_graph import OnnxMemory
from spaql.export.onnx_modules import onnx_module, runtime_module
from spaql.export.rewrite import written_out
from spaql.export.target_controller import MachineController
from spaql.languages import printable
from spaql.policy import Laws, SwitchingLaws

_LESS = 1
"""The mode of a node that tests `x < threshold`."""


class OnnxGraph(Target):
    """One model, from a batch `observation` to a batch `action`."""

    name = "ONNX"
    suffix = ".onnx"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        if controller.number.name == "fixed":
            raise SettingError("number is 'fixed', and must be 'double' or 'float' for ONNX.")
        return {f"{name}.onnx": _Graph(controller).model(name).SerializeToString(deterministic=True)}

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Open a session of onnxruntime; returns the function from inputs to actions."""
        runtime = runtime_module()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        session = runtime.InferenceSession(files[f"{name}.onnx"], options, providers=["CPUExecutionProvider"])

        def run(inputs: NDArray[Any]) -> NDArray[np.float64]:
            (given,) = session.run(["action"], {"observation": inputs})
            return np.asarray(given, np.float64).reshape(len(inputs), -1)

        return run

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"onnxruntime {version('onnxruntime')}"

    def with_memory(self) -> OnnxMemory:
        """Return the target for controllers with memory."""
        return OnnxMemory()


class _Graph:
    """A model under construction."""

    def __init__(self, controller: MachineController) -> None:
        self._onnx = onnx_module()
        self._controller = controller
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def model(self, name: str) -> Any:
        """Return the model."""
        helper, kinds, tree = self._onnx.helper, self._onnx.TensorProto, self._controller.tree
        seen = kinds.DOUBLE if self._controller.number.name == "double" else kinds.FLOAT
        done = kinds.INT64 if isinstance(tree.action_space, Discrete) else seen
        self._write(done)
        shape = ["n"] if isinstance(tree.action_space, Discrete) else ["n", self._controller.n_actions]
        graph = helper.make_graph(
            self._nodes,
            name,
            [helper.make_tensor_value_info("observation", seen, ["n", tree.dims])],
            [helper.make_tensor_value_info("action", done, shape)],
            self._constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 5)],
            producer_name="spaql",
            producer_version=version("spaql"),
            ir_version=10,
            doc_string="\n".join(map(printable, heading(self._controller, f"{name}.onnx"))),
        )
        self._onnx.checker.check_model(model)
        return model

    def _write(self, kind: int) -> None:
        controller, leaves = self._controller, self._controller.tree.leaves
        safe = np.array(controller.safe)
        # NaN alone differs from itself; the tree gets 0 instead, and its result is not used.
        whole = self._add("Equal", "observation", "observation")
        kept = self._add("Where", whole, "observation", self._constant(np.array(0, controller.number.dtype)))
        rows = self._add("Cast", self._tree(kept), to=self._onnx.TensorProto.INT64)
        row = self._add("Squeeze", rows, self._constant(np.array([1])))
        if isinstance(leaves, Laws | SwitchingLaws):
            u = self._law(kept, row)
        else:
            values = np.array([controller.leaf_value(i) for i in range(len(leaves))])
            u = self._add("Gather", self._constant(values), row, axis=0)
        flags = self._add("Cast", whole, to=self._onnx.TensorProto.INT32)
        good = self._add("ReduceMin", flags, self._constant(np.array([1])), keepdims=1)
        good = self._add(
            "And", self._add("Cast", good, to=self._onnx.TensorProto.BOOL), self._add("Equal", u, u)
        )
        given = self._add("Where", good, u, self._constant(safe))
        if isinstance(controller.tree.action_space, Discrete):
            given = self._add("Squeeze", given, self._constant(np.array([1])))
        self._add("Cast", given, to=kind, output="action")

    def _tree(self, seen: str) -> str:
        """Add the look-up of the row in the table of leaves; returns its name."""
        tree, dtype = self._controller.tree, self._controller.number.dtype
        if len(tree.combinations):  # they are compared in double precision, and all numbers with them
            seen, dtype = self._with_sums(seen), np.dtype(np.float64)
        table = numbered(written_out(tree))  # onnxruntime wants a parent for every node
        rules, leaves = len(table.feature), len(tree.leaves)
        # The root must be a test: both children of the root of a single leaf are that leaf.
        feature, threshold = table.feature or [0], table.threshold or [0.0]
        after = np.array(table.after or [(int(tree.leaf[0]),) * 2])
        ends = after >= rules
        places = np.where(ends, after - rules, after)
        tensor = self._onnx.numpy_helper.from_array
        return self._add(
            "TreeEnsemble",
            seen,
            domain="ai.onnx.ml",
            aggregate_function=1,
            leaf_targetids=[0] * leaves,
            leaf_weights=tensor(np.arange(leaves).astype(dtype)),
            n_targets=1,
            nodes_featureids=feature,
            nodes_modes=tensor(np.full(len(feature), _LESS, np.uint8)),
            nodes_splits=tensor(np.array(threshold, dtype)),
            nodes_truenodeids=places[:, 0].tolist(),
            nodes_trueleafs=ends[:, 0].astype(int).tolist(),
            nodes_falsenodeids=places[:, 1].tolist(),
            nodes_falseleafs=ends[:, 1].astype(int).tolist(),
            post_transform=0,
            tree_roots=[0],
        )

    def _law(self, seen: str, row: str) -> str:
        """Add the laws; returns the name of the action."""
        laws = self._controller.tree.leaves
        assert isinstance(laws, Laws | SwitchingLaws)
        seen = self._add("Cast", seen, to=self._onnx.TensorProto.DOUBLE)
        zero = self._constant(np.array(0.0))
        u = self._add("Gather", self._constant(laws.offset), row, axis=0)
        for j in range(laws.gain.shape[2]):
            gain = self._add("Gather", self._constant(laws.gain[:, :, j]), row, axis=0)
            u = self._with_term(u, gain, seen, j, zero)
        if isinstance(laws, SwitchingLaws):
            u = self._add("Where", self._add("Equal", u, u), u, self._constant(np.array(-np.inf)))
            place = self._add("ArgMax", u, axis=1, keepdims=1)
            place = self._add("Cast", place, to=self._onnx.TensorProto.DOUBLE)
            return self._add("Add", place, self._constant(np.array(float(laws.start))))
        low, high = self._constant(laws.low), self._constant(laws.high)
        u = self._add("Where", self._add("Less", u, low), low, u)
        return self._add("Where", self._add("Greater", u, high), high, u)

    def _with_sums(self, seen: str) -> str:
        """Add the sums; returns the name of the observations with the sums after them, all doubles."""
        weights = self._controller.tree.combinations
        seen = self._add("Cast", seen, to=self._onnx.TensorProto.DOUBLE)
        zero, sums = self._constant(np.array(0.0)), self._constant(np.zeros((1, len(weights))))
        for j in range(weights.shape[1]):
            sums = self._with_term(sums, self._constant(weights[np.newaxis, :, j]), seen, j, zero)
        return self._add("Concat", seen, sums, axis=1)

    def _with_term(self, total: str, weight: str, seen: str, j: int, zero: str) -> str:
        """Add a product to sums, in double precision, where its weight is not 0; returns their name."""
        unused = self._add("Equal", weight, zero)
        column = self._add("Gather", seen, self._constant(np.array([j])), axis=1)
        term = self._add("Mul", weight, self._add("Where", unused, zero, column))
        return self._add("Where", unused, total, self._add("Add", total, term))

    def _add(self, kind: str, *inputs: str, output: str = "", domain: str = "", **settings: Any) -> str:
        output = output or f"t{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [output], domain=domain, **settings))
        return output

    def _constant(self, value: NDArray[Any]) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name
