"""Manual mode and tracking of a controller with memory: actions that others gave, and bumpless transfer.

In manual mode an operator gives the action: it is held within the rate limit and the range, without the dead
band. One that is NaN or beyond 1e30 is not valid: the last action is held. Lags, filters and differences
follow the observation. In automatic mode a limiter, a selector or a local switch after the controller may
apply another action than it gave, which is tracked. The memory follows in the same way: the action counts as
the last one, and the integrals are shifted by the difference between the two actions over their gains (back
calculation), so that the law would have given that action.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaql.kernels import controller as kernels
from spaql.kernels.numerics import Floats
from spaql.program.ir import (
    All,
    Assign,
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
    State,
    Statement,
    clamped,
)
from spaql.program.specification import Names, Specification


def track_program(spec: Specification, state: tuple[State, ...]) -> Program:
    """Return the program that corrects the state by the actions that were applied since the last sample."""
    names = spec.names
    statements = [_applied(spec, k) for k in range(len(names.actions))]
    statements += _shifted_integrals(spec, found=Flag("started"))
    return Program(names.applied, (), state, names.cuts, (), tuple(statements))


def _applied(spec: Specification, k: int) -> Statement:
    """Return the statement that sets `cut_...` and the last action where another one was applied."""
    names = spec.names
    limit = spec.controller.arrays.limit
    cut = names.cuts[k]
    target = names.target[k]
    applied = Name(names.applied[k])
    last = Name(names.last[k])
    valid: list[Condition] = [*in_range(applied)]
    if np.isinf(limit[[kernels.LOW, kernels.HIGH], k]).any():
        valid += in_range(last)
    valid.append(Compare("!=", applied, last))
    feature = spec.controller.arrays.feature
    newest = (feature[:, kernels.KIND] == kernels.LAST_ACTION) & (feature[:, kernels.FIRST] == k)
    slots = (spec.memory_word(i) for i in np.flatnonzero(newest).tolist())
    correct = (
        Assign(cut, last - applied),
        Assign(names.last[k], applied),
        Assign(target, Name(target) - Name(cut)),
        *(Assign(slot, applied) for slot in slots),
    )
    return If(All(tuple(valid)), correct, (Assign(cut, Number(0.0)),))


def in_range(value: Expression) -> tuple[Condition, ...]:
    """Return the conditions that an action is valid: not NaN, and within 1e30."""
    return value >= -kernels.LARGEST, value <= kernels.LARGEST


def manual_action(names: Names, k: int) -> Statement:
    """Return the statement that replaces the wish of a law by the action given by hand, or the last one."""
    manual = Name(names.manual[k])
    wish = names.wishes[k]
    return If(All(in_range(manual)), (Assign(wish, manual),), (Assign(wish, Name(names.last[k])),))


def manual_integrals(spec: Specification) -> tuple[Statement, ...]:
    """Return the statements that let integrals follow the action given by hand."""
    shifts = tuple(_shifted_integrals(spec))
    if not shifts:
        return ()
    return (
        Note("In manual mode integrals follow the action: the law would give it (bumpless transfer)."),
        *(If(Not(All(in_range(Name(cut)))), (Assign(cut, Number(0.0)),)) for cut in spec.names.cuts),
        *shifts,
    )


def _shifted_integrals(spec: Specification, found: Condition | None = None) -> Iterator[Statement]:
    """Yield the statements that shift integrals by `cut_...`, in each leaf that has some for its actions.

    The condition, if there is one, is that a leaf has been found: a tree of one leaf needs no other.
    """
    gains = spec.shifts
    assert gains is not None
    shifts: tuple[Statement, ...] = ()
    for leaf in reversed(np.flatnonzero(gains.any(axis=(1, 2))).tolist()):
        statements = tuple(_shifted(spec, gains[leaf]))
        if len(gains) > 1:
            shifts = (If(IsLeaf(leaf), statements, shifts),)
        else:
            shifts = statements if found is None else (If(found, statements),)
    yield from shifts
    for i in np.flatnonzero(gains.any(axis=(0, 2))).tolist():
        bound = float(spec.controller.arrays.setting[i, kernels.BOUND])
        yield from clamped(spec.memory_word(i), Number(-bound), Number(bound))


def _shifted(spec: Specification, gains: Floats) -> Iterator[Statement]:
    """Yield the statements that shift the integrals of a leaf."""
    for i in np.flatnonzero(gains.any(axis=1)).tolist():
        slot = spec.memory_word(i)
        total: Expression = Name(slot)
        for gain, cut in zip(gains[i].tolist(), spec.names.cuts, strict=True):
            total = total - Number(gain) * Name(cut) if gain else total
        yield Assign(slot, total)
