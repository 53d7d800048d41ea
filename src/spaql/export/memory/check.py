"""The equivalence check of controllers with memory: action and state at every sample of random episodes."""

from __future__ import annotations

import hashlib
import math
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.export.equivalence import Equivalence, EquivalenceError
from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.operator import Operator
from spaql.export.trace import MemoryTrace
from spaql.kernels.controller import LAST, LEAF, Floats
from spaql.spaces import unbounded

Bools = NDArray[np.bool_]
Run = Callable[[Bools, NDArray[Any]], tuple[Floats, Floats]]
"""From resets (samples × episodes) and inputs (samples × episodes × numbers) to actions and states. In the
inputs of a target with manual mode, those of `Episodes.commands` follow the observation."""
_SIDE_BY_SIDE, _LENGTH = 1000, 1000
_RESETS, _BOUNDARIES, _SPECIAL = 0.01, 0.2, 0.03
"""Shares of the episodes in a sample: after a reset, near a boundary, and with a special value."""
_BISECT_EVERY = 10
"""Boundaries are looked for in one of so many samples, in many episodes at once."""


class MemoryTarget(ABC):
    """A language or format: how a controller with memory is written in it, and how the files are run."""

    name: str
    suffix: str
    manual = False
    """Whether the files have manual mode and tracking."""

    @abstractmethod
    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""

    @abstractmethod
    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Prepare the files in an empty folder; returns the function that plays episodes."""

    @abstractmethod
    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""

    def trace(self, machine: MemoryMachine, name: str) -> MemoryTrace | None:
        """Return the trace of the equivalence check to write beside the files; None for none."""
        return None


class Episodes(NamedTuple):
    """Episodes side by side, and what the controller does in them: samples × episodes × numbers."""

    resets: Bools
    inputs: NDArray[Any]
    commands: NDArray[Any]
    """1 for manual mode, the actions given by hand, 1 if applied actions are tracked, and those; without
    columns for a target that has no manual mode."""
    actions: Floats
    states: Floats
    counts: Counter[str]


def check_memory_equivalence(
    target: MemoryTarget,
    machine: MemoryMachine,
    files: Mapping[str, bytes],
    name: str,
    folder: Path,
    samples: int,
    trace: MemoryTrace | None = None,
) -> Equivalence:
    """Run files and compare them with the controller; raises `EquivalenceError` at the first difference.

    A difference is an action, or a number of the state after a sample, that is not equal to the last bit.
    """
    began = time.perf_counter()
    run, counts = target.load(machine, files, name, folder), Counter[str]()
    for part in episodes(machine, samples, manual=target.manual):
        _compare(target, part, *run(part.resets, np.concatenate([part.inputs, part.commands], axis=2)))
        counts.update(part.counts)
        if trace is not None:
            trace.watch(part.inputs, part.commands, part.states)
    controller, guard = machine.controller, machine.limits
    return Equivalence(
        target=target.name,
        number=machine.number,
        tool=target.tool(),
        points=dict(counts),
        safe_action=machine.safe or (),
        limits=() if guard is None else tuple(zip(guard.low, guard.high, strict=True)),
        tolerance=None if guard is None else guard.tolerance,
        leaves=controller.tree.n_leaves,
        depth=controller.tree.depth,
        rounding=0.0,
        lost=[] if machine.number == "double" else None,
        files={file: hashlib.sha256(content).hexdigest() for file, content in files.items()},
        provenance=machine.provenance,
        seconds=time.perf_counter() - began,
    )


def _compare(target: MemoryTarget, wanted: Episodes, actions: Floats, states: Floats) -> None:
    if (actions.shape, states.shape) != (wanted.actions.shape, wanted.states.shape):
        raise EquivalenceError(
            f"The exported {target.name} returned actions and states of the shapes {actions.shape} and "
            f"{states.shape}, not {wanted.actions.shape} and {wanted.states.shape}, so no file is written."
        )
    wrong = (actions != wanted.actions).any(axis=2) | (states != wanted.states).any(axis=2)
    if not wrong.any():
        return
    step = int(np.flatnonzero(wrong.any(axis=1))[0])
    row = int(np.flatnonzero(wrong[step])[0])
    at = (step, row)
    commands = wanted.commands[at]
    said = f" and the commands {commands.tolist()}" if commands.any() else ""
    raise EquivalenceError(
        f"The exported {target.name} differs from the policy, so no file is written. The first difference is "
        f"at sample {step} of episode {row}: for the observation {wanted.inputs[at].tolist()}{said} the "
        f"action of the policy is {wanted.actions[at].tolist()} and its state {wanted.states[at].tolist()}; "
        f"that of {target.name} is {actions[at].tolist()} and {states[at].tolist()}."
    )


def episodes(
    machine: MemoryMachine, samples: int, seed: int = 0, *, manual: bool = False
) -> Iterator[Episodes]:
    """Yield random episodes, with what the controller does in them.

    Observations wander, stay, jump within and far beyond their range, and take special values; resets come at
    random; and at some samples an observation is on one side of a boundary at which the leaf, a limit or the
    dead band begins to act, or next to it on the other side, as found by bisection. With `manual`,
    manual mode begins and ends at random, and actions other than those given are applied.
    """
    rng = np.random.default_rng(seed)
    left = samples
    while left > 0:
        rows = min(_SIDE_BY_SIDE, math.isqrt(left))
        steps = min(left // rows, _LENGTH)
        yield _Play(machine, rows, rng, manual).episodes(steps)
        left -= rows * steps


class _Play:
    """Episodes side by side, under construction."""

    def __init__(self, machine: MemoryMachine, rows: int, rng: np.random.Generator, manual: bool) -> None:
        self._machine, self._rng, self._rows = machine, rng, rows
        controller = machine.controller
        self._fresh = controller.new_memory(rows)
        self._memory = self._fresh.copy()
        space = controller.observation_space
        endless = unbounded(space)
        low, high = (end.astype(np.float64).ravel() for end in (space.low, space.high))
        self._low, self._high = np.where(endless, -10.0, low), np.where(endless, 10.0, high)
        self._seen = self._anywhere()
        # Some episodes are calm, so that integrals reach their limits, and some have no reset.
        self._moves = 10 ** rng.uniform(-2, 0, (rows, 1))
        self._resets = _RESETS * (rng.random(rows) < 0.7)
        self._operator = Operator(machine, rows, rng) if manual else None

    def episodes(self, steps: int) -> Episodes:
        inputs, commands, actions, states = [], [], [], []
        resets = self._rng.random((steps, self._rows)) < self._resets
        resets[0] = True
        counts: Counter[str] = Counter()
        for step in range(steps):
            self._memory = np.where(resets[step][:, np.newaxis], self._fresh, self._memory)
            self._wander()
            given = self._seen.astype(self._machine.dtype)
            if step % _BISECT_EVERY == 1:
                counts["samples at boundaries"] += self._to_boundaries(given)
            self._specially(given)
            commanded = self._commands()
            done, valid = self._machine.operate(given, commanded, self._memory)
            counts["samples without a valid reading"] += int((~valid).sum())
            inputs.append(given)
            commands.append(commanded)
            actions.append(done)
            states.append(self._memory.copy())
        counts["random samples"] = steps * self._rows - sum(counts.values())
        counts["resets"] = int(resets.sum())
        said = np.array(commands)
        if self._operator is not None:
            manual, track = (part[..., 0] > 0 for part in np.split(said, 2, axis=2))
            counts["samples in manual mode"] = int(manual.sum())
            counts["samples with tracking"] = int(track.sum())
        return Episodes(resets, np.array(inputs), said, np.array(actions), np.array(states), counts)

    def _commands(self) -> NDArray[Any]:
        if self._operator is None:
            return np.empty((self._rows, 0), self._machine.dtype)
        return self._operator.commands(self._memory)

    def _anywhere(self) -> Floats:
        middle, half = self._low / 2 + self._high / 2, self._high / 2 - self._low / 2
        return middle + 1.05 * half * self._rng.uniform(-1, 1, (self._rows, len(middle)))

    def _wander(self) -> None:
        """Move some observations a little, and some anywhere; the others stay."""
        rng, shape = self._rng, self._seen.shape
        kind = np.where(rng.random((self._rows, 1)) < self._moves, rng.random(shape), 0.8)
        step = (self._high - self._low) * rng.normal(size=shape) * 10 ** rng.uniform(-4, -1, shape)
        self._seen = np.where(kind < 0.6, self._seen + step, self._seen)
        self._seen = np.where(kind > 0.95, self._anywhere(), self._seen)
        beyond = np.abs(self._seen) > 10 * np.maximum(np.abs(self._low), np.abs(self._high))
        self._seen = np.where(beyond, self._anywhere(), self._seen)

    def _specially(self, given: NDArray[Any]) -> None:
        """Replace some observations by special values."""
        rng = self._rng
        ends = np.array(self._machine.ends).ravel()
        edges = [ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)]
        values = np.concatenate([[np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e20, -1e20], *edges])
        rows = np.flatnonzero(rng.random(self._rows) < _SPECIAL)
        with np.errstate(over="ignore"):
            given[rows, rng.integers(given.shape[1], size=len(rows))] = rng.choice(values, len(rows))

    def _to_boundaries(self, given: NDArray[Any]) -> int:
        """Move some observations to a boundary, by bisection; returns how many."""
        rng = self._rng
        rows = np.flatnonzero(rng.random(self._rows) < _BOUNDARIES)
        if not len(rows):
            return 0
        memory, column = self._memory[rows], rng.integers(given.shape[1], size=len(rows))
        one, other = given[rows], given[rows]
        place = np.arange(len(rows)), column
        other[place] = self._anywhere().astype(given.dtype)[rows, column]
        here = self._branch(one, memory)
        found = (here != self._branch(other, memory)).any(axis=1)
        for _ in range(80):
            middle = one.copy()
            middle[place] = one[place] / 2 + other[place] / 2
            same = (self._branch(middle, memory) == here).all(axis=1)
            one[same], other[~same] = middle[same], middle[~same]
        sides = np.where(rng.random((len(rows), 1)) < 0.5, one, other)
        given[rows[found]] = sides[found]
        return int(found.sum())

    def _branch(self, given: NDArray[Any], memory: Floats) -> Floats:
        """Return what decides about the sample: the leaf, the limits that act, and the dead band."""
        after, width = memory.copy(), len(self._machine.controller.actions)
        _, wish, _ = self._machine.sample(given, after)
        last, target = after[:, LAST : LAST + width], after[:, LAST + width : LAST + 2 * width]
        parts = [after[:, [LEAF]], np.sign(np.nan_to_num(wish - target)), (last == target).astype(np.float64)]
        return np.concatenate(parts, axis=1)
