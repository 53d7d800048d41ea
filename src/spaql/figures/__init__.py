"""Figures: compute a small record first, then draw it."""

from spaql.figures.axis import Axis, angle_axis, plain_axis
from spaql.figures.basin import BasinRecord, compute_basin
from spaql.figures.card import policy_card
from spaql.figures.curves import Curve, CurvesRecord
from spaql.figures.domains import Ball, DomainsPanel, DomainsRecord
from spaql.figures.drawing import Record, draw, read, redraw, save_as, svg
from spaql.figures.episodes import EpisodesRecord, EpisodeTrace
from spaql.figures.growth import Growth, GrowthFrame, GrowthRecord, animate, compute_growth
from spaql.figures.maps import AxisRange, MapRecord, Outline, Piece, Trail, compute_map
from spaql.figures.overlays import compute_balls, compute_phase
from spaql.figures.paper import NAMES, paper_figures
from spaql.figures.plants import PlantRecord, compute_plant
from spaql.figures.rivals import RivalCurve, RivalsRecord, compute_rivals
from spaql.figures.scaling import ScalingPanel, ScalingRecord, ScalingSeries
from spaql.figures.sizes import SizesRecord, compute_sizes
from spaql.figures.trees import TreeNode, TreeRecord, compute_tree

__all__ = [
    "NAMES",
    "Axis",
    "AxisRange",
    "Ball",
    "BasinRecord",
    "Curve",
    "CurvesRecord",
    "DomainsPanel",
    "DomainsRecord",
    "EpisodeTrace",
    "EpisodesRecord",
    "Growth",
    "GrowthFrame",
    "GrowthRecord",
    "MapRecord",
    "Outline",
    "Piece",
    "PlantRecord",
    "Record",
    "RivalCurve",
    "RivalsRecord",
    "ScalingPanel",
    "ScalingRecord",
    "ScalingSeries",
    "SizesRecord",
    "Trail",
    "TreeNode",
    "TreeRecord",
    "angle_axis",
    "animate",
    "compute_balls",
    "compute_basin",
    "compute_growth",
    "compute_map",
    "compute_phase",
    "compute_plant",
    "compute_rivals",
    "compute_sizes",
    "compute_tree",
    "draw",
    "paper_figures",
    "plain_axis",
    "policy_card",
    "read",
    "redraw",
    "save_as",
    "svg",
]
