"""Proof before writing: what was made is run, and compared with the policy, before anyone can use it."""

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

from spaql.errors import SpaqlError
from spaql.export.differences import lost_by_conversion
from spaql.export.points import telling_points
from spaql.export.rewrite import constants
from spaql.export.target_controller import MachineController
from spaql.policy import Laws

POINTS = 1_000_000
"""Random points by which an export is compared, besides all leaves and boundaries."""
Run = Callable[[NDArray[Any]], NDArray[np.float64]]


class ProofError(SpaqlError, RuntimeError):
    """An export that does not do what the policy does; nothing is written."""


class Target(ABC):
    """A language or format: how a controller is written in it, and how what was written is run."""

    name: str
    """Of the language or format, for people."""
    suffix: str
    """Of the file that an export is asked for by, such as `.c`."""

    @abstractmethod
    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Write a controller as files, by their names."""

    @abstractmethod
    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Make files ready to run in an empty folder: gives the function from inputs to actions."""

    @abstractmethod
    def tool(self) -> str:
        """Name what the files are run by, with its version."""


@dataclass(frozen=True)
class Proof:
    """The evidence that files do what a policy does."""

    target: str
    number: str
    tool: str
    points: dict[str, int]
    """How many inputs of each kind were compared; none of them gave another action."""
    safe_action: tuple[float, ...]
    limits: tuple[tuple[float, float], ...]
    """Two for each number of an observation, beyond which the safe action is taken; none without one."""
    tolerance: float | None
    """The share of each range that these are wider than the observation space, on either side."""
    leaves: int
    """Of the policy, without the questions whether observations are within their limits."""
    depth: int
    """The most questions of the policy that are asked; those about limits come before them."""
    rounding: float
    """The most by which a constant action was rounded to a number of the machine."""
    lost: list[dict[str, Any]]
    """Boxes of observations in double precision, ends included, whose conversion to the machine's numbers
    leads to another action: all of them, and no other."""
    files: dict[str, str]
    """SHA-256 of each file."""
    provenance: tuple[str, ...]
    seconds: float

    def to_json(self) -> str:
        """Write the proof as JSON; infinite numbers are "inf" and "-inf"."""
        return json.dumps(_finite(asdict(self)), indent=2) + "\n"


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return repr(data) if isinstance(data, float) and not np.isfinite(data) else data


def prove(
    target: Target,
    controller: MachineController,
    files: Mapping[str, bytes],
    name: str,
    folder: Path,
    points: int = POINTS,
) -> Proof:
    """Run files and compare them with the policy; raises `ProofError` at the first difference."""
    began = time.perf_counter()
    run = target.load(controller, files, name, folder)
    counts: Counter[str] = Counter()
    for kind, inputs in telling_points(controller, points):
        wanted, given = controller.wanted(inputs), run(inputs)
        if given.shape != wanted.shape:
            raise ProofError(f"{target.name} gave {len(given)} actions for {len(wanted)} observations.")
        wrong = np.flatnonzero((given != wanted).any(axis=1))
        if len(wrong):
            row = int(wrong[0])
            raise ProofError(
                f"{target.name} does not do what the policy does, so nothing is written. "
                f"The first difference is among the {kind}: for {inputs[row].tolist()} the policy gives "
                f"{wanted[row].tolist()}, and {target.name} {given[row].tolist()}."
            )
        counts[kind] += len(inputs)
    rules, guard = controller.rules, controller.limits
    return Proof(
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
    if isinstance(controller.exact.leaves, Laws):
        return 0.0
    table = constants(controller.exact.leaves).reshape(len(controller.exact.leaves), -1).astype(np.float64)
    return float(np.abs(controller.number.rounded(table) - table).max())
