"""Tapes: a plant's function as a list of operations, with a decision tree over its conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.verify.codes import CODE, CONDITIONS, OPERATIONS, TapeArrays
from spaql.kernels.verify.points import run_point

Floats = NDArray[np.float64]
Row = tuple[str, int, int, float]
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

    def __call__(self, inputs: Sequence[float]) -> tuple[NDArray[np.float64], bool]:
        """Return the outputs for a point, and whether the episode has terminated."""
        rows = np.zeros(self.rows)
        leaf = run_point(self.arrays, np.asarray(inputs, np.float64), rows)
        return rows[self.arrays.outputs[leaf]], bool(self.arrays.flags[leaf])

    def needed(self, outputs: Sequence[int], *, flags: bool = True) -> set[int]:
        """Return the inputs that some outputs depend on, with the conditions that decide between paths.

        Without `flags`, conditions that decide only whether the episode terminates do not count.
        """
        arrays = self.arrays
        waiting = [int(row) for row in arrays.outputs[:, list(outputs)].ravel()]
        for node in range(len(arrays.branch)):
            if arrays.branch[node, 0] >= 0 and self._matters(node, list(outputs), flags):
                waiting += [int(arrays.branch[node, 1]), int(arrays.branch[node, 2])]
        seen: set[int] = set()
        found: set[int] = set()
        while waiting:
            row = waiting.pop()
            if row in seen:
                continue
            seen.add(row)
            if arrays.code[row] == CODE["input"]:
                found.add(int(arrays.first[row]))
            else:
                waiting += operands(arrays, row)
        return found

    def _matters(self, node: int, outputs: list[int], flags: bool) -> bool:
        """Return whether the two sides of a condition differ in some outputs."""
        sides = [self._results(int(self.arrays.branch[node, side]), outputs, flags) for side in (3, 4)]
        return len(set.union(*sides)) > 1

    def _results(self, node: int, outputs: list[int], flags: bool) -> set[tuple[int, ...]]:
        waiting, found = [node], set()
        while waiting:
            kind, _, _, yes, no, leaf, _ = (int(x) for x in self.arrays.branch[waiting.pop()])
            if kind >= 0:
                waiting += [yes, no]
            else:
                rows = tuple(int(row) for row in self.arrays.outputs[leaf, outputs])
                found.add((*rows, int(self.arrays.flags[leaf]) if flags else 0))
        return found

    def restricted(self, inputs: Sequence[int], outputs: Sequence[int], *, flags: bool) -> Tape:
        """Return the tape of some outputs, which must depend on no inputs but the given ones.

        Without `flags`, it never says that an episode has terminated.
        """
        arrays = self.arrays
        place = {number: i for i, number in enumerate(inputs)}
        rows = [
            (OPERATIONS[code], place.get(int(first), -1) if code == CODE["input"] else int(first), int(b), v)
            for code, first, b, v in zip(
                arrays.code, arrays.first, arrays.second, arrays.value.tolist(), strict=True
            )
        ]
        tree = self._restricted_tree(0, list(outputs), flags)
        found = tape_arrays(rows, self._tables(), tree)
        if np.any(found.first[found.code == CODE["input"]] < 0):
            raise ValueError("the outputs depend on other inputs")
        return Tape(found, len(place))

    def in_coordinates(
        self, back: Floats, there: Floats | None = None, keep: tuple[Floats, Floats] | None = None
    ) -> Tape:
        """Return the tape of a state in other coordinates, which come first of its inputs.

        Parameters
        ----------
        back
            The state is this matrix times its coordinates.
        there
            The outputs are multiplied by this matrix; as they are by default.
        keep
            Ends of a box: an episode also terminates where an output, before it is multiplied, is outside.
        """
        arrays, n = self.arrays, len(back)
        rows: list[Row] = [("input", k, -1, 0.0) for k in range(self.inputs)]

        def constant(value: float) -> int:
            rows.append(("const", -1, -1, value))
            return len(rows) - 1

        def weighted(weights: Floats, of: Sequence[int]) -> int:
            total = -1
            for weight, row in zip(weights.tolist(), of, strict=True):
                if weight:
                    rows.append(("mul", constant(weight), row, 0.0))
                    if total >= 0:
                        rows.append(("add", total, len(rows) - 1, 0.0))
                    total = len(rows) - 1
            return total if total >= 0 else constant(0.0)

        inputs = [*(weighted(one, range(n)) for one in back), *range(n, self.inputs)]
        place: list[int] = []
        for code, first, second, value in zip(
            arrays.code, arrays.first.tolist(), arrays.second.tolist(), arrays.value.tolist(), strict=True
        ):
            name = OPERATIONS[code]
            if name == "input":
                place.append(inputs[first])
                continue
            if name not in _NO_OPERANDS:
                first = place[first]
                second = second if name == "interp" or second < 0 else place[second]
            rows.append((name, first, second, value))
            place.append(len(rows) - 1)

        def leaf(number: int) -> DecisionTree:
            states = [place[row] for row in arrays.outputs[number]]
            outputs = tuple(states if there is None else (weighted(one, states) for one in there))
            result: DecisionTree = (outputs, bool(arrays.flags[number]))
            if keep is None or result[1]:
                return result
            for row, low, high in zip(states, *keep, strict=True):
                if low > -np.inf:
                    result = (("<", row, constant(float(low))), (outputs, True), result)
                if high < np.inf:
                    result = (("<", constant(float(high)), row), (outputs, True), result)
            return result

        leaves = [leaf(number) for number in range(self.paths)]

        def tree(node: int) -> DecisionTree:
            kind, a, b, yes, no, number, _ = (int(x) for x in arrays.branch[node])
            if kind < 0:
                return leaves[number]
            return (CONDITIONS[kind], place[a], place[b]), tree(yes), tree(no)

        return Tape(tape_arrays(rows, self._tables(), tree(0)), self.inputs)

    def _tables(self) -> list[Table]:
        return [
            (tuple(x[~np.isnan(x)].tolist()), tuple(y[~np.isnan(x)].tolist())) for x, y in self.arrays.tables
        ]

    def _restricted_tree(self, node: int, outputs: list[int], flags: bool) -> DecisionTree:
        kind, a, b, yes, no, leaf, _ = (int(x) for x in self.arrays.branch[node])
        if kind < 0:
            rows = tuple(int(row) for row in self.arrays.outputs[leaf, outputs])
            return rows, flags and bool(self.arrays.flags[leaf])
        sides = [self._restricted_tree(side, outputs, flags) for side in (yes, no)]
        return sides[0] if sides[0] == sides[1] else ((CONDITIONS[kind], a, b), *sides)

    def __repr__(self) -> str:
        return f"Tape({self.rows} operations, {self.paths} paths)"


def operands(arrays: TapeArrays, row: int) -> list[int]:
    """Return the rows that a row is computed from."""
    name = OPERATIONS[arrays.code[row]]
    if name in _NO_OPERANDS:
        return []
    pair = [int(arrays.first[row])]
    return pair if name == "interp" or arrays.second[row] < 0 else [*pair, int(arrays.second[row])]


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
    order = _needed(rows, branch, [row for results, _ in leaves for row in results])
    place = {row: i for i, row in enumerate(order)}
    kept = [rows[row] for row in order]

    def moved(name: str, operand: int, *, table: bool = False) -> int:
        return operand if name in _NO_OPERANDS or operand < 0 or table else place[operand]

    longest = max((len(points) for points, _ in tables), default=0)
    padded = np.full((len(tables), 2, longest), np.nan)
    for i, table in enumerate(tables):
        padded[i, :, : len(table[0])] = table
    return TapeArrays(
        code=np.array([CODE[name] for name, *_ in kept], np.int64),
        first=np.array([moved(name, a) for name, a, _, _ in kept], np.int64),
        second=np.array([moved(name, b, table=name == "interp") for name, _, b, _ in kept], np.int64),
        value=np.array([value for *_, value in kept], np.float64),
        branch=np.array(
            [[b[0], place[b[1]], place[b[2]], *b[3:]] if b[0] >= 0 else b for b in branch], np.int64
        ),
        outputs=np.array([[place[row] for row in results] for results, _ in leaves], np.int64),
        flags=np.array([ended for _, ended in leaves], np.bool_),
        tables=padded,
    )


_NO_OPERANDS = ("const", "input", "unknown")


def _needed(rows: Sequence[Row], branch: list[list[int]], results: list[int]) -> list[int]:
    """Return the rows that results and conditions are computed from, in ascending order."""
    needed = set(results) | {b[k] for b in branch if b[0] >= 0 for k in (1, 2)}
    for number in range(len(rows) - 1, -1, -1):
        name, first, second, _ = rows[number]
        if number in needed and name not in _NO_OPERANDS:
            needed |= {first} if name == "interp" or second < 0 else {first, second}
    return sorted(needed)
