"""Every form of every export, and controllers that differ from another in one place."""

import dataclasses

import numpy as np

from spaql.export.json_form import Json
from spaql.export.language import Target
from spaql.export.languages.c import C
from spaql.export.languages.javascript import JavaScript
from spaql.export.languages.micropython import MicroPython
from spaql.export.languages.octave import Octave
from spaql.export.languages.onnx import Onnx
from spaql.export.languages.plcopen import PlcOpen
from spaql.export.languages.python import Python
from spaql.export.languages.rust import Rust
from spaql.export.languages.structured_text import StructuredText
from spaql.export.machine import Machine
from tree_differences import differences

FORMS: dict[str, tuple[Target, str]] = {
    "C double": (C(), "double"),
    "C float": (C(), "float"),
    "Structured Text, LREAL": (StructuredText(), "double"),
    "Structured Text, REAL": (StructuredText(), "float"),
    "ONNX double": (Onnx(), "double"),
    "ONNX float": (Onnx(), "float"),
    "Python": (Python(), "double"),
    "JSON": (Json(), "double"),
    "PLCopen XML, LREAL": (PlcOpen(), "double"),
    "PLCopen XML, REAL": (PlcOpen(), "float"),
    "JavaScript": (JavaScript(), "double"),
}
SLOW_FORMS: dict[str, tuple[Target, str]] = {
    "Rust f64": (Rust(), "double"),
    "Rust f32": (Rust(), "float"),
    "Octave": (Octave(), "double"),
    "MicroPython double": (MicroPython(), "double"),
    "MicroPython float": (MicroPython(), "float"),
}
"""Forms that take a second to compile or to start, written from the same program as JavaScript."""
KINDS = ("choices", "constants", "laws", "switching laws")
SAFE = {"choices": 4, "constants": [1.0, -2.0], "laws": [1.0, -2.0], "switching laws": 5}
"""Safe actions of the trees in `random_trees`."""


def mutant(machine: Machine, rng: np.random.Generator, what: str) -> Machine:
    """Make a controller that differs from another in one place, for some number of the machine."""
    tree = machine.controller
    number = machine.number
    inner = np.flatnonzero(tree.feature >= 0)
    ends = np.flatnonzero(tree.feature < 0)
    while True:
        threshold = tree.threshold.copy()
        leaf = tree.leaf.copy()
        if what == "threshold":
            node = int(rng.choice(inner))
            side = bool(rng.random() < 0.5)
            threshold[node] = number.neighbour(threshold[node], upper=side)
        else:
            node = int(rng.choice(ends))
            leaf[node] = (leaf[node] + rng.integers(1, len(tree.laws))) % len(tree.laws)
        other = dataclasses.replace(tree, threshold=threshold, leaf=leaf)
        least, most = np.array(machine.ends).T
        for box in differences(tree, other):
            low = np.maximum(box.low, least)
            high = np.minimum(box.high, most)
            low = np.where(np.isfinite(low), low, np.minimum(high, -1e9))
            if all(number.up(x) <= end for x, end in zip(low, high, strict=True)):
                return dataclasses.replace(machine, controller=other)
