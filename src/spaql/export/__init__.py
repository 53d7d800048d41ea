"""Controllers as code: every export is compared with the policy before a file is written."""

from spaql.export.chain import CheckedLink, Link, chain_of, check_chain
from spaql.export.equivalence import Equivalence, EquivalenceError, Target
from spaql.export.exported_policy import ExportedPolicy
from spaql.export.json_tree import tree_from_json
from spaql.export.language_targets import javascript, micropython, octave, plcopen, ros2, rust, wasm
from spaql.export.memory.json_form import controller_from_json
from spaql.export.processes import MissingToolError
from spaql.export.target_controller import MachineController
from spaql.export.targets import EXPORTERS, c, find_exporter, fmu, json, onnx, python, sql, st
from spaql.export.writing import write

__all__ = [
    "EXPORTERS",
    "CheckedLink",
    "Equivalence",
    "EquivalenceError",
    "ExportedPolicy",
    "Link",
    "MachineController",
    "MissingToolError",
    "Target",
    "c",
    "chain_of",
    "check_chain",
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
    "ros2",
    "rust",
    "sql",
    "st",
    "tree_from_json",
    "wasm",
    "write",
]
