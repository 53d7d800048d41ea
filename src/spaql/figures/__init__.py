"""Figures: compute a small record first, then draw it."""

from spaql.figures.basin import BasinRecord, compute_basin
from spaql.figures.curves import Curve, CurvesRecord
from spaql.figures.domains import Ball, DomainsPanel, DomainsRecord
from spaql.figures.drawing import Record, draw, read, redraw, save_as
from spaql.figures.episodes import EpisodesRecord, EpisodeTrace
from spaql.figures.paper import NAMES, paper_figures
from spaql.figures.scaling import ScalingPanel, ScalingRecord, ScalingSeries

__all__ = [
    "NAMES",
    "Ball",
    "BasinRecord",
    "Curve",
    "CurvesRecord",
    "DomainsPanel",
    "DomainsRecord",
    "EpisodeTrace",
    "EpisodesRecord",
    "Record",
    "ScalingPanel",
    "ScalingRecord",
    "ScalingSeries",
    "compute_basin",
    "draw",
    "paper_figures",
    "read",
    "redraw",
    "save_as",
]
