"""Words for people in exported files."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Sequence
from importlib.metadata import version

from gymnasium.spaces import Discrete

from spaql.export.machine import MachineController
from spaql.words import counted


def heading(controller: MachineController, file: str) -> list[str]:
    """Say what a file is and where it comes from, as plain lines."""
    tree = controller.exact
    safe = ", ".join(f"{x:g}" for x in controller.safe)
    cases = [] if controller.number.name == "fixed" else ["NaN"]  # which whole numbers do not have
    cases += ["observations beyond their bounds"] if controller.guarded else []
    lines = [
        f"{file}: {counted(tree.n_leaves, 'leaf')}, {counted(tree.depth, 'question')} at most.",
        f"Written by spaql {version('spaql')}. Do not edit: export it again, so that it is proven again.",
        *([""] if controller.provenance else []),
        *controller.provenance,
        *(["", f"For {' and '.join(cases)} the action is {safe}."] if cases else []),
    ]
    return [part for line in lines for part in (textwrap.wrap(line, 96) or [""])]


def name_of_action(controller: MachineController, label: str = "action[0]  ") -> list[str]:
    """Say what the numbers of an action are; the label is for the number of one of a list."""
    tree = controller.exact
    if not isinstance(tree.action_space, Discrete):
        return [f"action[{i}]  {name}" for i, name in enumerate(tree.actions)]
    first = int(tree.action_space.start)
    return [label + ", ".join(f"{first + i}: {name}" for i, name in enumerate(tree.actions))]


def identifiers(names: Sequence[str], reserved: str = "") -> tuple[str, ...]:
    """Make different identifiers from names for people; units and signs become underscores.

    None of them is a word of Python, or one of the reserved ones, which are given in one string.

    Examples
    --------
    >>> identifiers(["pole angle [rad]", "cos(angle)", "2nd", "pole-angle rad"])
    ('pole_angle_rad', 'cos_angle', 'x2_2nd', 'x3_pole_angle_rad')
    """
    taken = {*reserved.split(), *map(str.lower, keyword.kwlist)}
    made: list[str] = []
    for i, name in enumerate(names):
        word = re.sub(r"[^0-9a-zA-Z]+", "_", name).strip("_").lower()[:40].rstrip("_")
        if not word or word[0].isdigit() or word in taken:
            word = f"x{i}_{word}".rstrip("_")
        while word in taken:
            word += "_"
        taken.add(word)
        made.append(word)
    return tuple(made)
