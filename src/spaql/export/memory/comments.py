"""Comments of exported controllers with memory."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from importlib.metadata import version

import numpy as np

from spaql.export.memory.machine import MemoryMachine
from spaql.formatting import counted
from spaql.policy.feature_controller import LARGEST
from spaql.policy.feature_table import formulas
from spaql.policy.feature_text import limits_text
from spaql.policy.feature_tree import VELOCITY
from spaql.policy.features import Integral


def heading(machine: MemoryMachine, file: str, manual: Sequence[str] = ()) -> list[str]:
    """Return lines that say what a file is, how the controller is used, and where it comes from.

    `manual` says how manual mode and tracking are used, in a target that has them.
    """
    controller = machine.controller
    sizes = (controller.observations, controller.actions, controller.sample_time)
    size = counted(controller.n_leaves, "leaf")
    lines = [
        f"{file}: {size} over {counted(len(controller.features), 'feature')}.",
        f"Written by spaql {version('spaql')} after an equivalence check. Do not edit: export it again.",
        *([""] if machine.provenance else []),
        *machine.provenance,
        "",
        *formulas(controller.features, *sizes),
        "",
        *limits_text(controller),
        "",
        *_readings(machine),
        *([*manual, *_limits_of_tracking(machine)] if manual else _by_hand(machine)),
    ]
    return [part for line in lines for part in (textwrap.wrap(line, 96) or [""])]


def _readings(machine: MemoryMachine) -> Iterator[str]:
    """Yield lines on resets and invalid readings."""
    controller = machine.controller
    yield f"Reset it before the first sample, and act exactly every {controller.sample_time:g} s."
    if machine.safe is None:
        yield (
            f"A reading is invalid if it is NaN or beyond {LARGEST:g} in magnitude: then the last action is "
            "given again, and the state does not change."
        )
    else:
        pairs = zip(controller.observations, machine.ends, strict=True)
        ends = ", ".join(f"{name} outside {low:g} and {high:g}" for name, (low, high) in pairs)
        action = ", ".join(f"{x:g}" for x in machine.safe)
        yield f"A reading is invalid if it is NaN, or {ends}: then the action is {action}, which also counts "
        yield "as the last action, and the memory of the features does not change."


def _limits_of_tracking(machine: MemoryMachine) -> Iterator[str]:
    """Yield a line on actions whose laws have no integral that could follow another action."""
    controller = machine.controller
    if controller.form == VELOCITY:
        return
    followed = np.abs(machine.tracking.gains[controller.tables.left < 0]).max(axis=1) > 0
    if some := [name for k, name in enumerate(controller.actions) if not followed[:, k].all()]:
        where = " in some leaves" if followed.any() else ""
        yield (
            f"{', '.join(some)}: no integral{where} can follow another action, so that automatic mode "
            "returns to the law at once, or as fast as the rate limit allows."
        )


def _by_hand(machine: MemoryMachine) -> Iterator[str]:
    """Yield lines on manual mode in a target that has none."""
    controller, names = machine.controller, machine.names
    kept = ", ".join([*names.last, *names.target])
    yield (
        "Manual mode: go on calling it every sample, ignore its action, and then write the action that was "
        f"given by hand into the state ({kept})."
    )
    if controller.form == VELOCITY:
        yield "The first automatic action then starts from there (bumpless transfer)."
    elif integrals := [one.name for one in controller.features if isinstance(one, Integral)]:
        yield (
            "The rate limit then starts from there. For bumpless transfer also set the memory of "
            f"{' or '.join(integrals)} so that the law equals the action given by hand: its value plus the "
            "difference of that action and the law, divided by its gain."
        )
    else:
        yield "The rate limit then starts from there."
