"""Export targets of controllers with memory, by name."""

from spaql.export.json_form import Json
from spaql.export.languages.c import C
from spaql.export.languages.javascript import JavaScript
from spaql.export.languages.micropython import MicroPython
from spaql.export.languages.octave import Octave
from spaql.export.languages.onnx import Onnx
from spaql.export.languages.plcopen import PlcOpen
from spaql.export.languages.python import Python
from spaql.export.languages.rust import Rust
from spaql.export.languages.structured_text import StructuredText

TARGETS = {
    "c": C(),
    "st": StructuredText(),
    "onnx": Onnx(),
    "python": Python(),
    "json": Json(),
    "plcopen": PlcOpen(),
    "rust": Rust(),
    "octave": Octave(),
    "javascript": JavaScript(),
    "micropython": MicroPython(),
}
MANUAL = {"c", "st", "plcopen"}
"""Targets with manual mode and tracking."""
