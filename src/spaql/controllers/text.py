"""Controllers as text: features, if-then rules with laws, and limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.feature_table import formulas
from spaql.controllers.law_names import law_names
from spaql.controllers.mirrored import folded
from spaql.controllers.wording import (
    number_text,
    rule_lines,
    sum_text,
    values_text,
    weighted_text,
)
from spaql.formatting import exact
from spaql.kernels.controller import HIGH, LOW
from spaql.spaces import split_unit

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller


def text(tree: Controller, digits: int | None = None, *, numbered: bool = False) -> str:
    """Return a controller as text: its features, its rules and laws, and with memory its limits.

    Parameters
    ----------
    tree
        The controller; shared subtrees are written at every place. One that is its own mirror image is
        written for one half only (see `mirrored.folded`).
    digits
        Round numbers to this many digits. By default each has as many as identify it, so that the text is
        exact; only numbers below 1e-300 in magnitude are written as 0.
    numbered
        Write the number of each leaf and of each rule after it, from 1 on; of a controller that is its own
        mirror image, those of the half that is written.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("pendulum", seed=0).learn(iterations=10, progress_bar=False)
    >>> print(text(spaql.controller_of(agent), digits=3).splitlines()[0])
    if sin(angle) < 0.5:
    """
    names = (tree.observations, tree.components)
    lines = [*formulas(tree.features, *names, tree.sample_time or 1.0), ""] if tree.features else []
    lines += rules_text(tree, digits, numbered=numbered)
    if tree.remembers:
        lines += ["", *limits_text(tree, digits)]
    return "\n".join(lines)


def rules_text(tree: Controller, digits: int | None = None, *, numbered: bool = False) -> list[str]:
    """Return the lines of the rules and laws of a controller (see `text`)."""
    if (fold := folded(tree)) is not None:
        return [fold.heading, *(f"    {line}" for line in _lines(fold.half, digits, numbered=numbered))]
    return list(_lines(tree, digits, numbered=numbered))


def _lines(tree: Controller, digits: int | None, *, numbered: bool) -> Iterator[str]:
    """Return the lines of all rules of a tree."""
    leaves = count(1)
    rules = count(1)

    def leaf(node: int) -> list[str]:
        remark = f"  # leaf {next(leaves)}" if numbered else ""
        row = int(tree.leaf[node])
        if tree.remembers and not tree.discrete:
            *first, last = _sampled_laws(tree, row, digits)
            return [*first, last + remark]
        return [leaf_text(tree, row, digits) + remark]

    def remark() -> str:
        return f"  # rule {next(rules)}" if numbered else ""

    return rule_lines(tree, tree.number_names(digits), digits, leaf, remark)


def _sampled_laws(tree: Controller, row: int, digits: int | None) -> list[str]:
    """Return a law of a controller whose limits are written apart, a line for each component."""
    sign = "=" if tree.form == "position" else "+="
    lines = []
    for i, name in enumerate(tree.actions):
        law = sum_text(tree.laws.gain[row, i], tree.inputs, digits, float(tree.laws.offset[row, i]))
        lines.append(f"{name} {sign} {law}")
    return lines


def limits_text(controller: Controller, digits: int | None = None) -> Iterator[str]:
    """Yield lines about the limits of the action, hysteresis and the sample time, and the name of one law."""
    low, high = controller.frame.limit[[LOW, HIGH]].tolist()
    for i, name in enumerate(controller.actions if not controller.discrete else ()):
        parts = [f"within {low[i]:g} and {high[i]:g}"]
        unit = split_unit(name)[1]
        if controller.rate_limit[i] < math.inf:
            per = f"{unit}/s" if unit else "per second"
            parts.append(f"changed by at most {exact(controller.rate_limit[i])} {per}")
        if controller.dead_band[i] > 0:
            parts.append(f"not changed by less than {exact(controller.dead_band[i])}")
        yield f"{name}: {', '.join(parts)}; from {exact(controller.start[i])} at a reset"
    if controller.discrete:
        first = controller.actions[int(controller.start[0]) - controller.frame.first]
        yield f"Before the first sample the action counts as {first}."
    for name, margin in zip(controller.number_names(digits), controller.hysteresis, strict=True):
        if margin:
            yield f"Hysteresis: a leaf is left when {name} misses its condition by {exact(margin)} or more."
    assert controller.sample_time is not None
    yield f"A sample every {exact(controller.sample_time)} s."
    if controller.n_leaves == 1 and (names := law_names(controller)):
        yield f"# {'; '.join(names)}"


def leaf_text(tree: Controller, row: int, digits: int | None = None, names: Sequence[str] = ()) -> str:
    """Return a law as text, given its row in the table: the action if it is constant.

    Scores of discrete actions are written with other names of the inputs, if some are given.
    """
    if (action := tree.constant_action(row)) is not None:
        if tree.discrete:
            return tree.actions[int(action[0]) - tree.frame.first]
        if not tree.remembers:
            return values_text(tree.actions, action, digits)
    if tree.discrete:
        return _scores_text(tree, row, digits, names or tree.inputs)
    if tree.remembers:
        return ", ".join(_sampled_laws(tree, row, digits))
    low, high = tree.frame.limit[[LOW, HIGH]]
    laws = []
    for i, name in enumerate(tree.actions):
        offset = number_text(float(tree.laws.offset[row, i]), digits)
        sum_ = weighted_text(offset, tree.laws.gain[row, i], tree.inputs, digits, ones=True)
        bounds = (number_text(float(bound[i]), digits) for bound in (low, high))
        laws.append(f"{name} = clip({sum_}, {', '.join(bounds)})")
    return ", ".join(laws)


def _scores_text(tree: Controller, row: int, digits: int | None, inputs: Sequence[str]) -> str:
    """Return a law for discrete actions as text: of two actions a condition, of more the score of each."""
    taken = np.flatnonzero(tree.laws.taken[row]).tolist()
    names = [tree.actions[i] for i in taken]
    gain = tree.laws.gain[row, taken]
    offset = tree.laws.offset[row, taken]
    if len(taken) == 2:
        return f"{names[1]} if {_condition(gain, offset, inputs, digits)} else {names[0]}"
    scores = [
        sum_text(weights, inputs, digits, constant) for weights, constant in zip(gain, offset, strict=True)
    ]
    return f"highest of {', '.join(f'{name}: {score}' for name, score in zip(names, scores, strict=True))}"


def _condition(
    gain: NDArray[np.float64], offset: NDArray[np.float64], names: Sequence[str], digits: int | None
) -> str:
    """Return the condition on which the second of two scores is higher, as text."""
    if digits is not None:
        # Differences are easier to read, but have rounding errors of their own: exact text has both scores.
        weights = gain[1] - gain[0]
        constant = offset[0] - offset[1]
        if weights.any() and weights[weights != 0.0][0] < 0.0:
            return f"{sum_text(-weights, names, digits)} < {number_text(float(-constant), digits)}"
        return f"{sum_text(weights, names, digits)} > {number_text(float(constant), digits)}"
    first, second = (sum_text(gain[i], names, digits, offset[i]) for i in (0, 1))
    # A score without gains is on the right.
    return f"{second} > {first}" if gain[1].any() or not gain[0].any() else f"{first} < {second}"
