"""A controller as WebAssembly: the C that `c` writes, compiled by clang and compared in node."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gymnasium.spaces import Discrete

from spaql.errors import SettingError, SpaqlError
from spaql.export.c_code import CCode
from spaql.export.comments import heading, name_of_action
from spaql.export.compilers import FLAGS
from spaql.export.equivalence import Run, Target
from spaql.export.memory.build import program_of
from spaql.export.memory.c_code import CMemory
from spaql.export.memory.check import MemoryTarget
from spaql.export.memory.check import Run as MemoryRun
from spaql.export.memory.comments import heading as memory_heading
from spaql.export.memory.machine import MemoryMachine
from spaql.export.numbers import refuse_unless_double
from spaql.export.played import Player, player_of_episodes, player_of_rows
from spaql.export.processes import MissingToolError, run, version_of
from spaql.export.source.javascript import played_in_node
from spaql.export.target_controller import MachineController
from spaql.export.wasm.loader import MATH_H, Interface, loader, module_source

# Below the data, a stack that overflows traps instead of changing numbers.
_FLAGS = (
    "--target=wasm32", *FLAGS, "-ffreestanding", "-nostdlib", "-Iinclude",
    "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,--stack-first", "-Wl,-z,stack-size=16384",
)  # fmt: skip

_DOUBLES = "WebAssembly, which always computes in doubles."
"""Why other numbers are refused."""


class Wasm(Target):
    """A WebAssembly module without imports, and a JavaScript module that loads it."""

    name = "WebAssembly"
    suffix = ".wasm"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        refuse_unless_double(controller.number.name, _DOUBLES)
        return _module(_interface(controller, name), CCode().write(controller, name))

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Load the module in node; returns the function from inputs to actions."""
        return player_of_rows(_player(_interface(controller, name), files, folder))

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return (
            f"node {version_of('node')}, compiled by {version_of('clang')}, --target=wasm32 {' '.join(FLAGS)}"
        )

    def with_memory(self) -> WasmMemory:
        """Return the target for controllers with memory."""
        return WasmMemory()


class WasmMemory(MemoryTarget):
    """The same for a controller with memory: an instance of the module for each plant."""

    name = Wasm.name
    suffix = Wasm.suffix

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        refuse_unless_double(machine.number, _DOUBLES)
        return _module(_memory_interface(machine, name), CMemory().write(machine, name))

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> MemoryRun:
        """Load the module in node; returns the function that plays episodes."""
        interface = _memory_interface(machine, name)
        return player_of_episodes(_player(interface, files, folder), interface.widths[1])

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return Wasm().tool()


def _interface(controller: MachineController, name: str) -> Interface:
    tree = controller.exact
    return Interface(
        name,
        tuple(heading(controller, f"{name}.mjs")),
        tuple(tree.observations),
        tuple(name_of_action(controller, "The action is ")),
        (tree.dims, controller.n_actions, 0),
        discrete=isinstance(tree.action_space, Discrete),
    )


def _memory_interface(machine: MemoryMachine, name: str) -> Interface:
    controller, program = machine.controller, program_of(machine)
    return Interface(
        name,
        tuple(memory_heading(machine, f"{name}.mjs")),
        tuple(controller.observations),
        tuple(f"action[{k}]  {one}" for k, one in enumerate(controller.actions)),
        (len(program.inputs), len(program.outputs), len(program.state)),
        state=program.state,
        sample_time=controller.sample_time,
    )


def _module(interface: Interface, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return a module compiled from C sources of a controller, and its loader."""
    for tool, package in (("clang", "clang"), ("wasm-ld", "lld")):
        if shutil.which(tool) is None:
            raise MissingToolError(
                f"{tool} is not installed, which compiles C to WebAssembly: install it (Debian's package is "
                f"{package})."
            )
    name = interface.name
    if name == "module":
        raise SettingError("The name of a WebAssembly controller cannot be module: give another.")
    written = {**sources, "module.c": module_source(interface).encode(), "include/math.h": MATH_H.encode()}
    exports = [f"-Wl,--export={one}" for one in interface.exports]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "include").mkdir()
        for file, content in written.items():
            (Path(folder) / file).write_bytes(content)
        # Debian's clang looks for wasm-ld by a name with its version.
        words = [
            "clang",
            *_FLAGS,
            f"-fuse-ld={shutil.which('wasm-ld')}",
            *exports,
            f"{name}.c",
            "module.c",
            "-o",
            f"{name}.wasm",
        ]
        run(words, Path(folder), SpaqlError, "clang does not compile the exported controller")
        made = (Path(folder) / f"{name}.wasm").read_bytes()
    return {f"{name}.wasm": made, f"{name}.mjs": loader(interface).encode()}


def _player(interface: Interface, files: Mapping[str, bytes], folder: Path) -> Player:
    """Write files to a folder; returns the function that plays samples by them in node."""
    for file, content in files.items():
        (folder / file).write_bytes(content)
    state = ["...controller.kept"] if interface.state else []
    return played_in_node(interface.name, Wasm.name, folder, interface.widths, state)
