"""The equivalence check: exported code is run and compared with the policy before a file is written."""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError, SpaqlError
from spaql.export.differences import lost_by_conversion
from spaql.export.rewrite import constants
from spaql.export.target_controller import MachineController
from spaql.export.test_states import comparison_points
from spaql.export.trace import RuleTrace
from spaql.policy import Laws, SwitchingLaws

POINTS = 1_000_000
"""Random points to compare, besides all leaves and boundaries."""
SLOW_POINTS = 100_000
"""The same in interpreters that take a millisecond for some controllers."""
Run = Callable[[NDArray[Any]], NDArray[np.float64]]


class EquivalenceError(SpaqlError, RuntimeError):
    """Exported code whose actions differ from those of the policy; no file is written."""


class Target(ABC):
    """A language or format: how a controller is written in it, and how the files are run."""

    name: str
    """Of the language or format, for people."""
    suffix: str
    """Of the file that an export is asked for by, such as `.c`."""
    points: int = POINTS
    """Random points to compare by default."""

    @abstractmethod
    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""

    @abstractmethod
    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Prepare the files in an empty folder; returns the function from inputs to actions."""

    @abstractmethod
    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""

    def trace(self, controller: MachineController, name: str) -> RuleTrace | None:
        """Return the trace of the equivalence check to write beside the files; None for none."""
        return None

    def with_memory(self) -> Any:
        """Return the target for controllers with memory, a `spaql.export.memory.check.MemoryTarget`."""
        raise SettingError(f"{self.name} has no state: a controller with memory cannot be written in it.")


@dataclass(frozen=True)
class Equivalence:
    """What was compared in an equivalence check that found no difference."""

    target: str
    number: str
    tool: str
    points: dict[str, int]
    """How many inputs of each kind were compared."""
    safe_action: tuple[float, ...]
    limits: tuple[tuple[float, float], ...]
    """Lower and upper limit of each number of an observation, beyond which the safe action is taken; empty
    without a safe action."""
    tolerance: float | None
    """By how much the limits exceed the observation space on either side, as a share of each range."""
    leaves: int
    """Leaves of the policy, without the tests of the limits."""
    depth: int
    """Depth of the policy, without the tests of the limits."""
    rounding: float
    """The largest change of a constant action by rounding to the number type."""
    lost: list[dict[str, Any]] | None
    """All boxes of double-precision observations, ends included, whose conversion to the number type changes
    the action, or the law that computes it; None where they were not computed: for rules that compare sums of
    observations, and for switching laws."""
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


def check_equivalence(
    target: Target,
    controller: MachineController,
    files: Mapping[str, bytes],
    name: str,
    folder: Path,
    points: int = POINTS,
    trace: RuleTrace | None = None,
) -> Equivalence:
    """Run files and compare them with the policy; raises `EquivalenceError` at the first difference.

    A difference is an action that is not equal to the last bit.
    """
    began = time.perf_counter()
    run = target.load(controller, files, name, folder)
    counts: Counter[str] = Counter()
    for kind, inputs in comparison_points(controller, points):
        wanted, given = controller.wanted(inputs), run(inputs)
        if given.shape != wanted.shape:
            raise EquivalenceError(
                f"The exported {target.name} returned {len(given)} actions for {len(wanted)} observations, "
                "so no file is written."
            )
        wrong = np.flatnonzero((given != wanted).any(axis=1))
        if len(wrong):
            row = int(wrong[0])
            raise EquivalenceError(
                f"The exported {target.name} differs from the policy, so no file is written. "
                f"The first difference is among the {kind}: for {inputs[row].tolist()} the policy returns "
                f"{wanted[row].tolist()}, and {target.name} {given[row].tolist()}."
            )
        counts[kind] += len(inputs)
        if trace is not None:
            trace.watch(kind, inputs)
    rules, guard = controller.rules, controller.limits
    return Equivalence(
        target=target.name,
        number=controller.number.name,
        tool=target.tool(),
        points=dict(counts),
        safe_action=controller.safe,
        limits=() if guard is None else tuple(zip(guard.low, guard.high, strict=True)),
        tolerance=None if guard is None else guard.tolerance,
        leaves=rules.n_leaves,
        depth=rules.depth,
        rounding=_rounding(controller),
        lost=lost_by_conversion(controller),
        files={file: hashlib.sha256(content).hexdigest() for file, content in files.items()},
        provenance=controller.provenance,
        seconds=time.perf_counter() - began,
    )


def _rounding(controller: MachineController) -> float:
    leaves = controller.exact.leaves
    if isinstance(leaves, Laws):
        return 0.0
    if isinstance(leaves, SwitchingLaws):
        actions: NDArray[Any] = leaves.start + np.arange(leaves.offset.shape[1])
    else:
        actions = constants(leaves)
    table = actions.reshape(len(actions), -1).astype(np.float64)
    return float(np.abs(controller.number.rounded(table) - table).max())
