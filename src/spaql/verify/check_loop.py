"""The closed loop of a certificate on many sets at once: read from the file, and stepped by `check_sets`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import typed
from spaql.errors import ArchiveError
from spaql.verify import check_sets as sets
from spaql.verify.check_sets import Sets

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]
_CHOICES, _NUMBERS, _SWITCHING = 0, 1, 2
_NARROW = 0.3
_TURN_SLACK = 1e-12
_WITHOUT_OPERANDS = ("const", "input", "unknown")
_ONE_OPERAND = (
    "neg",
    "abs",
    "square",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "exp",
    "log",
    "atan",
    "tanh",
    "floor",
    "single",
)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ArchiveError(f"The certificate is not valid: {what}.")


@dataclass
class Tape:
    """A tape of a certificate."""

    names: list[str]
    first: Ints
    second: Ints
    value: Floats
    branch: Ints
    outputs: Ints
    flags: NDArray[np.bool_]
    tables: Floats

    @classmethod
    def read(cls, arrays: Arrays, operations: list[str], inputs: int, outputs: int) -> Tape:
        """Return the tape of a file; one that is not valid is refused."""
        ints = {
            name: typed(arrays[name], np.int64) for name in ("code", "first", "second", "branch", "outputs")
        }
        value, tables = (typed(arrays[name], np.float64) for name in ("value", "tables"))
        flags = typed(arrays["flags"], np.bool_)
        code, rows = ints["code"], len(ints["code"])
        _require(all(a.shape == (rows,) for a in (ints["first"], ints["second"], value)), "a tape has gaps")
        _require(bool(np.all((code >= 0) & (code < len(operations)))), "an operation is not known")
        names = [operations[i] for i in code]
        known = {*_WITHOUT_OPERANDS, *_ONE_OPERAND, "add", "sub", "mul", "div", "min", "max", "atan2"}
        _require(set(names) <= known | {"mod", "fmod", "interp"}, "an operation is not known")
        _require(tables.ndim == 3 and tables.shape[1] == 2, "a table has no points")
        for i, name in enumerate(names):
            a, b = int(ints["first"][i]), int(ints["second"][i])
            if name in _WITHOUT_OPERANDS:
                _require(name != "input" or 0 <= a < inputs, "an input does not exist")
                continue
            _require(0 <= a < i, "an operation comes before its operand")
            if name == "interp":
                _require(0 <= b < len(tables), "a table does not exist")
            elif name not in _ONE_OPERAND:
                _require(0 <= b < i, "an operation comes before its operand")
            if name in ("mod", "fmod"):
                _require(names[b] == "const" and 0 < value[b] < math.inf, "a remainder has no period")
        tape = cls(
            names, ints["first"], ints["second"], value, ints["branch"], ints["outputs"], flags, tables
        )
        tape._check_tree(rows, outputs)
        return tape

    def _check_tree(self, rows: int, outputs: int) -> None:
        leaves = len(self.flags)
        _require(self.outputs.shape == (leaves, outputs), "the outputs are not those of the plant")
        _require(bool(np.all((self.outputs >= 0) & (self.outputs < rows))), "an output does not exist")
        _require(self.branch.ndim == 2 and self.branch.shape[1] == 7 and len(self.branch) > 0, "no decisions")
        for node, (kind, a, b, yes, no, leaf, _) in enumerate(self.branch.tolist()):
            if kind < 0:
                _require(0 <= leaf < leaves, "a leaf does not exist")
            else:
                _require(kind < 3 and min(a, b) >= 0 and max(a, b) < rows, "a condition is not valid")
                _require(node < min(yes, no) and max(yes, no) < len(self.branch), "decisions go in circles")

    def run(self, inputs: list[Sets]) -> list[Sets]:
        """Return all rows for sets of inputs."""
        rows: list[Sets] = []
        like = inputs[0]
        for name, a, b, value in zip(
            self.names, self.first.tolist(), self.second.tolist(), self.value.tolist(), strict=True
        ):
            if name == "const":
                rows.append(sets.constant(value, like))
            elif name == "input":
                rows.append(inputs[a])
            elif name == "interp":
                points, values = self.tables[b]
                kept = ~np.isnan(points)
                rows.append(sets.table_value(rows[a], points[kept], values[kept]))
            elif name in ("mod", "fmod"):
                rows.append(sets.remainder(rows[a], float(self.value[b]), signed=name == "fmod"))
            else:
                x = rows[a] if name != "unknown" else like
                rows.append(_operation(name, x, rows[b] if name not in _ONE_OPERAND and b >= 0 else x))
        return rows

    def paths(self) -> list[tuple[list[tuple[int, int, int, bool]], int]]:
        """Return the conditions on the way to each leaf, with their answers, and the leaf."""
        found, waiting = [], [(0, [])]  # type: ignore[var-annotated]
        while waiting:
            node, way = waiting.pop()
            kind, a, b, yes, no, leaf, _ = self.branch[node].tolist()
            if kind < 0:
                found.append((way, leaf))
            else:
                waiting += [(yes, [*way, (kind, a, b, True)]), (no, [*way, (kind, a, b, False)])]
        return found


def _operation(name: str, x: Sets, y: Sets) -> Sets:
    one = np.ones_like(x.lo, np.bool_)
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
        case "sqrt":
            return sets.rising(
                x, np.sqrt, lambda m, v: 0.5 / v, lambda lo, hi: 0.25 / (lo * np.sqrt(lo)), x.lo >= 0
            )
        case "exp":
            return sets.rising(x, np.exp, lambda m, v: v, lambda lo, hi: np.exp(hi), one)
        case "log":
            return sets.rising(x, np.log, lambda m, v: 1 / m, lambda lo, hi: 1 / (lo * lo), x.lo > 0)
        case "atan":
            return sets.rising(
                x, np.arctan, lambda m, v: 1 / (1 + m * m), lambda lo, hi: np.full_like(lo, 0.65), one
            )
        case "tanh":
            return sets.rising(x, np.tanh, lambda m, v: 1 - v * v, lambda lo, hi: np.full_like(lo, 0.77), one)
        case "tan":
            inside = (x.lo > -1.57) & (x.hi < 1.57)
            return sets.rising(x, np.tan, lambda m, v: 1 + v * v, _tan_bend, inside)
    everywhere = np.full_like(x.lo, np.inf)
    return sets.interval(-everywhere, everywhere, len(x.g))


def _tan_bend(lo: Floats, hi: Floats) -> Floats:
    steep = np.maximum(np.abs(np.tan(lo)), np.abs(np.tan(hi)))
    return np.asarray(2 * steep * (1 + steep * steep))


@dataclass
class Parts:
    """Sets of states that are followed: numbers of the state × boxes, with symbols in the middle."""

    c: Floats
    g: Floats
    r: Floats
    lo: Floats
    hi: Floats
    owner: Ints

    def taken(self, chosen: NDArray[Any]) -> Parts:
        """Return some of them."""
        return Parts(
            self.c[:, chosen],
            self.g[:, :, chosen],
            self.r[:, chosen],
            self.lo[:, chosen],
            self.hi[:, chosen],
            self.owner[chosen],
        )

    def states(self) -> list[Sets]:
        """Return each number of the state, with its error as a symbol of its own."""
        n, count = self.c.shape
        found = []
        for j in range(n):
            g = np.zeros((2 * n, count))
            g[:n], g[n + j] = self.g[j], self.r[j]
            found.append(Sets(self.c[j], g, np.zeros(count), self.lo[j], self.hi[j]))
        return found


def boxes(lo: Floats, hi: Floats, owner: Ints) -> Parts:
    """Return boxes, numbers × boxes, with a symbol for each number."""
    n, count = lo.shape
    c = 0.5 * (lo + hi)
    g = np.zeros((n, n, count))
    for j in range(n):
        g[j, j] = np.maximum(hi[j] - c[j], c[j] - lo[j]) * (1 + 1e-14) + 1e-300
    return Parts(c, g, np.zeros((n, count)), lo, hi, owner)


def joined(parts: list[Parts]) -> Parts:
    """Return the parts of several in one."""
    names = ("c", "g", "r", "lo", "hi", "owner")
    return Parts(*(np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in names))


class Loop:
    """The closed loop of a certificate."""

    def __init__(self, data: Mapping[str, Any], arrays: Arrays) -> None:
        self.period, self.noise, self.push = (
            typed(arrays[name], np.float64) for name in ("period", "noise", "push")
        )
        n = self.n = len(self.period)
        seen = len(self.noise)
        _require(1 <= n <= 8 and self.push.shape == (n,), "the state has no numbers")
        floats = np.concatenate([self.period, self.noise, self.push])
        _require(bool(np.all(np.isfinite(floats) & (floats >= 0))), "a bound is negative")
        operations = [str(name) for name in data["operations"]]
        tree = {name.removeprefix("tree."): a for name, a in arrays.items() if name.startswith("tree.")}
        self.kind, self.start = int(data["tree_kind"]), int(data["tree_start"])
        _require(self.kind in (_CHOICES, _NUMBERS, _SWITCHING), "the leaves are of no known kind")
        for name in ("threshold", "sums", "gain", "offset", "low", "high"):
            setattr(self, f"_{name}", typed(tree[name], np.float64))
        for name in ("feature", "left", "right", "leaf"):
            setattr(self, f"_{name}", typed(tree[name], np.int64))
        self._check_tree(seen)
        wide = 1 if self.kind != _NUMBERS else self._offset.shape[1]  # type: ignore[attr-defined]
        parts = [
            {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
            for prefix in ("step.", "observe.")
        ]
        self.step = Tape.read(parts[0], operations, n + wide, n)
        self.observe = Tape.read(parts[1], operations, n, seen)
        _require(len(self.observe.flags) == 1, "an observation depends on conditions")
        self._paths, self._leaves = self.step.paths(), self._all_leaves()

    def _check_tree(self, seen: int) -> None:
        a: Any = self
        nodes, laws = len(a._feature), len(a._offset)
        _require(
            all(x.shape == (nodes,) for x in (a._threshold, a._left, a._right, a._leaf)), "a tree has gaps"
        )
        _require(a._sums.ndim == 2 and a._sums.shape[1] == seen, "sums have other observations")
        _require(
            a._offset.ndim == 2 and a._gain.shape == (*a._offset.shape, seen), "laws have other observations"
        )
        wide = a._offset.shape[1]
        _require(a._low.shape == a._high.shape == (wide,), "laws have other bounds")
        for node in range(nodes):
            if a._feature[node] >= 0:
                _require(a._feature[node] < seen + len(a._sums), "a rule compares nothing")
                children = (int(a._left[node]), int(a._right[node]))
                _require(node < min(children) and max(children) < nodes, "rules go in circles")
            else:
                _require(0 <= a._leaf[node] < laws, "a leaf has no law")
        _require(nodes > 0, "there is no tree")

    def _all_leaves(self) -> list[tuple[dict[tuple[int, bool], float], int]]:
        """Return the tightest bounds on the way to each leaf, (number, upper): bound, and its law."""
        a: Any = self
        found, waiting = [], [(0, {})]  # type: ignore[var-annotated]
        while waiting:
            node, way = waiting.pop()
            j, cut = int(a._feature[node]), float(a._threshold[node])
            if j < 0:
                found.append((way, int(a._leaf[node])))
                _require(len(found) <= 4096, "the tree has too many leaves")
                continue
            lower = {**way, (j, True): min(cut, way.get((j, True), math.inf))}
            upper = {**way, (j, False): max(cut, way.get((j, False), -math.inf))}
            waiting += [(int(a._left[node]), lower), (int(a._right[node]), upper)]
        return found

    def seen(self, states: list[Sets]) -> list[Sets]:
        """Return what the tree compares: observations, and weighted sums of them."""
        a: Any = self
        rows = self.observe.run(states)
        found = [sets.rounded(rows[row]) for row in self.observe.outputs[0]]
        found = [sets.widened(x, by) if by else x for x, by in zip(found, self.noise.tolist(), strict=True)]
        return found + [self._weighted(0.0, weights, found) for weights in a._sums]

    def _weighted(self, offset: float, weights: Floats, seen: list[Sets]) -> Sets:
        total = sets.constant(offset, seen[0])
        for weight, x in zip(weights.tolist(), seen, strict=False):
            if weight != 0.0:
                free = np.full_like(x.lo, np.inf)
                scaled = sets.affine(
                    x, np.full_like(free, weight), np.zeros_like(free), np.zeros_like(free), -free, free
                )
                total = sets.added(total, scaled)
        return total

    def advance(self, parts: Parts) -> list[tuple[Parts, bool]]:
        """Return the parts after a step, each group with whether its episodes have terminated."""
        states = parts.states()
        seen = self.seen(states)
        # Only finite observations lead to an action that is known.
        found: list[tuple[Parts, bool]] = []
        for bounds, law in self._leaves:
            possible = np.ones(len(parts.owner), np.bool_)
            for (j, is_upper), bound in bounds.items():
                possible &= ~(seen[j].lo >= bound) if is_upper else ~(seen[j].hi < bound)
            chosen = np.flatnonzero(possible)
            if len(chosen):
                self._in_leaf(parts.taken(chosen), [x.taken(chosen) for x in seen], bounds, law, found)
        return found

    def _in_leaf(
        self,
        parts: Parts,
        seen: list[Sets],
        bounds: Mapping[tuple[int, bool], float],
        law: int,
        found: list[tuple[Parts, bool]],
    ) -> None:
        a: Any = self
        states = parts.states()
        conditions = []
        for (j, is_upper), bound in bounds.items():
            gap = sets.added(seen[j], sets.constant(bound, seen[j]), -1.0)
            conditions.append(gap if is_upper else sets.negated(gap))
        states, kept = _cut(states, conditions)
        if not len(kept):
            return
        owner = parts.owner[kept]
        states = _boxed_where_narrow(states)
        seen = self.seen(states)
        known = np.all([np.isfinite(x.lo) & np.isfinite(x.hi) for x in seen], axis=0)
        seen = [
            x if known.all() else sets.where(known, x, sets.interval(x.lo * np.nan, x.hi, len(x.g)))
            for x in seen
        ]
        if self.kind == _SWITCHING:
            scores = {
                i: self._weighted(float(a._offset[law, i]), a._gain[law, i], seen)
                for i in range(a._offset.shape[1])
                if a._offset[law, i] > -math.inf
            }
            for i, score in scores.items():
                lower = [sets.added(other, score, -1.0) for k, other in scores.items() if k != i]
                here, left = _cut(states, lower)
                if len(left):
                    self._move(here, [sets.constant(float(self.start + i), here[0])], owner[left], found)
            return
        actions = []
        for i in range(a._offset.shape[1]):
            if self.kind == _CHOICES:
                actions.append(sets.constant(float(a._offset[law, i]), states[0]))
                continue
            u = self._weighted(float(a._offset[law, i]), a._gain[law, i], seen)
            if math.isfinite(a._low[i]):
                u = sets.larger(u, sets.constant(float(a._low[i]), u))
            if math.isfinite(a._high[i]):
                u = _operation("min", u, sets.constant(float(a._high[i]), u))
            actions.append(sets.rounded(u))
        self._move(states, actions, owner, found)

    def _move(
        self, states: list[Sets], actions: list[Sets], owner: Ints, found: list[tuple[Parts, bool]]
    ) -> None:
        rows = self.step.run([*states, *actions])
        for way, leaf in self._paths:
            possible = np.ones(len(owner), np.bool_)
            conditions, bounds = [], []
            for kind, i, j, holds in way:
                x, y = rows[i], rows[j]
                # A compared number without bounds may be NaN: all answers are possible, without a cut.
                loose = ~(np.isfinite(x.lo) & np.isfinite(x.hi) & np.isfinite(y.lo) & np.isfinite(y.hi))
                if kind == 2:
                    equal = (x.lo == x.hi) & (y.lo == y.hi) & (x.lo == y.lo)
                    possible &= loose | ((x.lo <= y.hi) & (y.lo <= x.hi) if holds else ~equal)
                elif kind == 0:
                    possible &= loose | (x.lo < y.hi if holds else x.hi >= y.lo)
                else:
                    possible &= loose | (x.lo <= y.hi if holds else x.hi > y.lo)
                pairs = (
                    [(i, j), (j, i)]
                    if kind == 2 and holds
                    else []
                    if kind == 2
                    else [(i, j) if holds else (j, i)]
                )
                for small, large in pairs:
                    gap = sets.added(rows[small], rows[large], -1.0)
                    free = sets.interval(np.where(loose, -np.inf, gap.lo), gap.hi, len(gap.g))
                    conditions.append(sets.where(loose, free, gap))
                    bounds.append((small, large, loose))
            chosen = np.flatnonzero(possible)
            if not len(chosen):
                continue
            outputs = [rows[row] for row in self.step.outputs[leaf]]
            for small, large, loose in bounds:
                for k, row in enumerate(self.step.outputs[leaf]):
                    x = outputs[k]
                    hi = np.where(~loose & (row == small), np.fmin(x.hi, rows[large].hi), x.hi)
                    lo = np.where(~loose & (row == large), np.fmax(x.lo, rows[small].lo), x.lo)
                    possible &= ~(lo > hi)
                    outputs[k] = Sets(x.c, x.g, x.r, lo, hi)
            chosen = np.flatnonzero(possible)
            after, kept = _cut([x.taken(chosen) for x in outputs], [gap.taken(chosen) for gap in conditions])
            if len(kept):
                parts = self._next(after, owner[chosen][kept], narrow=len(self._paths) > 1)
                found.append((parts, bool(self.step.flags[leaf])))

    def _next(self, after: list[Sets], owner: Ints, *, narrow: bool) -> Parts:
        """Return the next states: disturbed, brought back by whole turns, with one error each."""
        n, done = self.n, []
        for j, x in enumerate(after):
            wide = float(self.push[j])
            if self.period[j] > 0:
                turns = np.where(np.isfinite(x.c), np.floor(x.c / self.period[j] + 0.5), 0.0)
                shift = turns * self.period[j]
                x = Sets(x.c - shift, x.g, x.r, x.lo - shift, x.hi - shift)
                wide += _TURN_SLACK
            if wide:
                x = sets.widened(x, wide)
            rest = (x.r + np.abs(x.g[n:]).sum(axis=0)) * (1 + 1e-12)
            g = np.concatenate([x.g[:n], np.zeros_like(x.g[n:])])
            done.append(sets.settled(x.c, g, rest, np.zeros_like(rest), x.lo, x.hi))
        if narrow:
            done = _boxed_where_narrow(done)
        return Parts(
            np.stack([x.c for x in done]),
            np.stack([x.g[:n] for x in done]),
            np.stack([x.r for x in done]),
            np.stack([x.lo for x in done]),
            np.stack([x.hi for x in done]),
            owner,
        )


def _cut(states: list[Sets], conditions: list[Sets]) -> tuple[list[Sets], Ints]:
    """Return what conditions g <= 0 leave of states, and of which boxes anything is left."""
    count, symbols = len(states[0].c), len(states[0].g)
    ranges = np.stack([-np.ones((symbols, count)), np.ones((symbols, count))])
    possible = np.ones(count, np.bool_)
    for gap in conditions:
        ranges, holds = sets.narrowed(gap, ranges)
        possible &= holds
    kept = np.flatnonzero(possible)
    return [sets.replaced(x.taken(kept), ranges[:, :, kept]) for x in states], kept


def _boxed_where_narrow(states: list[Sets]) -> list[Sets]:
    """Replace forms by their box where an interval is much narrower than its form."""
    narrow = np.any([x.hi - x.lo < _NARROW * 2 * x.spread for x in states], axis=0)
    narrow &= np.all([np.isfinite(x.lo) & np.isfinite(x.hi) for x in states], axis=0)
    found = []
    for j, x in enumerate(states):
        c = np.where(narrow, 0.5 * (x.lo + x.hi), x.c)
        g = np.where(narrow, 0.0, x.g)
        half = np.maximum(x.hi - c, c - x.lo) * (1 + 1e-14) + 1e-300
        g[j] = np.where(narrow, half, g[j])
        found.append(Sets(c, g, np.where(narrow, 0.0, x.r), x.lo, x.hi))
    return found
