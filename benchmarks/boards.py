"""Simulated microcontrollers: an ATmega328P in simavr, and Cortex-M in QEMU."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.errors import SpaqlError
from spaql.export.machine import Machine
from spaql.export.running import FLAGS, completed, run

FIRMWARE = Path(__file__).parent / "firmware"
REPEATS = 400
"""Calls by which the instructions of one are counted in QEMU, where it keeps no state."""
STUB = "-DCALL(observation,action)=((void)(observation),(action)[0]=0)"
REAL = "-DCALL(observation,action)=controller_act(observation,action)"
_STATE = """#include "controller.h"
static controller_state state;
static int begun;
static void call(const NUMBER *observation, NUMBER *action)
{
    if (!begun) {
        controller_reset(&state);
        begun = 1;
    }
    controller_act(&state, observation, action);
}
"""
INSTRUCTIONS_A_TICK = 40
"""The timer of the simulated boards runs at 25 MHz, and with -icount an instruction takes a nanosecond."""


@dataclass(frozen=True)
class Answers:
    """What a machine answers."""

    actions: NDArray[np.float64]
    cost: NDArray[np.float64]
    """Cycles, or instructions, of each call."""


@dataclass(frozen=True)
class MemoryUse:
    """Bytes that a controller needs."""

    flash: int
    ram: int
    """Constants and variables in RAM."""
    stack: int


class NotForMachineError(SpaqlError):
    """A controller that cannot be compiled for a machine."""


class DoesNotFitError(NotForMachineError):
    """The firmware is larger than the machine's memory."""


class Avr:
    """An ATmega328P in simavr: 32 KB of flash, 2 KB of RAM, 8 bits, no floating point."""

    name = "ATmega328P"
    unit = "cycles"
    tools = ("avr-gcc", "simavr")
    compiler = ("avr-gcc", "-mmcu=atmega328p", "-Os")
    size = "avr-size"
    room = 8192
    """Bytes of flash for inputs in one firmware."""

    def link(self, folder: Path, machine: Machine, call: str, inputs: NDArray[Any]) -> Path:
        """Return a firmware that holds observations, and answers them."""
        kind = machine.number.name
        n, dims = inputs.shape
        rows = ", ".join("{" + ", ".join(_c_number(x) for x in row) + "}" for row in inputs.tolist())
        vectors = f"#define VECTORS {n}\nstatic const NUMBER vectors[{n}][{dims}] PROGMEM = {{{rows}}};\n"
        (folder / "vectors.h").write_text(vectors, encoding="utf-8")
        words = [
            *self.compiler,
            "-std=gnu99",
            f"-DNUMBER={kind}",
            call,
            "-DF_CPU=16000000UL",
            "-Wl,--gc-sections",
        ]
        return _linked([*words, f"-I{folder}", str(FIRMWARE / "avr.c"), str(folder / "controller.o")], folder)

    def run(self, folder: Path, machine: Machine, inputs: NDArray[Any], repeats: int = 1) -> Answers:
        """Return the answers of a compiled controller in a folder; cycles are counted in one call of it."""
        actions = list[NDArray[Any]]()
        cost = list[int]()
        begin = 0
        rows = max(1, self.room // (4 * inputs.shape[1]))
        while begin < len(inputs):
            try:
                program = self.link(folder, machine, REAL, inputs[begin : begin + rows])
            except DoesNotFitError:
                if rows == 1:
                    raise
                rows = (rows + 1) // 2
                continue
            begin += rows
            command = ["simavr", "-m", "atmega328p", "-f", "16000000", str(program)]
            shown = completed(command, folder, seconds=60)
            text = re.sub(r"\x1b\[[0-9;]*m", "", (shown.stdout + shown.stderr).decode(errors="replace"))
            for line in re.findall(r"^[0-9a-f]{4}(?: [0-9a-f]{8})+", text, re.MULTILINE):
                words = line.split()
                cost.append(int(words[0], 16))
                if cost[-1] == 0xFFFF:
                    raise NotForMachineError("a decision takes more cycles than its timer can count")
                raw = np.array([int(word, 16) for word in words[1:]], np.uint32)
                actions.append(raw.view(machine.number.dtype))
        actions_of_samples = np.array(actions, np.float64).reshape(-1, machine.width)
        return Answers(actions_of_samples, np.array(cost, np.float64))


class Arm:
    """A Cortex-M in QEMU, which counts instructions, not cycles."""

    unit = "instructions"
    tools = ("arm-none-eabi-gcc", "qemu-system-arm")
    size = "arm-none-eabi-size"

    def __init__(self, name: str, board: str, *flags: str) -> None:
        self.name = name
        self.board = board
        self.compiler = ("arm-none-eabi-gcc", "-mthumb", *flags, "-O2")

    def link(self, folder: Path, machine: Machine, call: str, inputs: NDArray[Any]) -> Path:
        """Return a firmware that answers the observations in a file."""
        return self._linked(folder, machine.number.name, REPEATS, call)

    def run(self, folder: Path, machine: Machine, inputs: NDArray[Any], repeats: int = REPEATS) -> Answers:
        """Return the answers of a compiled controller in a folder."""
        number = machine.number
        call = [REAL]
        if machine.remembers:  # one episode, of which no call can be repeated
            (folder / "state.h").write_text(_STATE, encoding="utf-8")
            call = ["-DCALL=call", "-include", "state.h"]
            repeats = 1
        program = self._linked(folder, number.name, repeats, *call)
        samples = np.ascontiguousarray(inputs, number.dtype)
        answers = self._answers(folder, program, samples, machine.width)
        ticks = answers["ticks"] + (1.0 if machine.remembers else 0.0)  # rounded up
        return Answers(answers["action"].astype(np.float64), ticks * (INSTRUCTIONS_A_TICK / repeats))

    def _linked(self, folder: Path, number: str, repeats: int, *call: str) -> Path:
        words = [*self.compiler, "-std=gnu99", f"-DNUMBER={number}", f"-DREPEATS={repeats}"]
        words += [f"-I{folder}", *call, "--specs=rdimon.specs", f"-T{FIRMWARE / 'arm.ld'}"]
        words += ["-Wl,--gc-sections", str(FIRMWARE / "arm.c"), str(folder / "controller.o")]
        return _linked(words, folder)

    def _answers(self, folder: Path, program: Path, inputs: NDArray[Any], actions: int) -> NDArray[Any]:
        """Return the rows that a firmware writes: ticks of the timer, and the action."""
        command = ["qemu-system-arm", "-M", self.board, "-kernel", str(program), "-display", "none"]
        command += ["-monitor", "none", "-serial", "none", "-icount", "shift=0"]
        command += ["-semihosting-config", "enable=on,target=native"]
        (folder / "inputs").write_bytes(inputs.tobytes())
        run(command, folder, SpaqlError, "the simulator failed")
        row = np.dtype([("ticks", np.uint32), ("action", inputs.dtype, (actions,))])
        return np.frombuffer((folder / "outputs").read_bytes(), row)


AVR = Avr()
M3 = Arm("Cortex-M3", "mps2-an385", "-mcpu=cortex-m3")
M4 = Arm("Cortex-M4F", "mps2-an386", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
BOARDS = (AVR, M3, M4)
Board = Avr | Arm


def missing(board: Board) -> list[str]:
    """Name the tools that are not installed."""
    return [tool for tool in board.tools if shutil.which(tool) is None]


def compile_for(board: Board, folder: Path, files: Mapping[str, bytes]) -> None:
    """Compile a controller for a machine, with all warnings as errors."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    flags = [flag for flag in FLAGS if not flag.startswith("-O")]
    words = [*board.compiler, *flags, "-ffunction-sections", "-fdata-sections", "-fstack-usage"]
    words += ["-c", "controller.c", "-o", "controller.o"]
    done = completed(words, folder)
    if done.returncode:
        errors = done.stderr.decode(errors="replace")
        said = re.search(r'#error "(.*)"', errors)
        raise NotForMachineError(said[1] if said else f"{words[0]} does not compile it: {errors[:300]}")


def room(board: Board, folder: Path, machine: Machine) -> MemoryUse:
    """Measure what a controller adds to a firmware, with what it needs of the compiler's library."""
    inputs = machine.number.inputs(np.zeros((1, len(machine.observations))))
    sizes = []
    for call in (STUB, REAL):
        program = board.link(folder, machine, call, inputs)
        text, data, bss = sizes_of(board, program)
        sizes.append((text + data, data + bss))
    return MemoryUse(sizes[1][0] - sizes[0][0], sizes[1][1] - sizes[0][1], stack(folder))


def sizes_of(board: Board, program: Path) -> tuple[int, int, int]:
    """Return the bytes of a program, of its data with values, and of its data without."""
    failed = f"{board.size} failed"
    shown = run([board.size, str(program)], program.parent, SpaqlError, failed).decode()
    text, data, bss = map(int, shown.splitlines()[1].split()[:3])
    return text, data, bss


def stack(folder: Path) -> int:
    """Return the stack of the largest function of a compiled controller, without the compiler's library."""
    return max(
        int(line.split("\t")[1])
        for line in (folder / "controller.su").read_text(encoding="utf-8").splitlines()
    )


def _linked(words: Sequence[str], folder: Path) -> Path:
    program = folder / "firmware.elf"
    done = completed([*words, "-o", str(program)], folder)
    errors = done.stderr.decode(errors="replace")
    if "overflowed" in errors or "will not fit" in errors or "overlaps" in errors:
        raise DoesNotFitError("it does not fit into the memory of the machine")
    if done.returncode:
        raise NotForMachineError(errors)
    return program


def _c_number(x: float) -> str:
    if isinstance(x, int):
        return f"({x + 1} - 1)" if x == -(2**31) else str(x)
    if np.isnan(x):
        return '__builtin_nanf("")'
    return repr(x) + "f" if np.isfinite(x) else f"{'-' if x < 0 else ''}__builtin_inff()"
