"""How exported code is played: a driver in its language reads samples from a file, and writes what it does.

A sample is a row of doubles: 1 for a reset and 0 otherwise, then the observation, and for a controller with
manual mode the commands of `spaql.export.machine.Machine.operate`. For each the driver writes the components
of the action, and then those of the state.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from spaql.errors import SpaqlError
from spaql.export.processes import run
from spaql.kernels.controller import Floats


class EquivalenceError(SpaqlError, RuntimeError):
    """Exported code whose actions differ from those of the policy; no file is written."""


SAMPLES = "samples.bin"
PLAYED = "played.bin"
"""The files that a driver reads and writes."""
Player = Callable[[Floats], Floats]
"""From samples to actions and states: an array of rows of each, or of episodes of rows."""


def driven(
    command: Sequence[str], folder: Path, width: int, variables: Mapping[str, str] | None = None
) -> Player:
    """Return the function that plays samples by a program, which reads and writes the files in a folder.

    `width` is how many numbers it writes for a sample; `variables` are of its environment.
    """

    def play(samples: Floats) -> Floats:
        samples.tofile(folder / SAMPLES)
        (folder / PLAYED).unlink(missing_ok=True)
        run(command, folder, EquivalenceError, "The exported controller failed", variables=variables)
        return np.fromfile(folder / PLAYED).reshape(*samples.shape[:-1], width)

    return play


def run_file(name: str) -> list[str]:
    """Return the lines of Python that run a file in a namespace."""
    return [
        "namespace = {}",
        f"with open('{name}.py', encoding='utf-8') as file:",
        f"    exec(compile(file.read(), '{name}.py', 'exec'), namespace)",
    ]


def driven_by_python(
    setup: Sequence[str], sample: Sequence[str], folder: Path, inputs: int, width: int
) -> Player:
    """Return the function that plays samples by Python code, in an interpreter of its own.

    `setup` are lines that come first; those of `sample` take a list `row` and add what is written for it to
    `played`. A row has `inputs` numbers after that for a reset.
    """
    lines = ["import array", *setup, "rows, played = array.array('d'), array.array('d')"]
    lines += [
        f"with open({SAMPLES!r}, 'rb') as file:",
        "    rows.frombytes(file.read())",
        "rows = rows.tolist()",
    ]
    lines += [f"for at in range(0, len(rows), {inputs + 1}):", f"    row = rows[at : at + {inputs + 1}]"]
    lines += [
        *(f"    {line}" for line in sample),
        f"with open({PLAYED!r}, 'wb') as file:",
        "    played.tofile(file)",
    ]
    driver = folder / "_driver.py"
    driver.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return driven([sys.executable, "-I", "-S", "-B", driver.name], folder, width)
