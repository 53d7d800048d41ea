"""Exported C on simulated microcontrollers: what it answers, how long it takes, how much room it needs."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spaql.export.c_common import TYPES
from spaql.export.compilers import FLAGS
from spaql.export.target_controller import MachineController

FIRMWARE = Path(__file__).parent / "firmware"
REPEATS = 400
STUB = "-DCALL(observation,action)=((void)(observation),(action)[0]=0)"
REAL = "-DCALL(observation,action)=controller_act(observation,action)"
INSTRUCTIONS_A_TICK = 40
"""The timer of the simulated boards runs at 25 MHz, and with -icount an instruction takes a nanosecond."""


@dataclass(frozen=True)
class Answers:
    actions: np.ndarray
    cost: np.ndarray
    """Cycles, or instructions, of each call."""


@dataclass(frozen=True)
class Room:
    flash: int
    ram: int
    """Constants and variables in RAM."""
    stack: int


class DoesNotFitError(Exception):
    """The firmware is larger than the machine's memory."""


class Avr:
    """An ATmega328P in simavr: 32 KB of flash, 2 KB of RAM, 8 bits, no floating point."""

    name = "ATmega328P"
    unit = "cycles"
    tools = ("avr-gcc", "simavr")
    compiler = ("avr-gcc", "-mmcu=atmega328p", "-Os")
    size = "avr-size"
    batch = 60

    def link(self, folder: Path, controller: MachineController, call: str, inputs: np.ndarray) -> Path:
        kind, (n, dims) = TYPES[controller.number.name], inputs.shape
        rows = ", ".join("{" + ", ".join(_c_number(x) for x in row) + "}" for row in inputs.tolist())
        vectors = f"#define VECTORS {n}\nstatic const NUMBER vectors[{n}][{dims}] PROGMEM = {{{rows}}};\n"
        (folder / "vectors.h").write_text(vectors)
        words = [
            *self.compiler,
            "-std=gnu99",
            f"-DNUMBER={kind}",
            call,
            "-DF_CPU=16000000UL",
            "-Wl,--gc-sections",
        ]
        return _linked([*words, f"-I{folder}", str(FIRMWARE / "avr.c"), str(folder / "controller.o")], folder)

    def run(self, folder: Path, controller: MachineController, inputs: np.ndarray) -> Answers:
        actions, cost = [], []
        for begin in range(0, len(inputs), self.batch):
            program = self.link(folder, controller, REAL, inputs[begin : begin + self.batch])
            command = ["simavr", "-m", "atmega328p", "-f", "16000000", str(program)]
            shown = subprocess.run(command, capture_output=True, timeout=60)
            text = re.sub(r"\x1b\[[0-9;]*m", "", (shown.stdout + shown.stderr).decode(errors="replace"))
            for line in re.findall(r"^[0-9a-f]{4}(?: [0-9a-f]{8})+", text, re.MULTILINE):
                words = line.split()
                cost.append(int(words[0], 16))
                raw = np.array([int(word, 16) for word in words[1:]], np.uint32)
                actions.append(raw.view(controller.number.dtype))
        given = controller.number.actions(np.array(actions).reshape(-1, controller.n_actions))
        return Answers(given, np.array(cost))


class Arm:
    """A Cortex-M in QEMU, which counts instructions, not cycles."""

    unit = "instructions"
    tools = ("arm-none-eabi-gcc", "qemu-system-arm")
    size = "arm-none-eabi-size"

    def __init__(self, name: str, board: str, *flags: str) -> None:
        self.name = name
        self.board = board
        self.compiler = ("arm-none-eabi-gcc", "-mthumb", *flags, "-O2")

    def link(self, folder: Path, controller: MachineController, call: str, inputs: np.ndarray) -> Path:
        kind = TYPES[controller.number.name]
        words = [*self.compiler, "-std=gnu99", f"-DNUMBER={kind}", f"-DREPEATS={REPEATS}", call]
        words += [f"-I{folder}", "--specs=rdimon.specs", f"-T{FIRMWARE / 'arm.ld'}", "-Wl,--gc-sections"]
        return _linked([*words, str(FIRMWARE / "arm.c"), str(folder / "controller.o")], folder)

    def run(self, folder: Path, controller: MachineController, inputs: np.ndarray) -> Answers:
        program = self.link(folder, controller, REAL, inputs)
        kind, n = controller.number.dtype, controller.n_actions
        row = np.dtype([("ticks", np.uint32), ("action", kind, (n,))])
        command = ["qemu-system-arm", "-M", self.board, "-kernel", str(program), "-display", "none"]
        command += ["-monitor", "none", "-serial", "none", "-icount", "shift=0"]
        command += ["-semihosting-config", "enable=on,target=native"]
        (folder / "inputs").write_bytes(np.ascontiguousarray(inputs, kind).tobytes())
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
        given = np.frombuffer((folder / "outputs").read_bytes(), row)
        cost = given["ticks"] * (INSTRUCTIONS_A_TICK / REPEATS)
        return Answers(controller.number.actions(given["action"]), cost)


AVR = Avr()
M3 = Arm("Cortex-M3", "mps2-an385", "-mcpu=cortex-m3")
M4 = Arm("Cortex-M4F", "mps2-an386", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
MACHINES = (AVR, M3, M4)
Machine = Avr | Arm


def missing(machine: Machine) -> list[str]:
    """Name the tools that are not installed."""
    return [tool for tool in machine.tools if shutil.which(tool) is None]


def compile_for(machine: Machine, folder: Path, files: Mapping[str, bytes]) -> None:
    """Compile a controller for a machine, with all warnings as errors."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    flags = [flag for flag in FLAGS if not flag.startswith("-O")]
    words = [*machine.compiler, *flags, "-ffunction-sections", "-fdata-sections", "-fstack-usage"]
    subprocess.run(
        [*words, "-c", str(folder / "controller.c"), "-o", str(folder / "controller.o")],
        check=True,
        cwd=folder,
    )


def room(machine: Machine, folder: Path, controller: MachineController) -> Room:
    """Measure what a controller adds to a firmware, with what it needs of the compiler's library."""
    inputs = controller.number.inputs(np.zeros((1, controller.tree.dims)))
    sizes = []
    for call in (STUB, REAL):
        program = machine.link(folder, controller, call, inputs)
        shown = subprocess.run(
            [machine.size, str(program)], capture_output=True, text=True, check=True
        ).stdout
        text, data, bss = map(int, shown.splitlines()[1].split()[:3])
        sizes.append((text + data, data + bss))
    stack = max(int(line.split("\t")[1]) for line in (folder / "controller.su").read_text().splitlines())
    return Room(sizes[1][0] - sizes[0][0], sizes[1][1] - sizes[0][1], stack)


def _linked(words: Sequence[str], folder: Path) -> Path:
    program = folder / "firmware.elf"
    run = subprocess.run([*words, "-o", str(program)], capture_output=True, text=True)
    if "overflowed" in run.stderr or "will not fit" in run.stderr or "overlaps" in run.stderr:
        raise DoesNotFitError(run.stderr)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return program


def _c_number(x: float) -> str:
    if isinstance(x, int):
        return f"({x + 1} - 1)" if x == -(2**31) else str(x)
    if np.isnan(x):
        return '__builtin_nanf("")'
    return repr(x) + "f" if np.isfinite(x) else f"{'-' if x < 0 else ''}__builtin_inff()"
