"""From requirements to tests: each rule of a controller, and the points at which its code was compared."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.export.conditions import printed_sizes
from spaql.export.memory.machine import MemoryMachine
from spaql.export.target_controller import MachineController
from spaql.kernels.controller import LEAF
from spaql.policy import Laws
from spaql.policy.explanation import conditions

UNKNOWN = -1
"""The requirement about readings that are NaN or not valid."""
MANUAL = -2
"""The requirement about manual mode, with and without a valid reading."""
TRACKED = -3
"""The requirement about the memory after another action was applied than the one given."""
_LABELS = {UNKNOWN: "no valid reading", MANUAL: "manual mode", TRACKED: "tracking"}


class Trace(ABC):
    """Requirements, and how often each was tested; a test that fails ends the export."""

    def __init__(self, name: str, timing: Callable[[], bytes]) -> None:
        self._name, self._timing = name, timing
        self._counts: dict[int, Counter[str]] = {}
        self._examples: dict[int, list[float]] = {}

    @abstractmethod
    def requirements(self) -> Iterator[tuple[int, str, str]]:
        """Yield the number, the condition and the action of each requirement."""

    def count(self, requirement: NDArray[np.int64], kind: str, inputs: NDArray[Any]) -> None:
        """Count points that were compared, with the requirement of each."""
        found, first, counts = np.unique(requirement, return_index=True, return_counts=True)
        for number, row, n in zip(found.tolist(), first.tolist(), counts.tolist(), strict=True):
            self._counts.setdefault(number, Counter())[kind] += n
            self._examples.setdefault(number, inputs[row].tolist())

    def files(self) -> dict[str, bytes]:
        """Return the trace as a file of CSV, and the times of the code as one of JSON, by name."""
        kinds = list(dict.fromkeys(kind for counts in self._counts.values() for kind in counts))
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["requirement", "condition", "action", *kinds, "first point", "result"])
        for number, condition, action in self.requirements():
            counts = self._counts.get(number, Counter())
            point = " ".join(map(repr, self._examples.get(number, [])))
            result = "equal at all points" if counts else "not tested: no point was found"
            writer.writerow([_label(number), condition, action, *(counts[k] for k in kinds), point, result])
        trace = file.getvalue().encode()
        return {f"{self._name}_trace.csv": trace, f"{self._name}_timing.json": self._timing()}


class RuleTrace(Trace):
    """Of a rule tree: its leaves in printed order, from 1, those of the limits included."""

    def __init__(self, controller: MachineController, name: str, timing: Callable[[], bytes]) -> None:
        super().__init__(name, timing)
        self._controller, self._sizes = controller, np.array(printed_sizes(controller.exact))

    def watch(self, kind: str, inputs: NDArray[Any]) -> None:
        """Count inputs at which there was no difference."""
        batch = self._controller.number.values(inputs)
        unknown = np.isnan(batch).any(axis=1, keepdims=True)
        leaves = self._leaves(np.where(unknown, 0.0, batch))
        self.count(np.where(unknown.ravel(), UNKNOWN, leaves), kind, inputs)

    def requirements(self) -> Iterator[tuple[int, str, str]]:
        """Yield the number, the condition and the action of each requirement."""
        tree, names = self._controller.exact, self._controller.exact.number_names()
        yield UNKNOWN, "an observation is NaN", " ".join(map(repr, self._controller.safe))
        for leaf in range(1, tree.n_leaves + 1):
            low, high, row = tree.box(leaf)
            yield leaf, " and ".join(conditions(low, high, names, None)) or "always", self._action(row)

    def _action(self, row: int) -> str:
        controller = self._controller
        laws, names = controller.exact.leaves, controller.exact.observations
        if isinstance(laws, Laws):
            rows = zip(laws.offset[row].tolist(), laws.gain[row].tolist(), strict=True)
            return "; ".join(_law(offset, gain, names) for offset, gain in rows)
        if scores := controller.scores(row):
            laws_ = (f"{controller.action_name(i)}: {_law(o, g.tolist(), names)}" for i, o, g in scores)
            return f"the highest of {'; '.join(laws_)}"
        values = " ".join(map(repr, controller.leaf_value(row)))
        return f"{values} ({controller.leaf_name(row)})" if controller.leaf_name(row) else values

    def _leaves(self, batch: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the numbers of the leaves of observations, in printed order."""
        tree = self._controller.exact
        numbers, rows = tree.numbers(batch), np.arange(len(batch))
        node, before = np.zeros(len(batch), np.int64), np.ones(len(batch), np.int64)
        while (inner := tree.feature[node] >= 0).any():
            at = node[inner]
            lower = numbers[rows[inner], tree.feature[at]] < tree.threshold[at]
            before[inner] += np.where(lower, 0, self._sizes[tree.left[at]])
            node[inner] = np.where(lower, tree.left[at], tree.right[at])
        return before


class MemoryTrace(Trace):
    """Of a controller with memory: its leaves by the numbers that its code has for them."""

    def __init__(self, machine: MemoryMachine, name: str, timing: Callable[[], bytes]) -> None:
        super().__init__(name, timing)
        self._machine = machine

    def watch(self, inputs: NDArray[Any], commands: NDArray[Any], states: NDArray[np.float64]) -> None:
        """Count samples at which there was no difference: samples × episodes × numbers."""
        flat = inputs.reshape(-1, inputs.shape[-1])
        manual, track = (part[..., 0].ravel() > 0 for part in np.split(commands, 2, axis=2))
        leaves = states[..., LEAF].ravel().astype(np.int64)
        automatic = np.where(self._machine.valid(flat), leaves, UNKNOWN)
        self.count(np.where(manual, MANUAL, automatic), "samples", flat)
        self.count(np.full(int(track.sum()), TRACKED), "samples", flat[track])

    def requirements(self) -> Iterator[tuple[int, str, str]]:
        """Yield the number, the condition and the action of each requirement."""
        controller = self._machine.controller
        _, limiter, left, tree, margin = controller.tables
        names = [feature.name for feature in controller.features]
        safe = self._machine.safe
        last = "the last action" if safe is None else " ".join(map(repr, safe))
        yield UNKNOWN, "a reading is not valid", last
        yield MANUAL, "manual mode", "the action given by hand, within its limits; the memory follows it"
        yield (
            TRACKED,
            "another action was applied than the one given",
            "the memory follows it; then as below",
        )
        waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
        kept = " (or kept by hysteresis)" if len(margin) else ""
        start = "the action before + " if limiter.velocity else ""
        while waiting:
            node, way = waiting.pop()
            if left[node] < 0:
                laws = (_law(law[0], law[1:], names) for law in tree[node].tolist())
                action = "; ".join(start + law for law in laws) + ", within its limits"
                yield node, (" and ".join(way) or "always") + kept, action
                continue
            test = f"{_law(0.0, tree[node, 0, 1:].tolist(), names)} < {float(tree[node, 0, 0])!r}"
            child = int(left[node])
            waiting += [(child + 1, (*way, f"not {test}")), (child, (*way, test))]


def _label(number: int) -> str:
    return _LABELS.get(number, f"leaf {number}")


def _law(offset: float, gains: list[float], names: Any) -> str:
    """Return a law as text."""
    parts = [repr(offset)] if offset or not any(gains) else []
    terms = zip(gains, names, strict=True)
    return " + ".join([*parts, *(name if g == 1.0 else f"{g!r} * {name}" for g, name in terms if g)])
