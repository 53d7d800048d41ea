"""Controllers for people: rule trees, smaller ones, tables and graphs of them, and what closed loops show."""

from spaql.interpret.build import rule_tree
from spaql.interpret.dot import dot
from spaql.interpret.edit import edited, locked, moved
from spaql.interpret.measures import Measures, measure
from spaql.interpret.minimise import minimised
from spaql.interpret.simplify import shrinking, simplified
from spaql.interpret.table import LeafTable, table, table_csv, table_latex, table_markdown

__all__ = [
    "LeafTable",
    "Measures",
    "dot",
    "edited",
    "locked",
    "measure",
    "minimised",
    "moved",
    "rule_tree",
    "shrinking",
    "simplified",
    "table",
    "table_csv",
    "table_latex",
    "table_markdown",
]
