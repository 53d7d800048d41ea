"""Comments of exported files."""

from __future__ import annotations

import math
import textwrap
from importlib.metadata import version

from gymnasium.spaces import Discrete

from spaql.export.target_controller import Limits, MachineController
from spaql.formatting import counted
from spaql.policy import RuleTree


def heading(controller: MachineController, file: str) -> list[str]:
    """Return lines that say what a file is and where it comes from."""
    rules, guard = controller.rules, controller.limits
    safe = ", ".join(f"{x:g}" for x in controller.safe)
    cases = [] if controller.number.name == "fixed" else ["NaN"]
    cases += ["observations beyond their limits"] if guard is not None else []
    after = f", after {counted(guard.questions, 'question')} about limits" if guard is not None else ""
    lines = [
        f"{file}: {counted(rules.n_leaves, 'leaf')}, {counted(rules.depth, 'question')} at most{after}.",
        f"Written by spaql {version('spaql')} after an equivalence check. Do not edit: export it again.",
        *([""] if controller.provenance else []),
        *controller.provenance,
        *(["", f"For {' and '.join(cases)} the action is {safe}."] if cases else []),
        *([] if guard is None else _limits(guard, rules)),
    ]
    return [part for line in lines for part in (textwrap.wrap(line, 96) or [""])]


def _limits(guard: Limits, rules: RuleTree) -> list[str]:
    """Return lines with the limits of each observation, beyond which the safe action is taken."""
    lines = []
    for name, low, high in zip(rules.observations, guard.low, guard.high, strict=True):
        below, above = (
            f"below {low:.6g}" if low > -math.inf else "",
            f"above {high:.6g}" if high < math.inf else "",
        )
        lines.append(f"- {name}: {' or '.join(filter(None, [below, above])) or 'no limits'}")
    share = f"by {100 * guard.tolerance:g} % of its range on either side"
    if isinstance(rules.observation_space, Discrete):
        return ["Limits are the bounds of the observation:", *lines]
    return [f"Limits are the bounds of each observation, if it has two, moved outwards {share}:", *lines]


def name_of_action(controller: MachineController, label: str = "action[0]  ") -> list[str]:
    """Return lines that name the numbers of an action; `label` precedes the names of Discrete actions."""
    tree = controller.exact
    if not isinstance(tree.action_space, Discrete):
        return [f"action[{i}]  {name}" for i, name in enumerate(tree.actions)]
    first = int(tree.action_space.start)
    return [label + ", ".join(f"{first + i}: {name}" for i, name in enumerate(tree.actions))]
