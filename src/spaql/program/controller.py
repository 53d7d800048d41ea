"""The program of a controller: the kernel of `spaql.kernels.controller`, written out for its arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spaql.kernels import controller as kernels
from spaql.program.features import ANGLE_FLAGS, ANGLE_VARIABLES, FeatureWriter
from spaql.program.ir import (
    All,
    Assign,
    Compare,
    Condition,
    Flag,
    If,
    Name,
    Not,
    Note,
    Number,
    Program,
    SetFlag,
    Some,
    State,
    Statement,
    clamped,
)
from spaql.program.manual import manual_action
from spaql.program.rules import RuleWriter
from spaql.program.specification import Specification


def controller_program(spec: Specification) -> tuple[Program, dict[str, Program]]:
    """Return the program, and the parts of a large one by name, each before those that call it."""
    return _Writer(spec).written()


class _Writer:
    def __init__(self, spec: Specification) -> None:
        self._spec = spec
        self._names = spec.names
        self._arrays = spec.controller.arrays
        self._rules = RuleWriter(spec)
        self._features = FeatureWriter(spec, self._rules.gains)

    def written(self) -> tuple[Program, dict[str, Program]]:
        names = self._names
        spec = self._spec
        written = self._rules
        rules, subtrees = written.statements()
        body = (
            *_noted("The features.", list(self._features.statements())),
            *written.sums(),
            *(_noted("The rules and the laws.", rules) if spec.remembers else rules),
            *_noted("The limits of the action.", [s for k in spec.actions for s in self._limit(k)]),
            *_noted("The memory.", list(self._memory())),
        )
        invalid = tuple(self._invalid())
        main = Program(
            names.observations,
            names.actions,
            tuple(self._state()),
            (*names.features, *written.shared.values(), *self._numbers(), *written.further),
            tuple(self._flags()),
            (If(Some(invalid), tuple(self._fallback()), body),) if invalid else body,
            names.manual if spec.manual else (),
        )
        compared = (*names.x, *written.shared.values())
        parts = {
            name: Program(compared, written.outputs(), (), tuple(written.further), (), statements)
            for name, statements in subtrees
        }
        return main, parts

    def _numbers(self) -> Iterator[str]:
        names = self._names
        if self._rules.has_laws and not self._spec.discrete:
            yield from names.wishes
        if self._spec.remembers and not self._spec.discrete:
            yield from names.cuts
            yield from (names.gains[pair] for pair in self._rules.gains)
        if kernels.ANGLE in self._spec.kinds:
            yield from ANGLE_VARIABLES

    def _flags(self) -> Iterator[str]:
        if self._rules.gains:
            yield "waits"
        if len(self._arrays.margin):
            yield "keep"
        if kernels.ANGLE in self._spec.kinds:
            yield from ANGLE_FLAGS

    def _state(self) -> Iterator[State]:
        if not self._spec.remembers:
            return
        memory = self._spec.controller.new_memories(1)[0].tolist()
        names = self._names
        yield State("started", memory[kernels.COUNT], "flag", "whether a sample has been taken")
        yield State("leaf", memory[kernels.LEAF], "leaf", "of the last sample; -1 for none")
        kept = [*names.last, *names.target, *names.memory]
        for name, value, note in zip(kept, memory[kernels.LAST :], names.notes, strict=True):
            yield State(name, value, "real", note)
        for name, value in self._rules.adjusted.items():
            yield State(name, value, note="of the tree")

    def _invalid(self) -> Iterator[Condition]:
        number = self._spec.number
        for word, (low, high) in zip(self._names.observations, self._spec.ends, strict=True):
            x = Name(word)
            if low > -math.inf:
                yield Not(x >= number.up(low))
            if high < math.inf:
                beyond = number.up(math.nextafter(high, math.inf))
                exact = number.name == "double" or self._spec.remembers
                yield Not(x <= high if exact else x < beyond)
            if math.isinf(low) and math.isinf(high):
                yield Compare("!=", x, x)

    def _fallback(self) -> Iterator[Statement]:
        if not self._spec.remembers:
            yield Note("the safe action")
            yield from self._rules.constant_action(self._spec.safe or ())
            return
        yield Note("No valid reading: the memory of the features stays as it is.")
        automatic = tuple(self._without_reading())
        if not self._spec.manual:
            yield from automatic
            return
        names = self._names
        by_hand: list[Statement] = []
        for k in self._spec.actions:
            by_hand += [manual_action(names, k), *self._within_limits(k)]
            remembered = (names.actions[k], names.last[k], names.target[k])
            by_hand += [Assign(name, Name(names.wishes[k])) for name in remembered]
        yield If(Flag("manual"), tuple(by_hand), automatic)

    def _without_reading(self) -> Iterator[Statement]:
        names = self._names
        safe = self._spec.safe
        first = self._spec.first
        for k in self._spec.actions:
            action = names.actions[k]
            last = names.last[k]
            target = names.target[k]
            if safe is None:
                yield Assign(action, Name(last) + float(first) if first else Name(last))
                continue
            yield Assign(action, Number(safe[k]))
            yield from (Assign(name, Number(safe[k] - first)) for name in (last, target))

    def _limit(self, k: int) -> Iterator[Statement]:
        """Yield the statements that limit an action; what was cut off is then in `cut_...`."""
        if self._spec.discrete or not self._rules.has_laws:
            return
        names = self._names
        wish = self._names.wishes[k]
        action = self._names.actions[k]
        if not self._spec.remembers:
            safe = self._spec.safe or ()
            unknown: Condition = Compare("!=", Name(wish), Name(wish))
            yield If(unknown, (Assign(wish, Number(safe[k])),))
            yield from self._within_limits(k)
            yield Assign(action, Name(wish))
            return
        band = float(self._arrays.limit[kernels.DEAD_BAND, k])
        last = Name(names.last[k])
        cut = names.cuts[k]
        yield Assign(cut, Name(wish))
        # NaN is neither at most nor above anything; here GCC makes more of this than of x != x.
        unknown = Not(Some((Name(wish) <= 0.0, Name(wish) > 0.0)))
        yield If(unknown, (Assign(wish, last),))
        if self._spec.manual:
            yield If(Flag("manual"), (manual_action(names, k),))
        yield from self._within_limits(k)
        yield Assign(cut, Name(cut) - Name(wish))
        yield Assign(action, Name(wish))
        if band > 0.0:
            sides = (Name(wish) - last, last - Name(wish))
            small: list[Condition] = [side < band for side in sides]
            small += [Not(Flag("manual"))] if self._spec.manual else []
            yield If(All(tuple(small)), (Assign(action, last),))

    def _within_limits(self, k: int) -> Iterator[Statement]:
        """Yield the statements that bring what is asked for into the rate limit and the range."""
        limit = self._arrays.limit
        wish = self._names.wishes[k]
        rate = float(limit[kernels.RATE, k])
        if rate < math.inf:
            last = Name(self._names.last[k])
            yield from clamped(wish, last - rate, last + rate)
        ends = (float(limit[row, k]) for row in (kernels.LOW, kernels.HIGH))
        yield from clamped(wish, *(None if math.isinf(end) else Number(end) for end in ends))

    def _memory(self) -> Iterator[Statement]:
        if not self._spec.remembers:
            return
        names = self._names
        yield from self._features.updates()
        targets = [Name(name) for name in names.wishes] or self._spec.given
        yield from (Assign(name, x) for name, x in zip(names.last, self._spec.given, strict=True))
        yield from (Assign(name, x) for name, x in zip(names.target, targets, strict=True))
        yield SetFlag("started", True)


def _noted(note: str, statements: Sequence[Statement]) -> tuple[Statement, ...]:
    return (Note(note), *statements) if statements else ()
