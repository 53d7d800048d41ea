"""Every form of every export, and controllers that differ from another in one place."""

import dataclasses

import numpy as np

from spaql.export.c_code import CCode
from spaql.export.differences import differences
from spaql.export.equivalence import Target
from spaql.export.json_tree import JsonTree
from spaql.export.onnx_graph import OnnxGraph
from spaql.export.plcopen import PlcOpen
from spaql.export.python_code import PythonCode
from spaql.export.source.javascript import JavaScript
from spaql.export.source.micropython import MicroPython
from spaql.export.source.octave import Octave
from spaql.export.source.rust import Rust
from spaql.export.structured_text import StructuredText
from spaql.export.target_controller import MachineController
from spaql.export.wasm.target import Wasm

FORMS: dict[str, tuple[Target, str]] = {
    "C double, rules": (CCode("rules"), "double"),
    "C double, table": (CCode("table"), "double"),
    "C float, rules": (CCode("rules"), "float"),
    "C float, table": (CCode("table"), "float"),
    "C fixed, rules": (CCode("rules"), "fixed"),
    "C fixed, table": (CCode("table"), "fixed"),
    "Structured Text, LREAL": (StructuredText(), "double"),
    "Structured Text, REAL": (StructuredText(), "float"),
    "ONNX double": (OnnxGraph(), "double"),
    "ONNX float": (OnnxGraph(), "float"),
    "Python, rules": (PythonCode("rules"), "double"),
    "Python, table": (PythonCode("table"), "double"),
    "JSON": (JsonTree(), "double"),
    "PLCopen XML, LREAL": (PlcOpen(), "double"),
    "PLCopen XML, REAL": (PlcOpen(), "float"),
    "JavaScript": (JavaScript(), "double"),
}
SLOW_FORMS: dict[str, tuple[Target, str]] = {
    "Rust f64": (Rust(), "double"),
    "Rust f32": (Rust(), "float"),
    "WebAssembly": (Wasm(), "double"),
    "Octave": (Octave(), "double"),
    "MicroPython double": (MicroPython(), "double"),
    "MicroPython float": (MicroPython(), "float"),
}
"""Forms that take a second to compile or to start: WebAssembly holds the C, and all others are written from
the same program as JavaScript."""
KINDS = ("choices", "constants", "laws", "switching laws")
SAFE = {"choices": 4, "constants": [1.0, -2.0], "laws": [1.0, -2.0], "switching laws": 5}
"""Safe actions of the trees in `random_trees`."""


def mutant(controller: MachineController, rng: np.random.Generator, what: str) -> MachineController:
    """Make a controller that differs from another in one place, for some number of the machine."""
    tree, number = controller.tree, controller.number
    inner, ends = np.flatnonzero(tree.feature >= 0), np.flatnonzero(tree.feature < 0)
    while True:
        threshold, leaf = tree.threshold.copy(), tree.leaf.copy()
        if what == "threshold":
            node = int(rng.choice(inner))
            side = bool(rng.random() < 0.5)
            threshold[node] = number.neighbour(int(tree.feature[node]), threshold[node], upper=side)
        else:
            node = int(rng.choice(ends))
            leaf[node] = (leaf[node] + rng.integers(1, len(tree.leaves))) % len(tree.leaves)
        other = dataclasses.replace(tree, threshold=threshold, leaf=leaf)
        for box in differences(tree, other):
            if (number.values(number.inputs(np.array([box.low])))[0] <= box.high).all():
                return dataclasses.replace(controller, exact=other)
