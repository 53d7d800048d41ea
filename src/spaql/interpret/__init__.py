"""Controllers for people: exact rule trees, and smaller ones."""

from spaql.interpret.build import rule_tree
from spaql.interpret.edit import edited, locked
from spaql.interpret.minimise import minimised
from spaql.interpret.simplify import shrinking, simplified

__all__ = ["edited", "locked", "minimised", "rule_tree", "shrinking", "simplified"]
