"""Controllers as code: every export is compared with the policy before a file is written."""

from spaql.export.compilers import MissingToolError
from spaql.export.equivalence import Equivalence, EquivalenceError
from spaql.export.json_tree import tree_from_json
from spaql.export.played import ExportedPolicy
from spaql.export.targets import EXPORTERS, c, json, onnx, python, sql, st

Proof = Equivalence
"""Deprecated: the old name of `Equivalence`."""
ProofError = EquivalenceError
"""Deprecated: the old name of `EquivalenceError`."""

__all__ = [
    "EXPORTERS",
    "Equivalence",
    "EquivalenceError",
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
