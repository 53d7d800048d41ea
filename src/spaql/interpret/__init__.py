"""Readable controllers: rule trees, smaller ones, and tables and graphs of them."""

from spaql.interpret.build import rule_tree
from spaql.interpret.dot import dot
from spaql.interpret.edit import edited, locked, moved
from spaql.interpret.minimise import minimised
from spaql.interpret.simplify import shrinking, simplified
from spaql.interpret.table import LeafTable, table, table_csv, table_latex, table_markdown

__all__ = [
    "LeafTable",
    "dot",
    "edited",
    "locked",
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
