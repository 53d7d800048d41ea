"""Controllers for machines: each export is proven equal to the policy before it is written."""

from spaql.export.compilers import MissingToolError
from spaql.export.equivalence import Proof, ProofError
from spaql.export.json_tree import tree_from_json
from spaql.export.played import ExportedPolicy
from spaql.export.targets import EXPORTERS, c, json, onnx, python, sql, st

__all__ = [
    "EXPORTERS",
    "ExportedPolicy",
    "MissingToolError",
    "Proof",
    "ProofError",
    "c",
    "json",
    "onnx",
    "python",
    "sql",
    "st",
    "tree_from_json",
]
