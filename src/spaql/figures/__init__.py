"""Figures: compute a small record first, then draw it."""

from spaql.figures.axis import Axis, angle_axis, plain_axis
from spaql.figures.basin import BasinRecord, compute_basin
from spaql.figures.counterexamples import CounterexampleRecord, EpisodePanel, compute_counterexample
from spaql.figures.drawing import Record, draw, read, redraw, register, save_as, svg
from spaql.figures.maps import AxisRange, MapRecord, Outline, Piece, Trail, compute_map
from spaql.figures.overlays import compute_balls, compute_phase
from spaql.figures.response import ResponsePanel, ResponseRecord, compute_response
from spaql.figures.trees import TreeNode, TreeRecord, compute_tree
from spaql.figures.verdicts import VerdictRecord, compute_verdict

__all__ = [
    "Axis",
    "AxisRange",
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
    "angle_axis",
    "compute_balls",
    "compute_basin",
    "compute_counterexample",
    "compute_map",
    "compute_phase",
    "compute_response",
    "compute_tree",
    "compute_verdict",
    "draw",
    "plain_axis",
    "read",
    "redraw",
    "register",
    "save_as",
    "svg",
]
