"""From requirements to tests: each leaf of a controller, and the points at which its code was compared."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spaql.export.machine import Machine
from spaql.kernels.controller import DISCRETE, LEAF, LEFT, OUTPUTS, RIGHT, ROW, VELOCITY

if TYPE_CHECKING:
    from spaql.export.equivalence import Compared

UNKNOWN = -1
"""The requirement about readings that are NaN or not valid."""
MANUAL = -2
"""The requirement about manual mode, with and without a valid reading."""
TRACKED = -3
"""The requirement about the memory after another action was applied than the one given."""
_LABELS = {UNKNOWN: "no valid reading", MANUAL: "manual mode", TRACKED: "tracking"}


class RuleTrace:
    """Requirements, and how often each was tested; a test that fails ends the export.

    Leaves go by the numbers of their nodes, which the state of a controller with memory has as well.
    """

    def __init__(self, machine: Machine, name: str, timing: Callable[[], bytes], *, manual: bool) -> None:
        self._machine = machine
        self._name = name
        self._timing = timing
        self._manual = manual
        self._counts: dict[int, Counter[str]] = {}
        self._examples: dict[int, list[float]] = {}

    def watch(self, part: Compared) -> None:
        """Count samples at which there was no difference."""
        inputs = part.inputs.reshape(-1, part.inputs.shape[-1])
        valid = self._machine.valid(inputs)
        requirement = np.full(len(valid), UNKNOWN)
        if self._machine.remembers:
            requirement[valid] = part.states[..., LEAF].ravel()[valid].astype(np.int64)
        else:
            requirement[valid] = self._machine.leaves(inputs[valid])
        kind = "samples" if self._machine.remembers else next(iter(part.counts))
        if part.commands.shape[-1]:
            manual, track = (half[..., 0].ravel() > 0 for half in np.split(part.commands, 2, axis=-1))
            requirement[manual] = MANUAL
            self._count(np.full(int(track.sum()), TRACKED), kind, inputs[track])
        self._count(requirement, kind, inputs)

    def _count(self, requirement: NDArray[np.int64], kind: str, inputs: NDArray[Any]) -> None:
        requirements, first, counts = np.unique(requirement, return_index=True, return_counts=True)
        for number, row, n in zip(requirements.tolist(), first.tolist(), counts.tolist(), strict=True):
            self._counts.setdefault(number, Counter())[kind] += n
            self._examples.setdefault(number, inputs[row].tolist())

    def files(self) -> dict[str, bytes]:
        """Return the trace as a file of CSV, and the times of the code as one of JSON, by name."""
        kinds = list(dict.fromkeys(kind for counts in self._counts.values() for kind in counts))
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["requirement", "condition", "action", *kinds, "first point", "result"])
        for number, condition, action in self._requirements():
            counts = self._counts.get(number, Counter())
            point = " ".join(map(repr, self._examples.get(number, [])))
            result = "equal at all points" if counts else "not tested: no point was found"
            label = _LABELS.get(number, f"leaf {number}")
            writer.writerow([label, condition, action, *(counts[k] for k in kinds), point, result])
        trace = file.getvalue().encode()
        return {f"{self._name}_trace.csv": trace, f"{self._name}_timing.json": self._timing()}

    def _requirements(self) -> Iterator[tuple[int, str, str]]:
        """Yield the number, the condition and the action of each requirement."""
        safe = self._machine.safe
        last = "the last action" if safe is None else " ".join(map(repr, safe))
        yield UNKNOWN, "a reading is not valid", last
        if self._manual:
            yield MANUAL, "manual mode", "the action given by hand, within its limits; the memory follows it"
            said = "another action was applied than the one given"
            yield TRACKED, said, "the memory follows it; then as below"
        arrays, numbers = self._machine.arrays
        kept = " (or kept by hysteresis)" if len(arrays.margin) else ""
        waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
        while waiting:
            node, way = waiting.pop()
            if arrays.node[node, LEFT] < 0:
                yield node, (" and ".join(way) or "always") + kept, self._action(node)
                continue
            row = int(arrays.node[node, ROW])
            test = f"{self._sum(row, 0.0)} < {float(numbers.constant[row])!r}"
            waiting.append((int(arrays.node[node, RIGHT]), (*way, f"not {test}")))
            waiting.append((int(arrays.node[node, LEFT]), (*way, test)))

    def _action(self, leaf: int) -> str:
        """Return what a leaf does, as text."""
        arrays, numbers = self._machine.arrays
        first = int(arrays.node[leaf, ROW])
        rows = range(first, first + int(arrays.shape[OUTPUTS]))
        laws = [self._sum(row, float(numbers.constant[row])) for row in rows]
        if not arrays.shape[DISCRETE]:
            start = "the action before + " if arrays.shape[VELOCITY] else ""
            return "; ".join(start + law for law in laws) + ", within its limits"
        taken = [k for k, row in enumerate(rows) if numbers.constant[row] > -np.inf]
        names = [f"{self._machine.first + k} ({self._machine.actions[k]})" for k in taken]
        if len(taken) == 1:
            return names[0]
        return (
            f"the highest of {'; '.join(f'{name}: {laws[k]}' for name, k in zip(names, taken, strict=True))}"
        )

    def _sum(self, row: int, constant: float) -> str:
        arrays, numbers = self._machine.arrays
        first, last = arrays.span[row : row + 2].tolist()
        names = self._names()
        terms = [(numbers.weight[t].item(), names[arrays.term[t]]) for t in range(first, last)]
        parts = [repr(constant)] if constant or not terms else []
        return " + ".join([*parts, *(name if w == 1.0 else f"{w!r} * {name}" for w, name in terms)])

    def _names(self) -> Sequence[str]:
        computed = self._machine.controller.computed_features
        return [*self._machine.observations, *(feature.name for feature in computed)]
