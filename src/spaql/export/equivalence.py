"""The equivalence check: exported code is run and compared with the policy before a file is written."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spaql.export.episodes import Compared, episodes
from spaql.export.language import Target
from spaql.export.machine import Machine, constant_actions
from spaql.export.running import EquivalenceError
from spaql.export.test_states import comparison_points
from spaql.kernels.numerics import Floats


@dataclass(frozen=True)
class Equivalence:
    """What was compared in an equivalence check that found no difference."""

    target: str
    number: str
    tool: str
    points: dict[str, int]
    """How many inputs of each kind were compared."""
    safe_action: tuple[float, ...]
    """Empty for the last action of a controller with memory."""
    limits: tuple[tuple[float, float], ...]
    """Lower and upper limit of each component of an observation, beyond which the safe action is taken; empty
    without a safe action."""
    tolerance: float | None
    """By how much the limits exceed the observation space on either side, as a share of each range."""
    leaves: int
    depth: int
    rounding: float
    """The largest change of a constant action by rounding to the number type."""
    files: dict[str, str]
    """SHA-256 of each file."""
    provenance: tuple[str, ...]
    seconds: float

    def to_json(self) -> str:
        """Return the record as JSON; infinite numbers are "inf" and "-inf"."""
        return json.dumps(_finite(asdict(self)), indent=2) + "\n"


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return repr(data) if isinstance(data, float) and not np.isfinite(data) else data


def comparisons(machine: Machine, points: int, *, manual: bool = False) -> Iterator[Compared]:
    """Yield samples to compare: of a controller with memory random episodes, of others single ones."""
    if machine.remembers:
        yield from episodes(machine, points, manual=manual)
        return
    for kind, inputs in comparison_points(machine, points):
        none = np.empty((len(inputs), 0))
        resets = np.zeros(len(inputs), np.bool_)
        yield Compared(resets, inputs, none, machine.wanted(inputs), none, {kind: len(inputs)})


def check_equivalence(
    target: Target,
    machine: Machine,
    files: Mapping[str, bytes],
    name: str,
    folder: Path,
    points: int,
) -> Equivalence:
    """Run files and compare them with the policy; raises `EquivalenceError` at the first difference.

    A difference is a component of an action, or of the state after a sample, that is not equal to the last
    bit.
    """
    began = time.perf_counter()
    play = target.load(machine, files, name, folder)
    counts: Counter[str] = Counter()
    manual = target.manual and machine.tracks
    for part in comparisons(machine, points, manual=manual):
        rows = [part.resets[..., np.newaxis], part.inputs, part.commands]
        played = play(np.concatenate([array.astype(np.float64) for array in rows], axis=-1))
        _compare(target, machine, part, played)
        counts.update(part.counts)
    controller = machine.controller
    guard = machine.limits
    return Equivalence(
        target=target.name,
        number=machine.number.name,
        tool=target.tool(),
        points=dict(counts),
        safe_action=machine.safe or (),
        limits=() if guard is None else tuple(zip(guard.low, guard.high, strict=True)),
        tolerance=None if guard is None else guard.tolerance,
        leaves=controller.n_leaves,
        depth=controller.depth,
        rounding=_rounding(machine),
        files={file: hashlib.sha256(content).hexdigest() for file, content in files.items()},
        provenance=machine.provenance,
        seconds=time.perf_counter() - began,
    )


def _compare(target: Target, machine: Machine, wanted: Compared, played: Floats) -> None:
    width = machine.width
    if played.shape != (*wanted.inputs.shape[:-1], width + wanted.states.shape[-1]):
        raise EquivalenceError(
            f"The exported {target.name} returned an array of the shape {played.shape} for observations of "
            f"the shape {wanted.inputs.shape}, so no file is written."
        )
    actions = played[..., :width]
    states = played[..., width:]
    wrong = (actions != wanted.actions).any(axis=-1) | (states != wanted.states).any(axis=-1)
    if not wrong.any():
        return
    at = tuple(int(place) for place in np.unravel_index(np.argmax(wrong), wrong.shape))
    kind = (
        f"at sample {at[-1]} of episode {at[0]}" if len(at) > 1 else f"among the {next(iter(wanted.counts))}"
    )
    question = f"for {wanted.inputs[at].tolist()}"
    if wanted.commands[at].any():
        question += f" and the commands {wanted.commands[at].tolist()}"
    policy, code = (f"{array[at].tolist()}" for array in (wanted.actions, actions))
    if machine.remembers:
        policy += f" and has the state {wanted.states[at].tolist()}"
        code += f" and {states[at].tolist()}"
    raise EquivalenceError(
        f"The exported {target.name} differs from the policy, so no file is written. The first difference is "
        f"{kind}: {question} the policy returns {policy}, and {target.name} {code}."
    )


def _rounding(machine: Machine) -> float:
    if machine.discrete or machine.remembers:
        return 0.0
    actions = constant_actions(machine.controller)
    return float(np.abs(machine.number.rounded(actions) - actions).max(initial=0.0))
