"""A controller as SQL CASE expressions, to score the rows of a table in a database."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.export.comments import heading
from spaql.export.conditions import Keywords, nested, terms
from spaql.export.equivalence import Run, Target
from spaql.export.target_controller import MachineController
from spaql.languages import SQL, identifiers, in_comment
from spaql.policy import Laws

_KEYWORDS = Keywords("CASE WHEN {} THEN", "WHEN {} THEN", "ELSE", "END")
_RESERVED = f"{SQL} action"
_LARGEST = 1.7976931348623157e308


class SqlCase(Target):
    """One expression for each number of an action."""

    name = "SQL"
    suffix = ".sql"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        tree = controller.tree
        columns = identifiers(tree.observations, _RESERVED)
        lines = [f"-- {in_comment(line)}".rstrip() for line in heading(controller, f"{name}.sql")]
        lines += ["--", "-- Paste it into a SELECT list. The columns, in double precision, NULL for NaN:"]
        lines += [
            f"--   {column}: {in_comment(seen)}"
            for column, seen in zip(columns, tree.observations, strict=True)
        ]
        lines += [""]
        outputs = self.outputs(controller)
        for i, output in enumerate(outputs):
            lines += _expression(controller, columns, i)
            lines[-1] += f" AS {output}" + ("," if i + 1 < len(outputs) else "")
        return {f"{name}.sql": ("\n".join(lines) + "\n").encode()}

    @staticmethod
    def outputs(controller: MachineController) -> tuple[str, ...]:
        """Return the names of the output columns."""
        tree = controller.tree
        if isinstance(tree.action_space, Discrete):
            return ("action",)
        return identifiers(tree.actions, " ".join([_RESERVED, *identifiers(tree.observations, _RESERVED)]))

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Return the function from inputs to actions, which scores a table of an in-memory database."""
        columns = identifiers(controller.tree.observations, _RESERVED)
        holes = ", ".join("?" * len(columns))

        def run(inputs: NDArray[Any]) -> NDArray[np.float64]:
            with closing(sqlite3.connect(":memory:")) as database:
                database.execute(f"CREATE TABLE seen ({', '.join(f'{c} REAL' for c in columns)})")
                database.executemany(f"INSERT INTO seen VALUES ({holes})", inputs.tolist())
                given = database.execute(f"SELECT {files[f'{name}.sql'].decode()} FROM seen ORDER BY rowid")
                return np.array(given.fetchall(), np.float64).reshape(len(inputs), -1)

        return run

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"SQLite {sqlite3.sqlite_version}"


def _expression(controller: MachineController, columns: Sequence[str], i: int) -> Iterator[str]:
    tree = controller.tree
    whole = isinstance(tree.action_space, Discrete)

    def condition(j: int, t: float, below: bool) -> str:
        if j >= tree.dims:
            total = _sum(columns, tree.combinations[j - tree.dims])
            # A sum may be NaN, which is NULL.
            return _compared(total, t, below) + ("" if below else f" OR {total} IS NULL")
        return _compared(columns[j], t, below)

    def leaf(row: int) -> list[str]:
        if isinstance(tree.leaves, Laws):
            return [_law(controller, columns, row, i)]
        if controller.scores(row):
            return _switching_law(controller, columns, row)
        value = controller.leaf_value(row)[i]
        return [str(int(value)) if whole else literal(value)]

    unknown = "\n    OR ".join(f"{column} IS NULL" for column in columns)
    safe = controller.safe[i]
    said = str(int(safe)) if whole else literal(safe)
    yield from nested(tree, _KEYWORDS, condition, leaf, (unknown, [said]))


def _law(controller: MachineController, columns: Sequence[str], row: int, i: int) -> str:
    laws = controller.tree.leaves
    assert isinstance(laws, Laws)
    u = _sum(columns, laws.gain[row, i], float(laws.offset[row, i]))
    low, high, safe = (literal(float(x)) for x in (laws.low[i], laws.high[i], controller.safe[i]))
    return f"COALESCE(CASE WHEN {u} < {low} THEN {low} WHEN {u} > {high} THEN {high} ELSE {u} END, {safe})"


def _switching_law(controller: MachineController, columns: Sequence[str], row: int) -> list[str]:
    """Return the lines of a switching law.

    The first action is taken whose score is not below that of any later one, if it is more than -infinity.
    """
    pairs = [(number, _sum(columns, gain, offset)) for number, offset, gain in controller.scores(row)]
    lines: list[str] = []
    for place, (number, score) in enumerate(pairs):
        later = (f" AND ({score} >= {other} OR {other} IS NULL)" for _, other in pairs[place + 1 :])
        test = f"{score} >= {literal(-_LARGEST)}" + "".join(later)
        lines += [f"{'WHEN' if lines else 'CASE WHEN'} {test} THEN", f"    {number}"]
    return [*lines, "ELSE", f"    {int(controller.tree.default_action[0])}", "END"]


def _sum(columns: Sequence[str], weights: NDArray[np.float64], offset: float | None = None) -> str:
    begin = [] if offset is None else [literal(offset)]
    return " + ".join([*begin, *(f"{literal(weight)} * {columns[j]}" for j, weight in terms(weights))])


def _compared(number: str, t: float, below: bool) -> str:
    """Return `number < t`, or its negation; SQL has no literal for infinity."""
    if t == math.inf:
        return f"{number} {'<=' if below else '>'} {literal(_LARGEST)}"
    return f"{number} {'<' if below else '>='} {literal(t)}"


def literal(x: float) -> str:
    """Return a double as an approximate numeric literal of SQL.

    SQLite does not always read the double nearest to a decimal number. Where it does not, the number is
    written as an integer times powers of two, which every database computes exactly.

    Examples
    --------
    >>> literal(0.1), literal(-2.5e-7)
    ('0.1E0', '-2.5E-07')
    """
    plain = repr(x).upper()
    plain = plain if "E" in plain else plain + "E0"
    with closing(sqlite3.connect(":memory:")) as database:
        if database.execute(f"SELECT {plain}").fetchone()[0] == x:
            return plain
    mantissa, exponent = math.frexp(x)
    whole, exponent = int(math.ldexp(mantissa, 53)), exponent - 53
    sign, steps = ("*", exponent) if exponent > 0 else ("/", -exponent)
    factors = [2**60] * (steps // 60) + [2 ** (steps % 60)]
    return f"({whole} * 1.0E0 {sign} " + f" {sign} ".join(map(str, factors)) + ")"
