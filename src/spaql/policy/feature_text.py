"""Controllers with memory as text: formulas, rules and limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from spaql.kernels.controller import HIGH, LOW
from spaql.policy.feature_table import formulas
from spaql.policy.law_names import law_names
from spaql.policy.leaves import Constants, Laws
from spaql.policy.text import number_text, rule_lines, sum_text
from spaql.spaces import split_unit

if TYPE_CHECKING:
    from spaql.policy.feature_controller import FeatureController


def controller_text(controller: FeatureController, digits: int | None = None) -> str:
    """Return a controller with memory as text: its features, its rules and laws, and its limits.

    Parameters
    ----------
    controller
        The controller.
    digits
        Round the numbers of rules and laws to this many digits. By default each has as many as identify it.
    """
    tree = controller.tree
    rules = rule_lines(tree, tree.number_names(digits), digits, lambda node: _laws(controller, node, digits))
    sizes = (controller.observations, controller.actions, controller.sample_time)
    return "\n".join([*formulas(controller.features, *sizes), "", *rules, "", *limits_text(controller)])


def _laws(controller: FeatureController, node: int, digits: int | None) -> list[str]:
    """Return the laws of a leaf, a line for each number of the action."""
    tree, row = controller.tree, int(controller.tree.leaf[node])
    leaves, sign = tree.leaves, "=" if controller.form == "position" else "+="
    lines = []
    for i, name in enumerate(controller.actions):
        if isinstance(leaves, Laws):
            law = sum_text(leaves.gain[row, i], tree.observations, digits, float(leaves.offset[row, i]))
        else:
            assert isinstance(leaves, Constants)
            law = number_text(float(leaves.value[row, i]), digits)
        lines.append(f"{name} {sign} {law}")
    return lines


def limits_text(controller: FeatureController) -> Iterator[str]:
    """Yield lines about the limits of the action, hysteresis and the sample time, and the name of one law."""
    tree = controller.tree
    low, high = controller.frame.limit[[LOW, HIGH]]
    for i, name in enumerate(controller.actions):
        parts = [f"within {low[i]:g} and {high[i]:g}"]
        unit = split_unit(name)[1]
        if controller.rate_limit[i] < math.inf:
            per = f"{unit}/s" if unit else "per second"
            parts.append(f"changed by at most {controller.rate_limit[i]:g} {per}")
        if controller.dead_band[i] > 0:
            parts.append(f"not changed by less than {controller.dead_band[i]:g}")
        yield f"{name}: {', '.join(parts)}; from {controller.start[i]:g} at a reset"
    for j in np.flatnonzero(controller.hysteresis).tolist():
        margin, name = controller.hysteresis[j], tree.number_names(4)[j]
        yield f"Hysteresis: a leaf is left when {name} misses its condition by {margin:g} or more."
    yield f"A sample every {controller.sample_time:g} s."
    if tree.n_leaves == 1 and (names := law_names(controller)):
        yield f"One leaf: {'; '.join(names)}."
