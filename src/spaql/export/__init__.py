"""Controllers as code: every export is compared with the policy before a file is written."""

from spaql.export.equivalence import Equivalence, EquivalenceError, Target
from spaql.export.exported_policy import ExportedPolicy
from spaql.export.json_tree import tree_from_json
from spaql.export.language_targets import javascript, micropython, octave, plcopen, rust, wasm
from spaql.export.memory.json_form import controller_from_json
from spaql.export.processes import MissingToolError
from spaql.export.target_controller import MachineController
from spaql.export.targets import EXPORTERS, c, find_exporter, fmu, json, onnx, python, st
from spaql.export.writing import write

__all__ = [
    "EXPORTERS",
    "Equivalence",
    "EquivalenceError",
    "ExportedPolicy",
    "MachineController",
    "MissingToolError",
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
    "tree_from_json",
    "wasm",
    "write",
]
