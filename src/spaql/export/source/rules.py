"""Rule trees as programs in the small language of `spaql.export.memory.program`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete

from spaql.export.conditions import RULES_UP_TO
from spaql.export.memory.program import (
    Assign,
    Call,
    Compare,
    Condition,
    If,
    Name,
    Not,
    Note,
    Number,
    Program,
    Some,
    Statement,
    weighted,
)
from spaql.export.target_controller import MachineController
from spaql.languages import identifiers
from spaql.policy import Laws

_LARGEST = 1.7976931348623157e308
_RESERVED = "action observation state self controller act best u float"


@dataclass(frozen=True)
class RuleProgram:
    """A rule tree as a program; the subtrees of a large one are functions of their own."""

    main: Program
    parts: dict[str, Program]
    """By name, each before those that call it; their inputs are all numbers that rules compare."""


def rule_program(controller: MachineController) -> RuleProgram:
    """Return the program of a controller without memory."""
    return _Builder(controller).program()


class _Builder:
    def __init__(self, controller: MachineController) -> None:
        self._controller, self._tree = controller, controller.tree
        tree = self._tree
        self._inputs = identifiers(tree.observations, _RESERVED)
        taken = " ".join([_RESERVED, *self._inputs])
        discrete = isinstance(tree.action_space, Discrete)
        self._outputs = identifiers(["chosen"] if discrete else tree.actions, taken)
        sums = [f"sum_{i}" for i in range(len(tree.combinations))]
        self._sums = identifiers(sums, " ".join([taken, *self._outputs]))

    def program(self) -> RuleProgram:
        tree, own = self._tree, list(self._numbers())
        root, parts = self._rules()
        unknown = Some(tuple(Compare("!=", Name(name), Name(name)) for name in self._inputs))
        sums = (
            Assign(name, weighted(weights.tolist(), self._inputs))
            for name, weights in zip(self._sums, tree.combinations, strict=True)
        )
        body = If(unknown, (Note("the safe action"), *self._said(self._controller.safe)), (*sums, *root))
        main = Program(self._inputs, self._outputs, (), (*self._sums, *own), (), (body,))
        made = {
            name: Program(self._compared, self._outputs, (), tuple(own), (), part) for name, part in parts
        }
        return RuleProgram(main, made)

    @property
    def _compared(self) -> tuple[str, ...]:
        return (*self._inputs, *self._sums)

    def _numbers(self) -> Iterator[str]:
        """Yield the names of further variables that leaves need."""
        if isinstance(self._tree.leaves, Laws) or self._controller.switches:
            yield "u"
        if self._controller.switches:
            yield "best"

    def _rules(self) -> tuple[tuple[Statement, ...], list[tuple[str, tuple[Statement, ...]]]]:
        """Return the statements of the root, and those of parts of a limited number of leaves.

        The child with fewer leaves stands under the condition, so that conditions are never nested deeper
        than the logarithm of the number of leaves.
        """
        tree, n = self._tree, self._tree.n_nodes
        made: list[tuple[Statement, ...]] = [()] * n
        size, parts = [1] * n, list[tuple[str, tuple[Statement, ...]]]()
        for i in range(n - 1, -1, -1):
            if tree.feature[i] < 0:
                made[i] = tuple(self._leaf(int(tree.leaf[i])))
                continue
            left, right = int(tree.left[i]), int(tree.right[i])
            while size[left] + size[right] > RULES_UP_TO:
                large = left if size[left] >= size[right] else right
                name = f"part_{len(parts) + 1}"
                parts.append((name, made[large]))
                made[large], size[large] = (Call(name, self._compared),), 1
            size[i] = size[left] + size[right]
            below = size[left] <= size[right]
            test = self._test(int(tree.feature[i]), float(tree.threshold[i]), below=below)
            made[i] = (If(test, made[left], made[right]) if below else If(test, made[right], made[left]),)
        return made[0], parts

    def _test(self, j: int, t: float, *, below: bool) -> Condition:
        """Return whether a number is below a threshold, or whether it is not."""
        less, more, end = ("<=", ">", _LARGEST) if t == math.inf else ("<", ">=", t)
        number = Name(self._compared[j])
        if j >= self._tree.dims and not below:  # a sum may be NaN
            return Not(Compare(less, number, Number(end)))
        return Compare(less if below else more, number, Number(end))

    def _said(self, values: Sequence[float]) -> Iterator[Statement]:
        yield from (Assign(name, Number(x)) for name, x in zip(self._outputs, values, strict=True))

    def _leaf(self, row: int) -> Iterator[Statement]:
        controller, laws = self._controller, self._tree.leaves
        if isinstance(laws, Laws):
            for i in range(controller.n_actions):
                yield from self._law(laws, row, i)
        elif controller.scores(row):
            yield from self._switching_law(row)
        else:
            if note := controller.leaf_name(row):
                yield Note(note)
            yield from self._said(controller.leaf_value(row))

    def _law(self, laws: Laws, row: int, i: int) -> Iterator[Statement]:
        """Yield the statements of a law: its result cut to its bounds, the safe action if it is NaN."""
        u, low, high = Name("u"), Number(float(laws.low[i])), Number(float(laws.high[i]))
        if not laws.gain[row, i].any():
            constant = min(max(float(laws.offset[row, i]), low.value), high.value)
            yield Assign(self._outputs[i], Number(constant))
            return
        yield Assign("u", weighted(laws.gain[row, i].tolist(), self._inputs, float(laws.offset[row, i])))
        above = If(Compare(">", u, high), (Assign("u", high),))
        below = If(Compare("<", u, low), (Assign("u", low),), (above,))
        safe = Number(float(self._controller.safe[i]))
        yield If(Compare("!=", u, u), (Assign("u", safe),), (below,))
        yield Assign(self._outputs[i], u)

    def _switching_law(self, row: int) -> Iterator[Statement]:
        """Yield the statements of a switching law, without -infinity.

        The best score so far is replaced by a higher one, and by any other if it is NaN. If it is NaN or
        -infinity at the end, no score was more.
        """
        controller, (output,) = self._controller, self._outputs
        u, best = Name("u"), Name("best")
        unknown = Compare("!=", best, best)
        first, *others = controller.scores(row)
        yield Assign("best", weighted(first[2].tolist(), self._inputs, first[1]))
        yield Note(controller.action_name(first[0]))
        yield Assign(output, Number(float(first[0])))
        for number, offset, gain in others:
            yield Assign("u", weighted(np.asarray(gain).tolist(), self._inputs, offset))
            chosen = (
                Note(controller.action_name(number)),
                Assign("best", u),
                Assign(output, Number(float(number))),
            )
            yield If(Some((Compare(">", u, best), unknown)), chosen)
        default = Assign(output, Number(float(self._tree.default_action[0])))
        yield If(Some((Compare("<", best, Number(-_LARGEST)), unknown)), (default,))
