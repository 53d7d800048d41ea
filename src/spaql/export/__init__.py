"""Controllers for machines: each export is proven equal to the policy before it is written."""

from spaql.export.compilers import MissingToolError
from spaql.export.equivalence import Proof, ProofError, Target
from spaql.export.json_tree import tree_from_json
from spaql.export.played import ExportedPolicy
from spaql.export.target_controller import MachineController
from spaql.export.targets import EXPORTERS, c, find_exporter, json, onnx, python, sql, st, write

__all__ = [
    "EXPORTERS",
    "ExportedPolicy",
    "MachineController",
    "MissingToolError",
    "Proof",
    "ProofError",
    "Target",
    "c",
    "find_exporter",
    "json",
    "onnx",
    "python",
    "sql",
    "st",
    "tree_from_json",
    "write",
]
