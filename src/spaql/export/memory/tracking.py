"""Manual mode and tracking in programs: `spaql.policy.tracking`, written out."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.program import (
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
    Some,
    State,
    Statement,
    clamped,
    minus,
    times,
)
from spaql.kernels import controller as kernels
from spaql.policy.feature_controller import LARGEST


def track_program(machine: MemoryMachine, state: tuple[State, ...]) -> Program:
    """Return the program that corrects the state by the actions that were applied since the last sample."""
    names = machine.names
    statements = [_applied(machine, k) for k in range(len(names.actions))]
    statements += _shifted_integrals(machine, found=Flag("started"))
    return Program(names.applied, (), state, names.cuts, (), tuple(statements))


def _applied(machine: MemoryMachine, k: int) -> Statement:
    """Return the statement that sets `cut_...` and the last action where another one was applied."""
    names, limiter = machine.names, machine.controller.tables.limiter
    cut, target = names.cuts[k], names.target[k]
    applied, last = Name(names.applied[k]), Name(names.last[k])
    valid: list[Condition] = [*in_range(applied)]
    if math.isinf(limiter.low[k]) or math.isinf(limiter.high[k]):
        valid += in_range(last)
    valid.append(Some((Compare("<", applied, last), Compare(">", applied, last))))
    correct = (
        Assign(cut, minus(last, applied)),
        Assign(names.last[k], applied),
        Assign(target, minus(Name(target), Name(cut))),
        *(Assign(slot, applied) for slot in _newest_slots(machine, k)),
    )
    return If(All(tuple(valid)), correct, (Assign(cut, Number(0.0)),))


def in_range(value: Expression) -> tuple[Condition, ...]:
    """Return the conditions that an action is valid: not NaN, and within 1e30."""
    return Compare(">=", value, Number(-LARGEST)), Compare("<=", value, Number(LARGEST))


def manual_action(machine: MemoryMachine, k: int) -> Statement:
    """Return the statement that replaces the wish of a law by the action given by hand, or the last one."""
    names = machine.names
    manual, wish = Name(names.manual[k]), names.wishes[k]
    return If(All(in_range(manual)), (Assign(wish, manual),), (Assign(wish, Name(names.last[k])),))


def manual_integrals(machine: MemoryMachine) -> tuple[Statement, ...]:
    """Return the statements that let integrals follow the action given by hand."""
    shifts = tuple(_shifted_integrals(machine))
    if not shifts:
        return ()
    return (
        Note("In manual mode integrals follow the action: the law would give it (bumpless transfer)."),
        *(If(Not(All(in_range(Name(cut)))), (Assign(cut, Number(0.0)),)) for cut in machine.names.cuts),
        *shifts,
    )


def _shifted_integrals(machine: MemoryMachine, found: Condition | None = None) -> Iterator[Statement]:
    """Yield the statements that shift integrals by `cut_...`, in each leaf that has some for its actions.

    The condition, if there is one, is that a leaf has been found: a tree of one leaf needs no other.
    """
    table, gains = machine.controller.tables.table, machine.tracking.gains
    shifts: tuple[Statement, ...] = ()
    for leaf in reversed(np.flatnonzero(gains.any(axis=(1, 2))).tolist()):
        statements = tuple(_shifted(machine, leaf))
        if len(gains) > 1:
            shifts = (If(IsLeaf(leaf), statements, shifts),)
        else:
            shifts = statements if found is None else (If(found, statements),)
    yield from shifts
    for i in np.flatnonzero(gains.any(axis=(0, 2))).tolist():
        bound = float(table.numbers[i, kernels.BOUND])
        yield from clamped(_slot(machine, i), Number(-bound), Number(bound))


def _shifted(machine: MemoryMachine, leaf: int) -> Iterator[Statement]:
    """Yield the statements that shift the integrals of a leaf."""
    gains = machine.tracking.gains[leaf]
    for i in np.flatnonzero(gains.any(axis=1)).tolist():
        slot = _slot(machine, i)
        total: Expression = Name(slot)
        for gain, cut in zip(gains[i].tolist(), machine.names.cuts, strict=True):
            total = minus(total, times(Number(gain), Name(cut))) if gain else total
        yield Assign(slot, total)


def _slot(machine: MemoryMachine, i: int) -> str:
    """Return the first variable that a feature remembers."""
    first = kernels.LAST + 2 * len(machine.names.actions)
    return machine.names.memory[int(machine.controller.tables.table.places[i, kernels.SLOT]) - first]


def _newest_slots(machine: MemoryMachine, k: int) -> list[str]:
    """Return the variables of the newest value of an action among those that features remember."""
    table = machine.controller.tables.table
    chosen = (table.kind == kernels.LAST_ACTION) & (table.places[:, kernels.FIRST] == k)
    return [_slot(machine, i) for i in np.flatnonzero(chosen).tolist()]
