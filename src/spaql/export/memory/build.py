"""The program of a controller with memory: the kernels of `spaql.kernels.controller`, written out."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.program import (
    All,
    Assign,
    Binary,
    Compare,
    Condition,
    Expression,
    Flag,
    If,
    IsLeaf,
    Name,
    Not,
    Note,
    Number,
    Program,
    SetFlag,
    SetLeaf,
    Some,
    State,
    Statement,
    clamped,
    expression,
    minus,
    plus,
    times,
    weighted,
)
from spaql.export.memory.tracking import manual_action, manual_integrals
from spaql.kernels import controller as kernels

_ANGLE = ("angle_a", "angle_b", "angle_t", "angle_z", "angle_p", "angle_q")
_P = (
    -8.750608600031904122785e-1,
    -1.615753718733365076637e1,
    -7.500855792314704667340e1,
    -1.228866684490136173410e2,
    -6.485021904942025371773e1,
)
_Q = (
    2.485846490142306297962e1,
    1.650270098316988542046e2,
    4.328810604912902668951e2,
    4.853903996359136964868e2,
    1.945506571482613964425e2,
)


def program_of(machine: MemoryMachine, *, adjustable: bool = False, manual: bool = False) -> Program:
    """Return the program of a controller.

    With `adjustable`, the numbers of its tree are variables of the state, after those that remember, so that
    they can be changed while it runs: see `adjustable_name`. Gains and weights of 0 stay constants. With
    `manual` it has manual mode.
    """
    return _Builder(machine, adjustable, manual).program()


def adjustable_name(node: int, k: int, j: int) -> str:
    """Return the variable of a number in the arrays of a tree (see `spaql.policy.feature_tree.tree_table`).

    No other name has its sign, which JavaScript allows.

    Examples
    --------
    >>> adjustable_name(2, 0, 1)
    'tree$2_0_1'
    """
    return f"tree${node}_{k}_{j}"


class _Builder:
    def __init__(self, machine: MemoryMachine, adjustable: bool, manual: bool) -> None:
        self._machine, self._names = machine, machine.names
        self._manual = manual
        self._adjusted: dict[str, float] | None = {} if adjustable else None
        self._table, self._limiter, self._left, self._tree, self._margin = machine.controller.tables
        self._actions = range(len(machine.names.actions))
        leaves = np.flatnonzero(self._left < 0).tolist()
        integrals = np.flatnonzero(self._table.kind == kernels.INTEGRAL).tolist()
        # An integral that has no gain for a number of the action in any leaf does not wait for it.
        self._gains = [(i, k) for i in integrals for k in self._actions if self._tree[leaves, k, 1 + i].any()]

    def program(self) -> Program:
        names = self._names
        numbers = [*names.features, *names.wishes, *names.cuts]
        numbers += [names.gains[pair] for pair in self._gains]
        flags = ["waits"] if self._gains else []
        flags += ["keep"] if len(self._margin) else []
        if (self._table.kind == kernels.ANGLE).any():
            numbers += _ANGLE
            flags += ["angle_steep", "angle_turned"]
        invalid = Not(All(tuple(self._readings())))
        body = (
            Note("The features."),
            *(one for i in range(len(names.features)) for one in self._feature(i)),
            Note("The rules and the laws."),
            *self._rules(),
            Note("The limits of the action."),
            *(one for k in self._actions for one in self._limit(k)),
            Note("The memory."),
            *self._integrals(),
            *(one for i in range(len(names.features)) for one in self._update(i)),
            *(
                Assign(name, Name(value))
                for names_, values in ((names.last, names.actions), (names.target, names.wishes))
                for name, value in zip(names_, values, strict=True)
            ),
            SetFlag("started", True),
        )
        adjusted = (State(name, value, note="of the tree") for name, value in (self._adjusted or {}).items())
        return Program(
            names.observations,
            names.actions,
            (*self._state(), *adjusted),
            tuple(numbers),
            tuple(flags),
            (If(invalid, tuple(self._fallback()), body),),
            names.manual if self._manual else (),
        )

    def _state(self) -> Iterator[State]:
        memory = self._machine.controller.new_memory(1)[0].tolist()
        names = self._names
        yield State("started", memory[kernels.COUNT], "flag", "whether a sample has been taken")
        yield State("leaf", memory[kernels.LEAF], "leaf", "of the last sample; -1 for none")
        kept = [*names.last, *names.target, *names.memory]
        for name, value, note in zip(kept, memory[kernels.LAST :], self._machine.notes, strict=True):
            yield State(name, value, "real", note)

    def _readings(self) -> Iterator[Condition]:
        for name, (low, high) in zip(self._names.observations, self._machine.ends, strict=True):
            yield Compare(">=", Name(name), Number(low))
            yield Compare("<=", Name(name), Number(high))

    def _fallback(self) -> Iterator[Statement]:
        yield Note("No valid reading: the memory of the features stays as it is.")
        automatic = tuple(self._without_reading())
        if not self._manual:
            yield from automatic
            return
        names = self._names
        by_hand: list[Statement] = []
        for k in self._actions:
            by_hand += [manual_action(self._machine, k), *self._within_limits(k)]
            given = (names.actions[k], names.last[k], names.target[k])
            by_hand += [Assign(name, Name(names.wishes[k])) for name in given]
        yield If(Flag("manual"), tuple(by_hand), automatic)

    def _without_reading(self) -> Iterator[Statement]:
        names, safe = self._names, self._machine.safe
        for k in self._actions:
            action, last, target = names.actions[k], names.last[k], names.target[k]
            if safe is None:
                yield Assign(action, Name(last))
                continue
            yield from (Assign(name, Number(safe[k])) for name in (action, last, target))

    def _value(self, source: int) -> Expression:
        names = self._names
        return Name(names.features[source] if source >= 0 else names.observations[-1 - source])

    def _slot(self, i: int, j: int = 0) -> str:
        names = self._names
        first = kernels.LAST + 2 * len(names.actions)
        return names.memory[int(self._table.places[i, kernels.SLOT]) - first + j]

    def _feature(self, i: int) -> Iterator[Statement]:
        table, x = self._table, self._names.features[i]
        kind, samples = int(table.kind[i]), int(table.places[i, kernels.SAMPLES])
        if kind == kernels.INTEGRAL:
            yield Assign(x, Name(self._slot(i)))
            return
        if kind == kernels.LAST_ACTION:
            yield Assign(x, Name(self._slot(i, samples - 1)))
            return
        here, other = (self._value(int(table.places[i, j])) for j in (kernels.FIRST, kernels.SECOND))
        parameter = Number(float(table.numbers[i, kernels.PARAMETER]))
        if kind == kernels.ANGLE:
            yield from _angle(x, here, other)
            return
        if kind == kernels.ANGLE_ERROR:
            yield from _angle_error(x, here, other)
            return
        before = None if kind in _STATIC else Name(self._slot(i))
        if before is None:
            static = {kernels.OBSERVED: here, kernels.SQUARE: times(here, here)}
            static |= {kernels.ERROR: minus(here, other), kernels.PRODUCT: times(here, other)}
            yield Assign(x, static[kind])
        elif kind == kernels.DIFFERENCE:
            yield self._started(x, minus(here, before), Number(0.0))
        elif kind == kernels.LAG:
            yield self._started(x, Name(self._slot(i, samples - 1)), here)
        elif kind == kernels.LOW_PASS:
            yield self._started(x, plus(before, times(parameter, minus(here, before))), here)
        else:
            last, share = Name(self._slot(i, 1)), Number(float(table.numbers[i, kernels.BOUND]))
            quotient = Binary("/", minus(here, before), parameter)
            yield self._started(x, plus(last, times(share, minus(quotient, last))), Number(0.0))

    def _started(self, name: str, later: Expression, first: Expression) -> Statement:
        """Return a statement that sets a number, to another value at the first sample."""
        return If(Flag("started"), (Assign(name, later),), (Assign(name, first),))

    def _number(self, node: int, k: int, j: int, *, optional: bool = True) -> float | Name:
        """Return a number of the tree; one that is optional stays a constant where it is 0."""
        constant = float(self._tree[node, k, j])
        if self._adjusted is None or (optional and constant == 0.0):
            return constant
        self._adjusted[adjustable_name(node, k, j)] = constant
        return Name(adjustable_name(node, k, j))

    def _weights(self, node: int, k: int) -> list[float | Name]:
        return [self._number(node, k, 1 + i) for i in range(len(self._names.features))]

    def _sum(self, node: int) -> Expression:
        return weighted(self._weights(node, 0), self._names.features)

    def _rules(self) -> Iterator[Statement]:
        if not len(self._margin):
            yield from self._descent(0, laws=True)
            return
        leaves = np.flatnonzero(self._left < 0).tolist()
        yield Note("Hysteresis: the last leaf is kept while its conditions are missed by less than a margin.")
        yield SetFlag("keep", False)
        yield from self._for_leaves([(leaf, (self._kept(leaf),)) for leaf in leaves], last=None)
        yield If(Not(Flag("keep")), tuple(self._descent(0, laws=False)))
        yield from self._for_leaves([(leaf, tuple(self._laws(leaf))) for leaf in leaves[:-1]], leaves[-1])

    def _for_leaves(
        self, cases: list[tuple[int, tuple[Statement, ...]]], last: int | None
    ) -> Iterator[Statement]:
        """Yield statements that depend on the leaf; those of the last one need no question."""
        rest: tuple[Statement, ...] = () if last is None else tuple(self._laws(last))
        for leaf, statements in reversed(cases):
            rest = (If(IsLeaf(leaf), statements, rest),)
        yield from rest

    def _kept(self, leaf: int) -> Statement:
        """Return the statement that sets whether a leaf is kept."""
        conditions: list[Condition] = []
        node = leaf
        for parent in range(leaf - 1, -1, -1):
            if node not in (self._left[parent], self._left[parent] + 1) or self._left[parent] < 0:
                continue
            below = bool(self._left[parent] == node)
            node = parent
            if self._tree[parent, 0, 0] == -math.inf:  # nothing is below it
                if below:
                    return SetFlag("keep", False)
                continue
            test = self._below(parent, float(self._margin[parent]) * (1 if below else -1))
            conditions.append(test if below else Not(test))
        return SetFlag("keep", All(tuple(conditions)) if conditions else True)

    def _descent(self, node: int, *, laws: bool) -> Iterator[Statement]:
        left = int(self._left[node])
        if left >= 0 and self._tree[node, 0, 0] == -math.inf:  # nothing is below it
            yield from self._descent(left + 1, laws=laws)
            return
        if left < 0:
            yield SetLeaf(node)
            if laws:
                yield from self._laws(node)
            return
        below, above = (tuple(self._descent(child, laws=laws)) for child in (left, left + 1))
        yield If(self._below(node), below, above)

    def _below(self, node: int, margin: float = 0.0) -> Condition:
        """Return whether the sum of a node is below its threshold, which may be infinite, and a margin."""
        threshold = float(self._tree[node, 0, 0])
        if threshold == math.inf:
            return Compare("<=", self._sum(node), Number(1.7976931348623157e308))
        bound = self._number(node, 0, 0, optional=False)
        if isinstance(bound, float):
            return Compare("<", self._sum(node), Number(bound + margin))
        return Compare("<", self._sum(node), plus(bound, Number(margin)) if margin else bound)

    def _laws(self, leaf: int) -> Iterator[Statement]:
        names = self._names
        for k in self._actions:
            offset = self._number(leaf, k, 0, optional=False)
            law = weighted(self._weights(leaf, k), names.features, offset)
            yield Assign(names.wishes[k], plus(Name(names.target[k]), law) if self._limiter.velocity else law)
        for i, k in self._gains:
            yield Assign(names.gains[i, k], expression(self._number(leaf, k, 1 + i)))

    def _limit(self, k: int) -> Iterator[Statement]:
        """Yield the statements that limit an action; what was cut off is then in `cut_...`."""
        names, band = self._names, float(self._limiter.dead_band[k])
        wish, last, action, cut = names.wishes[k], Name(names.last[k]), names.actions[k], names.cuts[k]
        yield Assign(cut, Name(wish))
        # A sum that is NaN is neither at most nor above anything.
        known = Some((Compare("<=", Name(wish), Number(0.0)), Compare(">", Name(wish), Number(0.0))))
        yield If(Not(known), (Assign(wish, last),))
        if self._manual:
            yield If(Flag("manual"), (manual_action(self._machine, k),))
        yield from self._within_limits(k)
        yield Assign(cut, minus(Name(cut), Name(wish)))
        yield Assign(action, Name(wish))
        if band > 0.0:
            sides = (minus(Name(wish), last), minus(last, Name(wish)))
            small: list[Condition] = [Compare("<", side, Number(band)) for side in sides]
            small += [Not(Flag("manual"))] if self._manual else []
            yield If(All(tuple(small)), (Assign(action, last),))

    def _within_limits(self, k: int) -> Iterator[Statement]:
        """Yield the statements that bring what is asked for into the rate limit and the range."""
        limits, wish, last = self._limiter, self._names.wishes[k], Name(self._names.last[k])
        rate = float(limits.rate[k])
        if rate < math.inf:
            yield from clamped(wish, minus(last, Number(rate)), plus(last, Number(rate)))
        ends = (float(array[k]) for array in (limits.low, limits.high))
        yield from clamped(wish, *(None if math.isinf(end) else Number(end) for end in ends))

    def _integrals(self) -> Iterator[Statement]:
        """Yield the statements that update all integrals."""
        integrals = np.flatnonzero(self._table.kind == kernels.INTEGRAL).tolist()
        automatic = tuple(one for i in integrals for one in self._integrate(i))
        if not self._manual or not automatic:
            yield from automatic
            return
        if by_hand := manual_integrals(self._machine):
            yield If(Flag("manual"), by_hand, automatic)
        else:
            yield If(Not(Flag("manual")), automatic)

    def _update(self, i: int) -> Iterator[Statement]:
        table, x, kind = self._table, self._names.features[i], int(self._table.kind[i])
        if kind in (kernels.DIFFERENCE, kernels.DERIVATIVE):
            yield Assign(self._slot(i), self._value(int(table.places[i, kernels.FIRST])))
            if kind == kernels.DERIVATIVE:
                yield Assign(self._slot(i, 1), Name(x))
        elif kind == kernels.LOW_PASS:
            yield Assign(self._slot(i), Name(x))
        elif kind in (kernels.LAG, kernels.LAST_ACTION):
            lag, places = kind == kernels.LAG, range(int(table.places[i, kernels.SAMPLES]) - 1, 0, -1)
            source = int(table.places[i, kernels.FIRST])
            here = self._value(source) if lag else Name(self._names.actions[source])
            shift = tuple(Assign(self._slot(i, j), Name(self._slot(i, j - 1))) for j in places)
            if shift and lag:
                yield If(Flag("started"), shift, tuple(Assign(self._slot(i, j), here) for j in places))
            elif shift:
                yield from shift
            yield Assign(self._slot(i), here)

    def _integrate(self, i: int) -> Iterator[Statement]:
        """Yield the statements that update an integral, unless it would push a limited action further."""
        table, slot, names = self._table, self._slot(i), self._names
        here, bound = self._value(int(table.places[i, kernels.FIRST])), float(table.numbers[i, kernels.BOUND])
        add = (
            Assign(slot, plus(Name(slot), times(Number(float(table.numbers[i, kernels.PARAMETER])), here))),
            *clamped(slot, Number(-bound), Number(bound)),
        )
        pushes = tuple(
            Compare(">", times(times(Name(names.cuts[k]), Name(names.gains[j, k])), here), Number(0.0))
            for j, k in self._gains
            if j == i
        )
        if not pushes:
            yield from add
            return
        yield SetFlag("waits", Some(pushes))
        yield If(Not(Flag("waits")), add)


_STATIC = (kernels.OBSERVED, kernels.ERROR, kernels.PRODUCT, kernels.SQUARE)


def _angle_error(x: str, setpoint: Expression, output: Expression) -> Iterator[Statement]:
    """Yield the statements of a wrapped error."""
    half, turn = Number(3.141592653589793), Number(6.283185307179586)
    above, below = Compare(">", Name(x), half), Compare("<", Name(x), Number(-3.141592653589793))
    yield Assign(x, minus(setpoint, output))
    up = If(below, (Assign(x, plus(Name(x), turn)),))
    yield If(above, (Assign(x, minus(Name(x), turn)),), (up,))


def _angle(x: str, y: Expression, cosine: Expression) -> Iterator[Statement]:
    """Yield the statements of `spaql.kernels.controller.arc_tangent`."""
    a, b, t, z, p, q = (Name(name) for name in _ANGLE)
    zero, one = Number(0.0), Number(1.0)
    for name, value in (("angle_a", y), ("angle_b", cosine)):
        negative = Compare("<", value, zero)
        yield If(negative, (Assign(name, minus(zero, value)),), (Assign(name, value),))
    steep, turned = Flag("angle_steep"), Flag("angle_turned")
    poly: list[Statement] = [Assign("angle_z", times(t, t)), Assign("angle_p", Number(_P[0]))]
    poly += [Assign("angle_p", plus(times(p, z), Number(c))) for c in _P[1:]]
    poly += [Assign("angle_q", plus(z, Number(_Q[0])))]
    poly += [Assign("angle_q", plus(times(q, z), Number(c))) for c in _Q[1:]]
    angle = plus(t, times(t, Binary("/", times(z, p), q)))
    body = (
        SetFlag("angle_steep", Compare(">", a, b)),
        If(steep, (Assign("angle_t", Binary("/", b, a)),), (Assign("angle_t", Binary("/", a, b)),)),
        SetFlag("angle_turned", Compare(">", t, Number(0.66))),
        If(turned, (Assign("angle_t", Binary("/", minus(t, one), plus(t, one))),)),
        *poly,
        Assign(x, angle),
        If(turned, (Assign(x, plus(Name(x), Number(0.7853981633974483))),)),
        If(steep, (Assign(x, minus(Number(1.5707963267948966), Name(x))),)),
        If(Compare("<", cosine, zero), (Assign(x, minus(Number(3.141592653589793), Name(x))),)),
        If(Compare("<", y, zero), (Assign(x, minus(zero, Name(x))),)),
    )
    origin = All((Compare("<=", a, zero), Compare("<=", b, zero)))
    yield If(origin, (Assign(x, zero),), body)
