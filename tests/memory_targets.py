"""Export targets of controllers with memory, by name."""

from spaql.export.c_code import CCode
from spaql.export.json_tree import JsonTree
from spaql.export.onnx_graph import OnnxGraph
from spaql.export.plcopen import PlcOpen
from spaql.export.python_code import PythonCode
from spaql.export.source.javascript import JavaScript
from spaql.export.source.micropython import MicroPython
from spaql.export.source.octave import Octave
from spaql.export.source.rust import Rust
from spaql.export.structured_text import StructuredText
from spaql.export.wasm.target import Wasm

TARGETS = {
    "c": CCode(),
    "st": StructuredText(),
    "onnx": OnnxGraph(),
    "python": PythonCode(),
    "json": JsonTree(),
    "plcopen": PlcOpen(),
    "rust": Rust(),
    "octave": Octave(),
    "javascript": JavaScript(),
    "wasm": Wasm(),
    "micropython": MicroPython(),
}
MANUAL = {"c", "st", "plcopen"}
"""Targets with manual mode and tracking."""
