"""Tapes in JavaScript."""

from __future__ import annotations

import json

from spaql.program.operations import OPERATIONS, operands
from spaql.program.tape import DecisionTree, Tape

HELPERS = """
const mod = (a, b) => { const m = a % b; return m !== 0 && (m < 0) !== (b < 0) ? m + b : m; };
const interp = (table, x) => {
  const [at, is] = table;
  if (x <= at[0]) return is[0];
  for (let i = 1; i < at.length; i++)
    if (x < at[i]) return (is[i] - is[i - 1]) / (at[i] - at[i - 1]) * (x - at[i - 1]) + is[i - 1];
  return Number.isNaN(x) ? x : is[is.length - 1];
};
"""
"""The functions that operations call."""


def function(name: str, tape: Tape, *, ended: bool) -> str:
    """Return a tape as a function of an array; with `ended`, whether the episode has is returned last."""
    tables = [json.dumps(table) for table in tape.tables]
    lines = []
    for i, row in enumerate(tape.operations):
        kind, first, second, value = row
        table = tables[second] if kind == "interp" else ""
        arguments = [f"r{place}" for place in operands(row)]
        form = OPERATIONS[kind].javascript
        lines.append(
            f"const r{i} = {form.format(*arguments, value=json.dumps(value), first=first, table=table)};"
        )
    lines.append(_returned(tape.decisions, ended))
    body = "\n".join(lines)
    return f"const {name} = (x) => {{\n{body}\n}};\n"


def _returned(node: DecisionTree, ended: bool) -> str:
    """Return a decision tree as nested conditions."""
    if len(node) == 2:
        results = [f"r{row}" for row in node[0]]
        flag = [str(int(node[1]))] if ended else []
        return f"return [{', '.join(results + flag)}];"
    (kind, a, b), *sides = node
    then, otherwise = (_returned(side, ended) for side in sides)
    sign = "===" if kind == "==" else kind
    return f"if (r{a} {sign} r{b}) {{ {then} }} else {{ {otherwise} }}"
