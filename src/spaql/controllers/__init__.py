"""Controllers, and other maps from raw observations to raw actions."""

from spaql.controllers.build import controller_of
from spaql.controllers.cells import LeafTable, table
from spaql.controllers.controller import Controller
from spaql.controllers.edit import edited, locked, moved
from spaql.controllers.explanation import Candidate, Change, Explanation
from spaql.controllers.features import (
    Angle,
    AngleError,
    Difference,
    Error,
    Feature,
    FilteredDerivative,
    Integral,
    Lag,
    LastAction,
    LowPass,
    Observed,
    Product,
    SinceChange,
    Square,
)
from spaql.controllers.from_text import rules
from spaql.controllers.laws import Laws
from spaql.controllers.minimise import minimised
from spaql.controllers.partition_policy import PartitionPolicy
from spaql.controllers.policy import Policy, RandomPolicy, RecordingPolicy
from spaql.controllers.simplify import shrinking, simplified
from spaql.controllers.text import text

__all__ = [
    "Angle",
    "AngleError",
    "Candidate",
    "Change",
    "Controller",
    "Difference",
    "Error",
    "Explanation",
    "Feature",
    "FilteredDerivative",
    "Integral",
    "Lag",
    "LastAction",
    "Laws",
    "LeafTable",
    "LowPass",
    "Observed",
    "PartitionPolicy",
    "Policy",
    "Product",
    "RandomPolicy",
    "RecordingPolicy",
    "SinceChange",
    "Square",
    "controller_of",
    "edited",
    "locked",
    "minimised",
    "moved",
    "rules",
    "shrinking",
    "simplified",
    "table",
    "text",
]
