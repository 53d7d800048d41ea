"""Controllers as code: every export is compared with the policy before a file is written."""

from spaql.export.equivalence import Equivalence
from spaql.export.exported_policy import ExportedPolicy
from spaql.export.json_form import controller_from_json
from spaql.export.language import Source, Target
from spaql.export.machine import Machine
from spaql.export.played import EquivalenceError
from spaql.export.processes import MissingToolError
from spaql.export.targets import (
    EXPORTERS,
    c,
    find_exporter,
    fmu,
    javascript,
    json,
    micropython,
    octave,
    onnx,
    plcopen,
    python,
    rust,
    st,
    wasm,
)
from spaql.export.writing import write

__all__ = [
    "EXPORTERS",
    "Equivalence",
    "EquivalenceError",
    "ExportedPolicy",
    "Machine",
    "MissingToolError",
    "Source",
    "Target",
    "c",
    "controller_from_json",
    "find_exporter",
    "fmu",
    "javascript",
    "json",
    "micropython",
    "octave",
    "onnx",
    "plcopen",
    "python",
    "rust",
    "st",
    "wasm",
    "write",
]
