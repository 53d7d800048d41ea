"""Figures: compute a small record first, then draw it."""

from spaql.figures.basin import BasinRecord, compute_basin
from spaql.figures.drawing import Record, draw, read, redraw, register, save_as, svg
from spaql.figures.maps import MapRecord, Outline, Piece, Trail, compute_map
from spaql.figures.response import ResponsePanel, ResponseRecord, compute_response
from spaql.figures.scene import Axis
from spaql.figures.trees import TreeNode, TreeRecord, compute_tree
from spaql.figures.verdicts import (
    CounterexampleRecord,
    EpisodePanel,
    VerdictRecord,
    compute_counterexample,
    compute_verdict,
)

__all__ = [
    "Axis",
    "BasinRecord",
    "CounterexampleRecord",
    "EpisodePanel",
    "MapRecord",
    "Outline",
    "Piece",
    "Record",
    "ResponsePanel",
    "ResponseRecord",
    "Trail",
    "TreeNode",
    "TreeRecord",
    "VerdictRecord",
    "compute_basin",
    "compute_counterexample",
    "compute_map",
    "compute_response",
    "compute_tree",
    "compute_verdict",
    "draw",
    "read",
    "redraw",
    "register",
    "save_as",
    "svg",
]
