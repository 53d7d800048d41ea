"""The time of a decision beside the trace: operations that are counted, and cycles that are measured."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SpaqlError
from spaql.export.equivalence import comparisons
from spaql.export.machine import Machine
from spaql.export.machines.boards import (
    BOARDS,
    Board,
    NotForMachineError,
    compile_for,
    missing,
    sizes_of,
    stack,
)
from spaql.export.machines.operations import Operations, most_operations
from spaql.export.played import EquivalenceError
from spaql.export.processes import version_of
from spaql.export.test_states import LEAF_CENTRES, comparison_points
from spaql.program.controller import controller_program

POINTS = 1_000
"""The most points that are measured: leaf centres first, and of the others as many as there is room for."""
REPEATS = 40
"""Calls at each point: an instruction is one tick of the timer then."""
_MEANING = (
    "The operations are the most that a decision can take, counted in the rules. The cycles or instructions "
    "are the largest count measured at the points, and no static bound on the execution time."
)


def timing_of(machine: Machine, files: Mapping[str, bytes]) -> bytes:
    """Return the times of a controller as JSON, measured by files that have the name `controller`.

    Without memory it is measured at points of every leaf and boundary, and with memory in one episode.
    """
    operations = most_operations(*controller_program(machine.specification(manual=machine.tracks)))
    if machine.remembers:
        part = next(comparisons(machine, POINTS))
        inputs = part.inputs[0]
        memory = machine.arrays.new_memories(1)
        wanted = np.concatenate([machine.sample(row[np.newaxis], memory)[0] for row in inputs])
        return _report(operations, "samples of one random episode", files, machine, inputs, wanted)
    inputs, drawn = _points(machine)
    what = "leaf centres, boundaries and their neighbours, NaN and infinities"
    what = f"drawn from {what}; of leaf centres all that there is room for" if drawn else what
    return _report(operations, what, files, machine, inputs, machine.wanted(inputs))


def _points(machine: Machine) -> tuple[NDArray[Any], bool]:
    """Return inputs to measure at, leaf centres first, and whether there are more of them."""
    rng = np.random.default_rng(0)
    total = 0
    centres = list[NDArray[Any]]()
    others = list[NDArray[Any]]()
    for kind, batch in comparison_points(machine, 0):  # of a large tree there are too many to keep
        total += len(batch)
        (centres if kind == LEAF_CENTRES else others).append(rng.permutation(batch)[:POINTS])
    if others:
        centres.append(rng.permutation(np.concatenate(others)))
    return np.concatenate(centres)[:POINTS], total > POINTS


def _report(
    operations: Operations,
    what: str,
    files: Mapping[str, bytes],
    machine: Machine,
    inputs: NDArray[Any],
    wanted: NDArray[np.float64],
) -> bytes:
    """Return the report of all machines."""
    data = {
        "meaning": _MEANING,
        "most_operations": asdict(operations),
        "points": len(inputs),
        "kind_of_points": what,
        "machines": [_measured(board, files, machine, inputs, wanted) for board in BOARDS],
    }
    return (json.dumps(data, indent=2) + "\n").encode()


def _measured(
    board: Board,
    files: Mapping[str, bytes],
    machine: Machine,
    inputs: NDArray[Any],
    wanted: NDArray[np.float64],
) -> dict[str, Any]:
    """Return what one machine takes, or why it was not measured."""
    row: dict[str, Any] = {"machine": board.name}
    if lacking := missing(board):
        return row | {"not_measured": f"{' and '.join(lacking)} is missing"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            compile_for(board, folder, files)
            answers = board.run(folder, machine, inputs, REPEATS)
        except NotForMachineError as error:
            return row | {"not_measured": str(error)}
        except SpaqlError as error:
            return row | {"not_measured": str(error)}
        if not np.array_equal(answers.actions, wanted):
            raise EquivalenceError(
                f"The exported C differs from the policy on a simulated {board.name}, so no file is written."
            )
        worst = int(np.argmax(answers.cost))
        text, data, bss = sizes_of(board, folder / "controller.o")
        return row | {
            f"most_{board.unit}": math.ceil(answers.cost[worst]),
            "at": [x if math.isfinite(x) else repr(x) for x in inputs[worst].tolist()],
            "flash_bytes": text + data,
            "ram_bytes": data + bss,
            "stack_bytes": stack(folder),
            "compiler": f"{version_of(board.compiler[0])}, {' '.join(board.compiler[1:])}",
        }
