"""The time of a decision beside the trace: operations that are counted, and cycles that are measured."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SpaqlError
from spaql.export.equivalence import EquivalenceError
from spaql.export.machines.boards import (
    MACHINES,
    Answers,
    Arm,
    Machine,
    NotForMachineError,
    compile_for,
    missing,
    sizes_of,
    stack,
)
from spaql.export.machines.operations import Operations, most_operations, most_operations_of_sample
from spaql.export.memory.build import program_of
from spaql.export.memory.check import episodes
from spaql.export.memory.machine import MemoryMachine
from spaql.export.processes import version_of
from spaql.export.target_controller import MachineController
from spaql.export.test_states import LEAF_CENTRES, comparison_points

POINTS = 1_000
"""The most points that are measured: leaf centres first, and of the others as many as there is room for."""
REPEATS = 40
"""Calls at each point: an instruction is one tick of the timer then."""
_MEANING = (
    "The operations are the most that a decision can take, counted in the rules. The cycles or instructions "
    "are the largest count measured at the points, and no static bound on the execution time."
)


def timing_of(controller: MachineController, files: Mapping[str, bytes]) -> bytes:
    """Return the times of a controller as JSON.

    It is measured at points of every leaf and boundary, by files that have the name `controller`.
    """
    inputs, drawn = _points(controller)
    what = "leaf centres, boundaries and their neighbours, NaN and infinities"
    wanted = controller.wanted(inputs)
    return _report(
        most_operations(controller),
        f"drawn from {what}; of leaf centres all that there is room for" if drawn else what,
        files,
        inputs,
        wanted,
        lambda machine, folder: machine.run(folder, controller, inputs, REPEATS),
    )


def _points(controller: MachineController) -> tuple[NDArray[Any], bool]:
    """Return inputs to measure at, leaf centres first, and whether there are more of them."""
    rng, total = np.random.default_rng(0), 0
    centres, others = list[NDArray[Any]](), list[NDArray[Any]]()
    for kind, batch in comparison_points(controller, 0):  # of a large tree there are too many to keep
        total += len(batch)
        (centres if kind == LEAF_CENTRES else others).append(rng.permutation(batch)[:POINTS])
    if others:
        centres.append(rng.permutation(np.concatenate(others)))
    return np.concatenate(centres)[:POINTS], total > POINTS


def timing_of_samples(machine: MemoryMachine, files: Mapping[str, bytes]) -> bytes:
    """Return the times of a controller with memory as JSON, measured in one episode of random samples."""
    part = next(episodes(machine, POINTS))
    inputs = part.inputs.transpose(1, 0, 2).reshape(-1, part.inputs.shape[2])
    memory = machine.controller.new_memory(1)
    wanted = np.concatenate([machine.sample(row[np.newaxis], memory)[0] for row in inputs])

    def play(board: Machine, folder: Path) -> Answers:
        assert isinstance(board, Arm)  # the state does not compile for an AVR
        return board.play(folder, machine, inputs)

    operations = most_operations_of_sample(program_of(machine, manual=True))
    return _report(operations, "samples of one random episode", files, inputs, wanted, play)


def _report(
    operations: Operations,
    what: str,
    files: Mapping[str, bytes],
    inputs: NDArray[Any],
    wanted: NDArray[np.float64],
    run: Callable[[Machine, Path], Answers],
) -> bytes:
    """Return the report of all machines."""
    data = {
        "meaning": _MEANING,
        "most_operations": asdict(operations),
        "points": len(inputs),
        "kind_of_points": what,
        "machines": [_measured(machine, files, inputs, wanted, run) for machine in MACHINES],
    }
    return (json.dumps(data, indent=2) + "\n").encode()


def _measured(
    machine: Machine,
    files: Mapping[str, bytes],
    inputs: NDArray[Any],
    wanted: NDArray[np.float64],
    run: Callable[[Machine, Path], Answers],
) -> dict[str, Any]:
    """Return what one machine takes, or why it was not measured."""
    row: dict[str, Any] = {"machine": machine.name}
    if lacking := missing(machine):
        return row | {"not_measured": f"{' and '.join(lacking)} is missing"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            compile_for(machine, folder, files)
            answers = run(machine, folder)
        except NotForMachineError as error:
            return row | {"not_measured": str(error)}
        except SpaqlError as error:
            return row | {"not_measured": str(error)}
        if not np.array_equal(answers.actions, wanted):
            raise EquivalenceError(
                f"The exported C differs from the policy on a simulated {machine.name}, so no file is "
                "written."
            )
        worst = int(np.argmax(answers.cost))
        text, data, bss = sizes_of(machine, folder / "controller.o")
        return row | {
            f"most_{machine.unit}": math.ceil(answers.cost[worst]),
            "at": [x if math.isfinite(x) else repr(x) for x in inputs[worst].tolist()],
            "flash_bytes": text + data,
            "ram_bytes": data + bss,
            "stack_bytes": stack(folder),
            "compiler": f"{version_of(machine.compiler[0])}, {' '.join(machine.compiler[1:])}",
        }
