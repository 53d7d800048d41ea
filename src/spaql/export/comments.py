"""Comments of exported files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from importlib.metadata import version

import numpy as np
from gymnasium.spaces import Discrete

from spaql.controllers.controller import VELOCITY, Controller
from spaql.controllers.feature_table import formulas
from spaql.controllers.features import Integral
from spaql.controllers.text import limits_text
from spaql.export.machine import Limits, Machine
from spaql.formatting import counted
from spaql.kernels.controller import LARGEST, LEFT


def heading(machine: Machine, file: str, manual: Sequence[str] = ()) -> list[str]:
    """Return lines that say what a file is, how the controller is used, and where it comes from.

    `manual` says how manual mode and tracking are used, in a target that has them.
    """
    lines = [
        f"{file}: {_size(machine)}.",
        f"Written by spaql {version('spaql')} after an equivalence check. Do not edit: export it again.",
        *([""] if machine.provenance else []),
        *machine.provenance,
        *_formulas(machine.controller),
        *(_with_memory(machine, manual) if machine.remembers else _without_memory(machine)),
    ]
    return [part for line in lines for part in (textwrap.wrap(line, 96) or [""])]


def _size(machine: Machine) -> str:
    controller = machine.controller
    leaves = counted(controller.n_leaves, "leaf")
    if controller.features:
        return f"{leaves} over {counted(len(controller.features), 'feature')}"
    return f"{leaves}, {counted(controller.depth, 'question')} at most"


def _formulas(controller: Controller) -> Iterator[str]:
    """Yield lines on the features."""
    if controller.features:
        names = (controller.observations, controller.components)
        yield from ("", *formulas(controller.features, *names, controller.sample_time or 1.0))


def _without_memory(machine: Machine) -> Iterator[str]:
    """Yield lines on invalid readings."""
    cases = [] if machine.number.name == "fixed" else ["NaN"]
    cases += ["observations beyond their limits"] if machine.limits is not None else []
    if cases:
        safe = ", ".join(f"{x:g}" for x in machine.safe or ())
        yield from ("", f"For {' and '.join(cases)} the action is {safe}.")
    if machine.limits is not None:
        yield from _limits(machine.limits, machine)


def _limits(guard: Limits, machine: Machine) -> Iterator[str]:
    """Yield lines with the limits of each observation, beyond which the safe action is taken."""
    moved = f"of each observation, if it has two, moved outwards by {100 * guard.tolerance:g} % of its range"
    listed = isinstance(machine.controller.observation_space, Discrete)
    yield f"Limits are the bounds {'of the observation' if listed else f'{moved} on either side'}:"
    for name, low, high in zip(machine.observations, guard.low, guard.high, strict=True):
        below = f"below {low:.6g}" if low > -math.inf else ""
        above = f"above {high:.6g}" if high < math.inf else ""
        yield f"- {name}: {' or '.join(filter(None, [below, above])) or 'no limits'}"


def _with_memory(machine: Machine, manual: Sequence[str]) -> Iterator[str]:
    controller = machine.controller
    yield from ("", *limits_text(controller), "")
    yield from _readings(machine, controller)
    yield from (
        (*manual, *_limits_of_tracking(machine, controller)) if manual else _by_hand(machine, controller)
    )


def _readings(machine: Machine, controller: Controller) -> Iterator[str]:
    """Yield lines on resets and invalid readings."""
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


def _limits_of_tracking(machine: Machine, controller: Controller) -> Iterator[str]:
    """Yield a line on actions whose laws have no integral that could follow another action."""
    if controller.form == VELOCITY:
        return
    leaves = controller.arrays.arrays.node[:, LEFT] < 0
    followed = np.abs(machine.tracking.gains[leaves]).max(axis=1, initial=0.0) > 0
    if some := [name for k, name in enumerate(controller.actions) if not followed[:, k].all()]:
        where = " in some leaves" if followed.any() else ""
        yield (
            f"{', '.join(some)}: no integral{where} can follow another action, so that automatic mode "
            "returns to the law at once, or as fast as the rate limit allows."
        )


def _by_hand(machine: Machine, controller: Controller) -> Iterator[str]:
    """Yield lines on manual mode in a target that has none."""
    kept = ", ".join([*machine.names.last, *machine.names.target])
    kept += ": its number from 0 on" if machine.discrete else ""
    yield (
        "Manual mode: go on calling it every sample, ignore its action, and then write the action that was "
        f"given by hand into the state ({kept})."
    )
    if controller.form == VELOCITY:
        yield "The first automatic action then starts from there (bumpless transfer)."
    elif machine.discrete:
        return
    elif integrals := [feature.name for feature in controller.features if isinstance(feature, Integral)]:
        yield (
            "The rate limit then starts from there. For bumpless transfer also set the memory of "
            f"{' or '.join(integrals)} so that the law equals the action given by hand: its value plus the "
            "difference of that action and the law, divided by its gain."
        )
    else:
        yield "The rate limit then starts from there."


def action_numbers(machine: Machine) -> str:
    """Return the numbers and names of discrete actions."""
    return ", ".join(f"{machine.first + k}: {name}" for k, name in enumerate(machine.actions))
