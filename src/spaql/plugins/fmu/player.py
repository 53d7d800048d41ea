"""Plays samples by an exported FMU in FMPy: a script, for a process of its own that need not import spaql.

usage: player.py FMU INPUTS OUTPUTS STATE WHOLE SAMPLE_TIME SAMPLES PLAYED

The numbers are those of an observation, of an action and of the state; WHOLE is 1 for an action that is a
number of a list, and SAMPLE_TIME is 0 without memory. See `spaql.export.running` for the files.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

import fmpy
import numpy as np
from numpy.typing import NDArray


class _Buffer:
    """Numbers of consecutive value references, shared between C and NumPy."""

    def __init__(self, first: int, n: int, kind: Any = ctypes.c_double) -> None:
        self.n = n
        numbers = (kind * n)()
        self.values: NDArray[Any] = np.ctypeslib.as_array(numbers) if n else np.empty(0)
        self.arguments = (ctypes.c_uint * n)(*range(first, first + n)), n, numbers


class _Player:
    def __init__(self, file: str, inputs: int, outputs: int, state: int, *, whole: bool) -> None:
        try:
            model = fmpy.model_description.read_model_description(file, validate_model_structure=True)
        except Exception as error:
            sys.exit(f"The model description of the FMU is not valid: {error}")
        unzipped = fmpy.extract(file, os.path.abspath("fmu"))
        self._fmu = fmpy.fmi2.FMU2Slave(
            guid=model.guid, unzipDirectory=str(unzipped), modelIdentifier=model.coSimulation.modelIdentifier
        )
        self._fmu.instantiate()
        self._in = _Buffer(0, inputs)
        self._out = _Buffer(inputs, outputs, ctypes.c_int if whole else ctypes.c_double)
        self._state = _Buffer(inputs + outputs, state)
        self._read = self._fmu.fmi2GetInteger if whole else self._fmu.fmi2GetReal
        self._initialise()

    def reset(self) -> None:
        self._fmu.reset()
        self._initialise()

    def sample(self, row: NDArray[Any], time: float, size: float) -> NDArray[Any]:
        fmu = self._fmu
        component = self._fmu.component
        self._in.values[:] = row
        fmu.fmi2SetReal(component, *self._in.arguments)
        fmu.fmi2DoStep(component, time, size, 1)
        self._read(component, *self._out.arguments)
        if self._state.n:
            fmu.fmi2GetReal(component, *self._state.arguments)
        return np.concatenate([self._out.values, self._state.values])

    def _initialise(self) -> None:
        self._fmu.setupExperiment()
        self._fmu.enterInitializationMode()
        self._fmu.exitInitializationMode()


def main(file: str, inputs: str, outputs: str, state: str, whole: str, sample_time: str, *files: str) -> None:
    """Play the samples of the first of two files, and write what is done to the second."""
    period = float(sample_time)
    player = _Player(file, int(inputs), int(outputs), int(state), whole=whole == "1")
    rows = np.fromfile(files[0]).reshape(-1, 1 + int(inputs))
    played = np.empty((len(rows), int(outputs) + int(state)))
    since = 0
    for i, row in enumerate(rows):
        if row[0] > 0.0:
            player.reset()
            since = i
        played[i] = player.sample(row[1:], (i - since) * period, period or 1.0)
    played.tofile(files[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
