"""Controllers for people: exact rule trees, and what is said of them in words."""

from spaql.interpret.build import rule_tree
from spaql.interpret.leaves import Choices, Constants, Laws, Leaves
from spaql.interpret.minimise import minimised
from spaql.interpret.policy import RuleTreePolicy
from spaql.interpret.simplify import shrinking, simplified
from spaql.interpret.text import text
from spaql.interpret.tree import RuleTree

__all__ = [
    "Choices",
    "Constants",
    "Laws",
    "Leaves",
    "RuleTree",
    "RuleTreePolicy",
    "minimised",
    "rule_tree",
    "shrinking",
    "simplified",
    "text",
]
