"""The rules and laws of a controller in its program."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spaql.kernels import controller as kernels
from spaql.languages import identifiers
from spaql.program.ir import (
    All,
    Assign,
    Call,
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
    SetFlag,
    SetLeaf,
    Statement,
    expression,
    weighted,
)
from spaql.program.specification import Specification

RULES_UP_TO = 256
"""Leaves up to which rules are written as nested conditions in one function."""
LARGEST = 1.7976931348623157e308
Statements = tuple[Statement, ...]
Terms = tuple[tuple[int, float], ...]
"""Columns and weights of a sum, in their order."""


def adjustable_name(node: int, k: int, j: int) -> str:
    """Return the variable of a parameter: of a node, a component of the action, and 0 or 1 + a column.

    No other name has its sign, which JavaScript allows.

    Examples
    --------
    >>> adjustable_name(2, 0, 1)
    'tree$2_0_1'
    """
    return f"tree${node}_{k}_{j}"


class RuleWriter:
    """From what rules read to what laws ask for, or to a discrete action."""

    def __init__(self, spec: Specification) -> None:
        self._spec = spec
        self._names = spec.names
        self._arrays, self._numbers = spec.controller
        self._outputs = int(self._arrays.shape[kernels.OUTPUTS])
        node = self._arrays.node
        self._reached = self._reach()
        self._leaves = [i for i in self._reached if node[i, kernels.LEFT] < 0]
        rows = [self._row(leaf) + k for leaf in self._leaves for k in range(self._outputs)]
        self.has_laws = spec.remembers or any(self._terms(row) for row in rows)
        n = len(self._names.observations)
        # An integral that has no gain for a component of the action in any leaf does not wait for it.
        self.gains = [
            (i, k)
            for i in spec.integrals
            for k in range(len(spec.names.wishes))
            if any(n + i in dict(self._terms(self._row(leaf) + k)) for leaf in self._leaves)
        ]
        """The integrals that have a gain in some leaf, each with the component of the action."""
        self.adjusted: dict[str, float] = {}
        """The parameters that are variables of the state; see `adjustable_name`."""
        self.further: list[str] = []
        """Variables besides those of features, laws and limits."""
        self.shared: dict[Terms, str] = {}
        """The variables of sums that are computed first."""
        self._share_sums()

    def _fresh(self, word: str) -> str:
        """Return a name like a word that no observation or action has."""
        names = self._names
        return identifiers([word], " ".join((*names.x, *names.actions, *names.wishes)))[0]

    def sums(self) -> Iterator[Statement]:
        """Yield the statements of sums that are computed first."""
        for terms, word in self.shared.items():
            yield Assign(word, self._sum_of(terms))

    def constant_action(self, action: Sequence[float]) -> Iterator[Statement]:
        """Yield the statements of a constant action."""
        for word, x in zip(self._names.actions, action, strict=True):
            yield Assign(word, Number(self._spec.number.value(x)))

    def _terms(self, row: int) -> Terms:
        """Return the columns and weights of a row, in their order."""
        first, last = self._arrays.span[row : row + 2].tolist()
        pair = zip(
            self._arrays.term[first:last].tolist(), self._numbers.weight[first:last].tolist(), strict=True
        )
        return tuple(pair)

    def _row(self, node: int) -> int:
        return int(self._arrays.node[node, kernels.ROW])

    def _inner(self) -> list[int]:
        return [i for i in self._reached if self._arrays.node[i, kernels.LEFT] >= 0]

    def _reach(self) -> list[int]:
        """Return the nodes that can be reached, each after its parents, without rules that have no choice."""
        node = self._arrays.node
        reached = {self._followed(int(self._arrays.root[0]))}
        for i in range(min(reached), len(node)):  # children come after their parents
            if i in reached and node[i, kernels.LEFT] >= 0:
                reached |= {self._followed(int(node[i, side])) for side in (kernels.LEFT, kernels.RIGHT)}
        return sorted(reached)

    def _followed(self, node: int) -> int:
        """Return the first node from a node on that is a leaf, or a rule with a choice."""
        while self._arrays.node[node, kernels.LEFT] >= 0 and self._threshold(node) == -math.inf:
            node = int(self._arrays.node[node, kernels.RIGHT])  # nothing is below it
        return node

    def _share_sums(self) -> None:
        """Give a variable to each sum that several rules compare."""
        if self._spec.columns is not None:
            return
        counts: dict[Terms, int] = {}
        for node in self._inner():
            if self._arrays.node[node, kernels.COLUMN] < 0:
                terms = self._terms(self._row(node))
                counts[terms] = counts.get(terms, 0) + 1
        for terms, n in counts.items():
            if n > 1:
                self.shared[terms] = self._fresh(f"sum_{len(self.shared) + 1}")

    def _sum_of(self, terms: Terms, start: float = 0.0) -> Expression:
        return weighted([w for _, w in terms], [self._names.x[j] for j, _ in terms], start)

    def _parameter(self, node: int, k: int, j: int, constant: float) -> float | Name:
        """Return a parameter: a constant, or a variable of the state where it can be adjusted."""
        if self._spec.columns is None:
            return constant
        self.adjusted[adjustable_name(node, k, j)] = constant
        return Name(adjustable_name(node, k, j))

    def _weighted(self, node: int, k: int, start: float | Name = 0.0) -> Expression:
        """Return the sum of a row of a node, from a number on."""
        terms = self._terms(self._row(node) + k)
        if self._spec.columns is None:
            if start == 0.0 and k == 0 and terms in self.shared:
                return Name(self.shared[terms])
            assert isinstance(start, float)
            return self._sum_of(terms, start)
        weights: list[float | Name] = []
        places = iter(enumerate(self._spec.columns))
        for column, weight in terms:
            j = next(place for place, other in places if other == column)
            weights.append(self._parameter(node, k, 1 + j, weight))
        return weighted(weights, [self._names.x[column] for column, _ in terms], start)

    def _compared(self, node: int) -> Expression:
        """Return what a rule compares."""
        column = int(self._arrays.node[node, kernels.COLUMN])
        if column >= 0 and self._spec.columns is None:
            return Name(self._names.x[column])
        return self._weighted(node, 0)

    def _threshold(self, node: int) -> float:
        """Return the threshold of a rule, as the program has it."""
        constant = float(self._numbers.constant[self._row(node)])
        column = int(self._arrays.node[node, kernels.COLUMN])
        if self._spec.remembers or not 0 <= column < len(self._names.observations):
            return constant
        if math.isinf(constant):
            return constant
        return self._spec.number.up(constant)

    def _below(self, node: int, *, below: bool = True, margin: float = 0.0) -> Condition:
        """Return whether what a rule compares is below its threshold and a margin, or whether it is not."""
        threshold = self._threshold(node)
        compared = self._compared(node)
        if threshold == math.inf:
            less = "<="
            more = ">"
            end: Expression = Number(LARGEST)
        else:
            bound = self._parameter(node, 0, 0, threshold)
            less = "<"
            more = ">="
            if isinstance(bound, Name) and margin:
                end = bound + margin
            else:
                end = bound if isinstance(bound, Name) else Number(bound + margin)
        if below:
            return Compare(less, compared, end)
        plain = isinstance(compared, Name) and compared.name in self._names.observations
        return Compare(more, compared, end) if plain else Not(Compare(less, compared, end))  # it may be NaN

    def statements(self) -> tuple[Statements, list[tuple[str, Statements]]]:
        """Return the statements that lead to a leaf and its laws, and the parts of a large tree."""
        if len(self._arrays.margin):
            return tuple(self._with_hysteresis()), []
        return self._nested(laws=True)

    def _with_hysteresis(self) -> Iterator[Statement]:
        yield Note("Hysteresis: the last leaf is kept while its conditions are missed by less than a margin.")
        yield SetFlag("keep", False)
        kept: Statements = ()
        for leaf in reversed(self._leaves):
            kept = (If(IsLeaf(leaf), (self._kept(leaf),), kept),)
        yield from kept
        yield If(Not(Flag("keep")), self._nested(laws=False)[0])
        *others, last = self._leaves
        laws = tuple(self._leaf(last))
        for leaf in reversed(others):
            laws = (If(IsLeaf(leaf), tuple(self._leaf(leaf)), laws),)
        yield from laws

    def _kept(self, leaf: int) -> Statement:
        """Return the statement that sets whether a leaf is kept."""
        conditions: list[Condition] = []
        node = leaf
        while (parent := int(self._arrays.node[node, kernels.PARENT])) >= 0:
            below = int(self._arrays.node[parent, kernels.LEFT]) == node
            node = parent
            if self._threshold(parent) == -math.inf:  # nothing is below it
                if below:
                    return SetFlag("keep", False)
                continue
            margin = float(self._arrays.margin[parent])
            test = self._below(parent, margin=margin if below else -margin)
            conditions.append(test if below else Not(test))
        return SetFlag("keep", All(tuple(conditions)) if conditions else True)

    def _nested(self, *, laws: bool) -> tuple[Statements, list[tuple[str, Statements]]]:
        """Return nested conditions, and parts of a limited number of leaves.

        The child with fewer leaves stands under the condition, so that conditions are never nested deeper
        than the logarithm of the number of leaves.
        """
        node = self._arrays.node
        several = self._spec.parts and not self._spec.remembers
        statements: dict[int, Statements] = {}
        size: dict[int, int] = {}
        parts: list[tuple[str, Statements]] = []
        for i in reversed(self._reached):
            if node[i, kernels.LEFT] < 0:
                statements[i] = (SetLeaf(i),) if self._spec.remembers else ()
                statements[i] += tuple(self._leaf(i)) if laws else ()
                size[i] = 1
                continue
            left, right = (self._followed(int(node[i, side])) for side in (kernels.LEFT, kernels.RIGHT))
            while several and size[left] + size[right] > RULES_UP_TO:
                large = left if size[left] >= size[right] else right
                name = self._fresh(f"part_{len(parts) + 1}")
                parts.append((name, statements[large]))
                statements[large] = (Call(name, (*self._names.x, *self.shared.values()), self.outputs()),)
                size[large] = 1
            size[i] = size[left] + size[right]
            below = size[left] <= size[right]
            then, otherwise = (left, right) if below else (right, left)
            statements[i] = (If(self._below(i, below=below), statements[then], statements[otherwise]),)
        return statements[self._reached[0]], parts

    def outputs(self) -> tuple[str, ...]:
        """Return the variables that a leaf sets."""
        return self._names.wishes if self.has_laws and not self._spec.discrete else self._names.actions

    def _leaf(self, leaf: int) -> Iterator[Statement]:
        if self._spec.discrete:
            yield from self._choice(leaf)
            return
        names = self._names
        for k in self._spec.actions:
            constant = float(self._numbers.constant[self._row(leaf) + k])
            if not self.has_laws:
                yield Assign(names.actions[k], Number(self._constant(k, constant)))
                continue
            law = self._weighted_law(leaf, k, constant)
            velocity = self._arrays.shape[kernels.VELOCITY]
            yield Assign(names.wishes[k], Name(names.target[k]) + law if velocity else law)
        n = len(names.observations)
        for i, k in self.gains:
            yield Assign(names.gains[i, k], self._gain(leaf, k, n + i))

    def _constant(self, k: int, x: float) -> float:
        """Return a constant within the range of the action, as the program has it."""
        low, high = self._arrays.limit[[kernels.LOW, kernels.HIGH], k].tolist()
        return self._spec.number.value(min(max(x, low), high))

    def _weighted_law(self, leaf: int, k: int, constant: float) -> Expression:
        start = self._parameter(leaf, k, 0, constant)
        if self._spec.columns is None:
            return self._sum_of(self._terms(self._row(leaf) + k), constant)
        return self._weighted(leaf, k, start)

    def _gain(self, leaf: int, k: int, column: int) -> Expression:
        """Return the gain of a column in a law, 0 for none."""
        weight = dict(self._terms(self._row(leaf) + k)).get(column, 0.0)
        if not weight or self._spec.columns is None:
            return Number(weight)
        return expression(self._parameter(leaf, k, 1 + list(self._spec.columns).index(column), weight))

    def _taken(self, leaf: int) -> list[tuple[int, float, Terms]]:
        """Return the discrete actions of a leaf, each with the constant and the terms of its score."""
        row = self._row(leaf)
        constants = self._numbers.constant[row : row + self._outputs].tolist()
        return [(k, c, self._terms(row + k)) for k, c in enumerate(constants) if c > -math.inf]

    def _constant_choice(self, leaf: int) -> int | None:
        """Return the discrete action that a leaf always takes, if there is one."""
        taken = self._taken(leaf)
        if any(terms for _, _, terms in taken):
            return None
        winning = [(constant, -k) for k, constant, _ in taken if constant > kernels.LOWEST_SCORE]
        return -max(winning)[1] if winning else 0

    def _choice(self, leaf: int) -> Iterator[Statement]:
        if (only := self._constant_choice(leaf)) is not None:
            yield from self._chosen(only)
            return
        scores = [(k, self._sum_of(terms, constant)) for k, constant, terms in self._taken(leaf)]
        yield from self._highest(scores)

    def _chosen(self, k: int) -> Iterator[Statement]:
        if self._names.choices:
            yield Note(self._names.choices[k])
        yield from self.constant_action([float(self._spec.first + k)])

    def _highest(self, scores: Sequence[tuple[int, Expression]]) -> Iterator[Statement]:
        """Yield the statements that choose the first of the highest scores."""
        self._use("best", "score")
        yield Assign("best", Number(kernels.LOWEST_SCORE))
        yield from self._chosen(0)
        for k, value in scores:
            yield Assign("score", value)
            yield If(Name("score") > Name("best"), (Assign("best", Name("score")), *self._chosen(k)))

    def _use(self, *words: str) -> None:
        self.further += [word for word in words if word not in self.further]
