"""A controller as an FMU, compared with the policy by running it in FMPy."""

from __future__ import annotations

import ctypes
import hashlib
import io
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.export.c_code import CCode
from spaql.export.comments import name_of_action
from spaql.export.compilers import FLAGS, compiled, compiler_version
from spaql.export.equivalence import EquivalenceError, Run, Target
from spaql.export.fmu.interface import Interface
from spaql.export.fmu.wrapper import wrapper
from spaql.export.memory.build import program_of
from spaql.export.memory.c_code import CMemory
from spaql.export.memory.check import Bools, MemoryTarget
from spaql.export.memory.check import Run as MemoryRun
from spaql.export.memory.machine import MemoryMachine
from spaql.export.numbers import refuse_unless_double
from spaql.export.target_controller import MachineController
from spaql.kernels.features import LAST, Floats
from spaql.problems.fmu.description import fmpy_module

_FLAGS = (*FLAGS, "-shared", "-fPIC", "-fvisibility=hidden")
_DATE = (1980, 1, 1, 0, 0, 0)
"""Of all files in the archive: the same controller has the same bytes."""

_DOUBLES = "an FMU: its Reals are doubles."
"""Why other numbers are refused."""


class Fmu(Target):
    """One FMU for co-simulation, FMI 2.0, with its sources and a binary for this platform."""

    name = "FMU"
    suffix = ".fmu"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        refuse_unless_double(controller.number.name, _DOUBLES)
        space, tree = controller.exact.action_space, controller.exact
        notes = name_of_action(controller, "")
        if isinstance(space, Discrete):
            interface = Interface(
                name, tree.observations, ("action",), (None,), controller.safe, tuple(notes)
            )
        else:
            interface = Interface(
                name,
                tree.observations,
                tree.actions,
                _ranges(space),
                controller.safe,
                ("",) * len(tree.actions),
            )
        return {f"{name}.fmu": _archive(interface, CCode().write(controller, name))}

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Open the FMU in FMPy; returns the function from inputs to actions."""
        whole = isinstance(controller.exact.action_space, Discrete)
        player = _Player(
            files[f"{name}.fmu"], folder, controller.tree.dims, controller.n_actions, whole=whole
        )

        def run(inputs: NDArray[Any]) -> NDArray[np.float64]:
            actions = np.empty((len(inputs), controller.n_actions))
            for i, row in enumerate(inputs):
                player.sample(row, 0.0, 1.0)
                actions[i] = player.outputs
            return actions

        return run

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"FMPy {version('fmpy')}, {compiler_version()}"

    def with_memory(self) -> FmuMemory:
        """Return the target for controllers with memory."""
        return FmuMemory()


class FmuMemory(MemoryTarget):
    """The same for a controller with memory, which is reset by fmi2Reset."""

    name = "FMU"
    suffix = ".fmu"

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        refuse_unless_double(machine.number, _DOUBLES)
        controller = machine.controller
        width = len(controller.actions)
        interface = Interface(
            name,
            tuple(controller.observations),
            tuple(controller.actions),
            _ranges(controller.action_space),
            tuple(controller.new_memory(1)[0, LAST : LAST + width].tolist()),
            ("",) * width,
            tuple((one.name, one.note) for one in program_of(machine).state),
            controller.sample_time,
        )
        return {f"{name}.fmu": _archive(interface, CMemory().write(machine, name))}

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> MemoryRun:
        """Open the FMU in FMPy; returns the function that plays episodes."""
        controller = machine.controller
        sizes = len(controller.observations), len(controller.actions), controller.memory_size
        player = _Player(files[f"{name}.fmu"], folder, *sizes)

        def run(resets: Bools, inputs: NDArray[Any]) -> tuple[Floats, Floats]:
            steps, rows, _ = inputs.shape
            actions, states = np.empty((steps, rows, sizes[1])), np.empty((steps, rows, sizes[2]))
            for row in range(rows):
                player.reset()
                since = 0
                for step in range(steps):
                    if resets[step, row]:
                        player.reset()
                        since = step
                    time = (step - since) * controller.sample_time
                    player.sample(inputs[step, row], time, controller.sample_time)
                    actions[step, row], states[step, row] = player.outputs, player.state
            return actions, states

        return run

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return Fmu().tool()


def _ranges(space: Box) -> tuple[tuple[float, float], ...]:
    low, high = (ends.astype(np.float64).ravel().tolist() for ends in (space.low, space.high))
    return tuple(zip(low, high, strict=True))


def _archive(interface: Interface, sources: Mapping[str, bytes]) -> bytes:
    """Return an FMU of C sources of a controller, compiled for this platform."""
    fmpy, name = fmpy_module(), interface.name
    if "fmi2.c" in sources:
        raise SettingError("The name of an FMU cannot be fmi2: give another.")
    content = b"".join(sources[file] for file in sorted(sources))
    guid = hashlib.sha256(content + wrapper(interface, "").encode()).hexdigest()[:32]
    written = {**sources, "fmi2.c": wrapper(interface, guid).encode()}
    code = [file for file in written if file.endswith(".c")]
    with tempfile.TemporaryDirectory() as folder:
        for file, text in written.items():
            (Path(folder) / file).write_bytes(text)
        library = Path(folder) / f"{name}{fmpy.sharedLibraryExtension}"
        binary = compiled([Path(folder) / file for file in code], library, _FLAGS).read_bytes()
    files = {
        "modelDescription.xml": interface.description(guid, code).encode(),
        **{f"sources/{file}": text for file, text in written.items()},
        f"binaries/{fmpy.platform}/{library.name}": binary,
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:  # not compressed, which differs between versions of zlib
        for file, data in files.items():
            archive.writestr(zipfile.ZipInfo(file, _DATE), data)
    return made.getvalue()


class _Player:
    """An exported FMU in FMPy; `outputs` and `state` are those after the last sample."""

    def __init__(
        self, content: bytes, folder: Path, inputs: int, outputs: int, state: int = 0, *, whole: bool = False
    ) -> None:
        fmpy = fmpy_module()
        file = folder / "exported.fmu"
        file.write_bytes(content)
        try:
            model = fmpy.model_description.read_model_description(str(file), validate_model_structure=True)
        except Exception as error:
            raise EquivalenceError(f"The model description of the FMU is not valid: {error}") from error
        unzipped = fmpy.extract(str(file), folder / "fmu")
        self._fmu = fmpy.fmi2.FMU2Slave(
            guid=model.guid, unzipDirectory=str(unzipped), modelIdentifier=model.coSimulation.modelIdentifier
        )
        self._fmu.instantiate()
        self._in = _Buffer(0, inputs)
        self._out = _Buffer(inputs, outputs, ctypes.c_int if whole else ctypes.c_double)
        self._state = _Buffer(inputs + outputs, state)
        self._read = self._fmu.fmi2GetInteger if whole else self._fmu.fmi2GetReal
        self._initialise()

    @property
    def outputs(self) -> NDArray[Any]:
        return self._out.values

    @property
    def state(self) -> NDArray[Any]:
        return self._state.values

    def reset(self) -> None:
        self._fmu.reset()
        self._initialise()

    def sample(self, row: NDArray[Any], time: float, size: float) -> None:
        fmu, component = self._fmu, self._fmu.component
        self._in.values[:] = row
        fmu.fmi2SetReal(component, *self._in.arguments)
        fmu.fmi2DoStep(component, time, size, 1)
        self._read(component, *self._out.arguments)
        if self._state.n:
            fmu.fmi2GetReal(component, *self._state.arguments)

    def _initialise(self) -> None:
        self._fmu.setupExperiment()
        self._fmu.enterInitializationMode()
        self._fmu.exitInitializationMode()


class _Buffer:
    """Numbers of consecutive value references, shared between C and NumPy."""

    def __init__(self, first: int, n: int, kind: Any = ctypes.c_double) -> None:
        self.n = n
        numbers = (kind * n)()
        self.values: NDArray[Any] = np.ctypeslib.as_array(numbers) if n else np.empty(0)
        self.arguments = (ctypes.c_uint * n)(*range(first, first + n)), n, numbers
