"""Tapes: the form of a program that kernels and the prover read, and its JavaScript.

A tape lists operations, each of them once, and ends in a decision tree over comparisons of their results. It
has no state: what a function remembers is among its inputs and outputs. Its inputs are numbers, never NaN.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.verify.points import CODE, CONDITIONS, TapeArrays, run_point
from spaql.kernels.verify.points import OPERATIONS as NAMES
from spaql.program.operations import OPERATIONS, Row, moved, operands

Floats = NDArray[np.float64]
DecisionTree = tuple[Any, ...]
"""The rows of the outputs and a flag; or a condition and the trees where it holds and where not."""
Table = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True, eq=False)
class Tape:
    """A traced function: what it computes for any input, along each path through its conditions."""

    arrays: TapeArrays
    inputs: int
    """How many numbers it takes."""
    draws: int = 0
    """How many random numbers it takes after these, each as a uniform and as a normal number."""

    @property
    def rows(self) -> int:
        """How many operations it has."""
        return len(self.arrays.code)

    @property
    def paths(self) -> int:
        """How many different results there are, by the conditions."""
        return len(self.arrays.outputs)

    @cached_property
    def operations(self) -> list[Row]:
        """The operations, each after its operands."""
        arrays = self.arrays
        columns = (arrays.first.tolist(), arrays.second.tolist(), arrays.value.tolist())
        return list(zip((NAMES[code] for code in arrays.code), *columns, strict=True))

    @cached_property
    def decisions(self) -> DecisionTree:
        """The decision tree."""
        arrays = self.arrays
        leaves = [
            (tuple(rows), flag)
            for rows, flag in zip(arrays.outputs.tolist(), arrays.flags.tolist(), strict=True)
        ]

        def tree(node: int) -> DecisionTree:
            kind, a, b, yes, no, leaf, _ = arrays.branch[node].tolist()
            return leaves[leaf] if kind < 0 else ((CONDITIONS[kind], a, b), tree(yes), tree(no))

        return tree(0)

    @property
    def tables(self) -> list[Table]:
        """The points and values of tables."""
        return [tuple(row[~np.isnan(row)].tolist() for row in pair) for pair in self.arrays.tables]

    def __call__(self, inputs: Sequence[float]) -> tuple[NDArray[np.float64], bool]:
        """Return the outputs for a point, and whether the episode has terminated."""
        rows = np.zeros(self.rows)
        leaf = run_point(self.arrays, np.asarray(inputs, np.float64), rows)
        return rows[self.arrays.outputs[leaf]], bool(self.arrays.flags[leaf])

    def needed(self, outputs: Sequence[int], *, flags: bool = True) -> set[int]:
        """Return the inputs that some outputs depend on, with the conditions that decide between paths.

        Without `flags`, conditions that decide only whether the episode terminates do not count.
        """
        waiting: list[int] = []

        def results(node: DecisionTree) -> set[tuple[int, ...]]:
            if len(node) == 2:
                rows = [node[0][k] for k in outputs]
                waiting.extend(rows)
                return {(*rows, int(node[1] and flags))}
            (_, *compared), yes, no = node
            different = results(yes) | results(no)
            if len(different) > 1:
                waiting.extend(compared)
            return different

        results(self.decisions)
        rows = [self.operations[row] for row in _with_operands(self.operations, waiting)]
        return {first for name, first, _, _ in rows if name == "input"}

    def restricted(self, inputs: Sequence[int], outputs: Sequence[int], *, flags: bool) -> Tape:
        """Return the tape of some outputs, which must depend on no inputs but the given ones.

        Without `flags`, it never says that an episode has terminated.
        """
        place = {number: i for i, number in enumerate(inputs)}

        def tree(node: DecisionTree) -> DecisionTree:
            if len(node) == 2:
                return tuple(node[0][k] for k in outputs), flags and node[1]
            condition, *sides = node
            yes, no = map(tree, sides)
            return yes if yes == no else (condition, yes, no)

        rows = [
            (name, place.get(first, -1) if name == "input" else first, second, value)
            for name, first, second, value in self.operations
        ]
        arrays = tape_arrays(rows, self.tables, tree(self.decisions))
        if np.any(arrays.first[arrays.code == CODE["input"]] < 0):
            raise ValueError("the outputs depend on other inputs")
        return Tape(arrays, len(place))

    def __repr__(self) -> str:
        return f"Tape({self.rows} operations, {self.paths} paths)"


def tape_arrays(rows: Sequence[Row], tables: Sequence[Table], tree: DecisionTree) -> TapeArrays:
    """Return the arrays of a tape, without operations that its decision tree does not need."""
    branch: list[list[int]] = []
    leaves: list[Any] = []

    def visit(node: DecisionTree, parent: int) -> int:
        number = len(branch)
        branch.append([])
        if len(node) == 2:
            if node not in leaves:
                leaves.append(node)
            branch[number] = [-1, -1, -1, -1, -1, leaves.index(node), parent]
        else:
            (kind, a, b), yes, no = node
            branch[number] = [CONDITIONS.index(kind), a, b, visit(yes, number), visit(no, number), -1, parent]
        return number

    visit(tree, -1)
    compared = [row for kind, a, b, *_ in branch if kind >= 0 for row in (a, b)]
    order = _with_operands(rows, [*compared, *(row for results, _ in leaves for row in results)])
    place = {row: i for i, row in enumerate(order)}
    names, first, second, value = zip(*(moved(rows[row], place) for row in order), strict=True)
    longest = max((len(points) for points, _ in tables), default=0)
    padded = np.full((len(tables), 2, longest), np.nan)
    for i, table in enumerate(tables):
        padded[i, :, : len(table[0])] = table
    return TapeArrays(
        code=np.array([CODE[name] for name in names], np.int64),
        first=np.array(first, np.int64),
        second=np.array(second, np.int64),
        value=np.array(value, np.float64),
        branch=np.array(
            [[b[0], place[b[1]], place[b[2]], *b[3:]] if b[0] >= 0 else b for b in branch], np.int64
        ),
        outputs=np.array([[place[row] for row in results] for results, _ in leaves], np.int64),
        flags=np.array([ended for _, ended in leaves], np.bool_),
        tables=padded,
    )


def _with_operands(rows: Sequence[Row], roots: Sequence[int]) -> list[int]:
    """Return some rows and all that they are computed from, in ascending order."""
    needed = set(roots)
    for number in range(len(rows) - 1, -1, -1):
        if number in needed:
            needed.update(operands(rows[number]))
    return sorted(needed)


JAVASCRIPT_HELPERS = """
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


def javascript_function(name: str, tape: Tape, *, ended: bool) -> str:
    """Return a tape as a JavaScript function of an array; the last number may be whether it `ended`."""
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
