"""The tapes of a certificate, read from the file and run on many sets at once.

On purpose, this is no evaluator of `spaql.program`: a fault there is not repeated in the check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import is_tree, typed
from spaql.errors import ArchiveError
from spaql.plugins.certificates import check_sets as sets
from spaql.plugins.certificates.check_sets import Floats, Sets

Ints = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]
MOST_CONDITIONS = 2**20
"""On all ways through a tape, or a rule tree, together."""
_WITHOUT_OPERANDS = ("const", "input", "unknown")
_ONE_OPERAND = (
    *("neg", "abs", "square", "sqrt", "sin", "cos", "tan", "exp", "log", "atan", "tanh", "floor", "single"),
    "interp",
)
_TWO_OPERANDS = ("add", "sub", "mul", "div", "min", "max", "atan2", "mod", "fmod")
_MOST_DIGITS = 4_000
"""Most bits of the fractions by which a period is shown."""
_MOST_TURNS = 100
_ROUNDING = 2.0**-50
"""Of a factor that turns a period into turns of a sine."""


def require(holds: bool, what: str) -> None:
    """Refuse a certificate in which something does not hold."""
    if not holds:
        raise ArchiveError(f"The certificate is not valid: {what}.")


@dataclass
class CheckedTape:
    """A tape of a certificate."""

    names: list[str]
    """The operation of each row."""
    first: list[int]
    second: list[int]
    value: list[float]
    branch: list[list[int]]
    outputs: Ints
    flags: NDArray[np.bool_]
    tables: list[tuple[Floats, Floats]]

    @classmethod
    def read(cls, arrays: Arrays, operations: list[str], inputs: int, outputs: int) -> CheckedTape:
        """Return the tape of a file; one that is not valid is refused."""
        code, first, second, branch, results = (
            typed(arrays[name], np.int64) for name in ("code", "first", "second", "branch", "outputs")
        )
        value, tables = (typed(arrays[name], np.float64) for name in ("value", "tables"))
        flags = typed(arrays["flags"], np.bool_)
        rows = len(code)
        require(all(a.shape == (rows,) for a in (code, first, second, value)), "a tape has gaps")
        require(bool(np.all((code >= 0) & (code < len(operations)))), "an operation is not known")
        require(flags.ndim == 1, "a flag has no leaf")
        tape = cls(
            [operations[i] for i in code.tolist()],
            first.tolist(),
            second.tolist(),
            value.tolist(),
            branch.tolist(),
            results,
            flags,
            _tables(tables),
        )
        tape._check_rows(inputs)
        tape._check_decisions(branch, outputs)
        return tape

    def _check_rows(self, inputs: int) -> None:
        for i, (name, a, b) in enumerate(zip(self.names, self.first, self.second, strict=True)):
            if name in _WITHOUT_OPERANDS:
                require(name != "input" or 0 <= a < inputs, "an input does not exist")
                continue
            require(name in _ONE_OPERAND or name in _TWO_OPERANDS, "an operation is not known")
            require(0 <= a < i, "an operation comes before its operand")
            require(name != "interp" or 0 <= b < len(self.tables), "a table does not exist")
            require(name in _ONE_OPERAND or 0 <= b < i, "an operation comes before its operand")
            if name in ("mod", "fmod"):
                constant = self.names[b] == "const" and 0 < self.value[b] < math.inf
                require(constant, "a remainder has no period")

    def _check_decisions(self, branch: Ints, outputs: int) -> None:
        rows = len(self.names)
        leaves = len(self.flags)
        require(self.outputs.shape == (leaves, outputs), "the outputs are not those of the plant")
        require(bool(np.all((self.outputs >= 0) & (self.outputs < rows))), "an output does not exist")
        require(branch.ndim == 2 and branch.shape[1] == 7, "there are no decisions")
        kind = branch[:, 0]
        pair = branch[:, 1:3]
        leaf = branch[:, 5]
        inner = kind >= 0
        require(is_tree(branch[:, 3], branch[:, 4], inner), "decisions are not a tree")
        require(bool(np.all((leaf >= 0) & (leaf < leaves) | inner)), "a leaf does not exist")
        known = (kind < 3) & np.all((pair >= 0) & (pair < rows), axis=1)
        require(bool(np.all(known | ~inner)), "a condition is not valid")

    @property
    def width(self) -> int:
        """How many arrays are in memory at a time: a row each, and the points of a table."""
        return len(self.names) + max((len(x) for x, _ in self.tables), default=0) + 1

    def digest(self, sha: Any) -> None:
        """Add all that the tape computes to a hash."""
        rows = list(zip(self.names, self.first, self.second, (x.hex() for x in self.value), strict=True))
        tables = [[[x.hex() for x in part.tolist()] for part in pair] for pair in self.tables]
        decisions = [row[:6] for row in self.branch]
        for part in (rows, decisions, self.outputs.tolist(), self.flags.tolist(), tables):
            sha.update(repr(part).encode())

    def run(self, inputs: list[Sets]) -> list[Sets]:
        """Return all rows for sets of inputs."""
        rows: list[Sets] = []
        like = inputs[0]
        for name, a, b, value in zip(self.names, self.first, self.second, self.value, strict=True):
            if name == "const" and math.isfinite(value):
                rows.append(sets.constant(value, like))
            elif name == "input":
                rows.append(inputs[a])
            elif name == "interp":
                rows.append(sets.table_value(rows[a], *self.tables[b]))
            elif name in ("mod", "fmod"):
                rows.append(sets.remainder(rows[a], self.value[b], signed=name == "fmod"))
            else:
                x = like if name in _WITHOUT_OPERANDS else rows[a]
                rows.append(operation(name, x, rows[b] if name in _TWO_OPERANDS else x))
        return rows

    def paths(self) -> list[tuple[list[tuple[int, int, int, bool]], int]]:
        """Return the conditions on the way to each leaf, with their answers, and the leaf."""
        found: list[tuple[list[tuple[int, int, int, bool]], int]] = []
        waiting: list[tuple[int, list[tuple[int, int, int, bool]]]] = [(0, [])]
        total = 0
        while waiting:
            node, way = waiting.pop()
            total += len(way)
            require(total <= MOST_CONDITIONS, "the ways through its decisions are too long")
            kind, a, b, yes, no, leaf, _ = self.branch[node]
            if kind < 0:
                found.append((way, leaf))
            else:
                waiting += [(yes, [*way, (kind, a, b, True)]), (no, [*way, (kind, a, b, False)])]
        return found

    def is_shifted(self, number: int, period: float, own: int | None) -> bool:
        """Return whether an input that grows by a period shifts the output `own` by it, and changes no other.

        This holds in exact arithmetic, and of every path: conditions compare what is shifted alike.
        """
        shifts = self._shifts(number, period)
        for kind, a, b, *_ in self.branch:
            if kind >= 0 and (shifts[a] is None or shifts[a] != shifts[b]):
                return False
        expected = [Fraction(int(j == own)) for j in range(self.outputs.shape[1])]
        return all([shifts[row] for row in results] == expected for results in self.outputs.tolist())

    def _shifts(self, number: int, period: float) -> list[Fraction | None]:
        """Return by how many periods each row grows if an input grows by one, None if that is not known."""
        shifts: list[Fraction | None] = []
        for name, a, b in zip(self.names, self.first, self.second, strict=True):
            if name in _WITHOUT_OPERANDS:
                shifted = Fraction(int(name == "input" and a == number))
                shifts.append(None if name == "unknown" else shifted)
                continue
            x = shifts[a]
            y = Fraction(0) if name in _ONE_OPERAND else shifts[b]
            after = None if x is None or y is None else self._shift(name, a, b, x, y, period)
            shifts.append(None if after is None or _digits(after) > _MOST_DIGITS else after)
        return shifts

    def _shift(self, name: str, a: int, b: int, x: Fraction, y: Fraction, period: float) -> Fraction | None:
        """Return the shift of an operation on rows that are shifted by x and y periods."""
        if x == y == 0:
            return Fraction(0)
        match name:
            case "add":
                return x + y
            case "sub":
                return x - y
            case "neg":
                return -x
            case "mul" if y == 0 and (factor := self._constant(b)) is not None:
                return x * factor
            case "mul" if x == 0 and (factor := self._constant(a)) is not None:
                return y * factor
            case "div" if y == 0 and (factor := self._constant(b)):
                return x / factor
            case "sin" | "cos" if _are_turns(x, period, math.tau):
                return Fraction(0)
            case "mod" if _are_turns(x, period, self.value[b]):
                return Fraction(0)
        return None

    def _constant(self, row: int) -> Fraction | None:
        value = self.value[row]
        return Fraction(value) if self.names[row] == "const" and math.isfinite(value) else None


def _digits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _are_turns(shift: Fraction, period: float, turn: float) -> bool:
    """Return whether some periods are whole turns, exactly but for the rounding of a factor like pi / 180."""
    turns = shift * Fraction(period) / Fraction(turn)
    return abs(turns) < _MOST_TURNS and abs(turns - round(turns)) <= _ROUNDING * abs(turns)


def _tables(tables: Floats) -> list[tuple[Floats, Floats]]:
    """Return the points and values of tables."""
    require(tables.ndim == 3 and tables.shape[1] == 2, "a table has no points")
    found = []
    for points, values in tables:
        kept = ~np.isnan(points)
        x = points[kept]
        y = values[kept]
        sound = len(x) > 0 and np.all(np.diff(x) > 0) and np.isfinite(x).all() and np.isfinite(y).all()
        require(bool(sound), "a table has no points in ascending order")
        found.append((x, y))
    return found


def operation(name: str, x: Sets, y: Sets) -> Sets:
    """Return the sets of an operation; anything for one that is not known to be a number."""
    match name:
        case "add" | "sub":
            return sets.added(x, y, 1.0 if name == "add" else -1.0)
        case "mul":
            return sets.multiplied(x, y)
        case "div":
            return sets.divided(x, y)
        case "neg":
            return sets.negated(x)
        case "max":
            return sets.larger(x, y)
        case "min":
            return sets.negated(sets.larger(sets.negated(x), sets.negated(y)))
        case "abs":
            return sets.larger(x, sets.negated(x))
        case "square":
            return sets.squared(x)
        case "sin":
            return sets.wave(x, np.sin, math.pi / 2)
        case "cos":
            return sets.wave(x, np.cos, 0.0)
        case "atan2":
            return sets.angle(x, y)
        case "floor":
            return sets.interval(np.floor(x.lo), np.floor(x.hi), len(x.g))
        case "single":
            return sets.rounded(x)
        case _ if name in _RISING:
            return sets.rising(x, *_RISING[name])
    return sets.anything(x)


def _tan_bend(lo: Floats, hi: Floats) -> Floats:
    steep = np.maximum(np.abs(np.tan(lo)), np.abs(np.tan(hi)))
    return np.asarray(2 * steep * (1 + steep * steep))


_RISING: Mapping[str, tuple[Any, ...]] = {
    "sqrt": (np.sqrt, lambda m, v: 0.5 / v, lambda lo, hi: 0.25 / (lo * np.sqrt(lo)), 0.0),
    "exp": (np.exp, lambda m, v: v, lambda lo, hi: np.exp(hi)),
    "log": (np.log, lambda m, v: 1 / m, lambda lo, hi: 1 / (lo * lo), 5e-324),
    "atan": (np.arctan, lambda m, v: 1 / (1 + m * m), lambda lo, hi: np.full_like(lo, 0.65)),
    "tanh": (np.tanh, lambda m, v: 1 - v * v, lambda lo, hi: np.full_like(lo, 0.77)),
    "tan": (np.tan, lambda m, v: 1 + v * v, _tan_bend, -1.57, 1.57),
}
"""Ascending functions: slope by point and value, bound of the second derivative, and domain."""
