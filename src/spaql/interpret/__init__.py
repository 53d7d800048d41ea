"""Controllers for people: exact rule trees, and smaller ones; and what their closed loops show."""

from spaql.interpret.build import rule_tree
from spaql.interpret.edit import edited, locked
from spaql.interpret.measures import Measures, measure
from spaql.interpret.minimise import minimised
from spaql.interpret.simplify import shrinking, simplified

__all__ = [
    "Measures",
    "edited",
    "locked",
    "measure",
    "minimised",
    "rule_tree",
    "shrinking",
    "simplified",
]
