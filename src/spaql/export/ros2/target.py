"""A controller as a ROS 2 package: a C++ node around the C, compared by running it with a stand-in for ROS.

ROS itself is not needed, and not run: the node is compiled against the few classes in `stand_in`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spaql.errors import SpaqlError
from spaql.export.c_code import CCode
from spaql.export.comments import name_of_action
from spaql.export.compilers import FLAGS, compiled, split_command
from spaql.export.equivalence import Run, Target
from spaql.export.memory.build import program_of
from spaql.export.memory.c_code import CMemory
from spaql.export.memory.check import MemoryTarget
from spaql.export.memory.check import Run as MemoryRun
from spaql.export.memory.machine import MemoryMachine
from spaql.export.memory.program import State
from spaql.export.numbers import refuse_unless_double
from spaql.export.played import Player, driven, player_of_episodes, player_of_rows
from spaql.export.processes import MissingToolError, run, version_of
from spaql.export.ros2.node import cmake, node, package
from spaql.export.ros2.stand_in import stand_in
from spaql.export.target_controller import MachineController

_FLAGS = ("-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-O1")

_DOUBLES = "ROS 2: messages have doubles."
"""Why other numbers are refused."""


class Ros2(Target):
    """A package of the C controller, a node that calls it, `package.xml` and `CMakeLists.txt`."""

    name = "ROS 2"
    suffix = ".cpp"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        refuse_unless_double(controller.number.name, _DOUBLES)
        notes = Notes(controller.exact.observations, tuple(name_of_action(controller)))
        return _package(name, notes, CCode().write(controller, name))

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Compile the node with a stand-in for ROS; returns the function from inputs to actions."""
        widths = controller.tree.dims, controller.n_actions, 0
        return player_of_rows(_player(files, name, folder, widths))

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"{version_of(_compiler()[0])}, with a stand-in for ROS 2; not run in ROS"

    def with_memory(self) -> Ros2Memory:
        """Return the target for controllers with memory."""
        return Ros2Memory()


class Ros2Memory(MemoryTarget):
    """The same for a controller with memory: a timer takes the samples, and a service resets it."""

    name = Ros2.name
    suffix = Ros2.suffix

    def write(self, machine: MemoryMachine, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        refuse_unless_double(machine.number, _DOUBLES)
        controller = machine.controller
        actions = tuple(f"action[{k}]  {one}" for k, one in enumerate(controller.actions))
        notes = Notes(tuple(controller.observations), actions, program_of(machine).state)
        return _package(name, notes, CMemory().write(machine, name))

    def load(self, machine: MemoryMachine, files: Mapping[str, bytes], name: str, folder: Path) -> MemoryRun:
        """Compile the node with a stand-in for ROS; returns the function that plays episodes."""
        controller = machine.controller
        widths = len(controller.observations), len(controller.actions), controller.memory_size
        return player_of_episodes(_player(files, name, folder, widths), widths[1])

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return Ros2().tool()


@dataclass(frozen=True)
class Notes:
    """What the comments of a node say, and what its state has."""

    observations: tuple[str, ...]
    actions: tuple[str, ...]
    state: tuple[State, ...] = ()


def _package(name: str, notes: Notes, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    remembers = bool(notes.state)
    return {
        **sources,
        f"{name}.cpp": node(name, notes.observations, notes.actions, notes.state).encode(),
        "package.xml": package(name, remembers=remembers).encode(),
        "CMakeLists.txt": cmake(name, remembers=remembers).encode(),
    }


def _player(files: Mapping[str, bytes], name: str, folder: Path, widths: tuple[int, int, int]) -> Player:
    """Compile a node with a stand-in for ROS; returns the function that plays samples."""
    for file, content in {**files, **stand_in(*widths)}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    made = compiled([folder / f"{name}.c"], folder / f"{name}.o", (*FLAGS, "-c"))
    program = folder / ("node.exe" if os.name == "nt" else "node")
    words = [*_compiler(), *_FLAGS, "-I.", f"{name}.cpp", made.name, "-o", program.name]
    run(words, folder, SpaqlError, f"{words[0]} does not compile the exported node")
    return driven([str(program)], folder, sum(widths[1:]))


def _compiler() -> Sequence[str]:
    """Return the command of the C++ compiler: the one in CXX, or c++, g++ or clang++."""
    named = split_command(os.environ.get("CXX", ""), windows=os.name == "nt")
    for words in [named] if named else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(words[0]):
            return words
    raise MissingToolError(
        "No C++ compiler was found, which the equivalence check of ROS 2 needs: install g++ or clang, or set "
        "CXX."
    )
