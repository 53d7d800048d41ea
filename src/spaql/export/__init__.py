"""Controllers as code: every export is compared with the policy before a file is written."""

from spaql.export.equivalence import Equivalence
from spaql.export.json_form import controller_from_json
from spaql.export.language import Source, Target
from spaql.export.machine import ExportedPolicy, Machine
from spaql.export.running import EquivalenceError, MissingToolError
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
    write,
)

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
    "write",
]
