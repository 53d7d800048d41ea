"""A controller as an FMU, compared with the policy by running it in FMPy."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.errors import SettingError
from spaql.export.c_code import CCode
from spaql.export.comments import name_of_action
from spaql.export.compilers import FLAGS, compiled, compiler_version
from spaql.export.equivalence import Run, Target
from spaql.export.fmu.interface import Interface
from spaql.export.fmu.wrapper import wrapper
from spaql.export.memory.build import program_of
from spaql.export.memory.c_code import CMemory
from spaql.export.memory.check import MemoryTarget
from spaql.export.memory.check import Run as MemoryRun
from spaql.export.memory.machine import MemoryMachine
from spaql.export.numbers import refuse_unless_double
from spaql.export.played import PLAYED, SAMPLES, Player, driven, player_of_episodes, player_of_rows
from spaql.export.target_controller import MachineController
from spaql.kernels.controller import LAST
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
        sizes = (controller.tree.dims, controller.n_actions, 0)
        return player_of_rows(_player(files[f"{name}.fmu"], folder, sizes, whole=whole))

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
        play = _player(files[f"{name}.fmu"], folder, sizes, sample_time=controller.sample_time)
        return player_of_episodes(play, sizes[1])

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


def _player(
    content: bytes,
    folder: Path,
    sizes: tuple[int, int, int],
    *,
    whole: bool = False,
    sample_time: float = 0.0,
) -> Player:
    """Return the function that plays samples by an FMU in FMPy; `sizes` are those of `player.py`."""
    fmpy_module()  # raises if it is missing
    (folder / "exported.fmu").write_bytes(content)
    words = [sys.executable, "-P", "-B", str(Path(__file__).with_name("player.py")), "exported.fmu"]
    words += [*map(str, sizes), str(int(whole)), repr(sample_time), SAMPLES, PLAYED]
    return driven(words, folder, sum(sizes[1:]), {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
