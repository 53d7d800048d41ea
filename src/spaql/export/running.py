"""How exported code is run and compared: compilers and interpreters, and drivers that play samples.

A driver is a program in the language of the code. It reads samples from a file, and writes what it does. A
sample is a row of doubles: 1 for a reset and 0 otherwise, then the observation, and for a controller with
manual mode the commands of `spaql.export.machine.Machine.operate`. For each the driver writes the components
of the action, and then those of the state.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from spaql.errors import SpaqlError
from spaql.formatting import duration
from spaql.kernels.numerics import Floats

SECONDS = 1800.0
"""The time limit of a process; a slow interpreter needs minutes for large controllers."""
_KEPT = (
    *(
        "PATH",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "SDKROOT",
        "DEVELOPER_DIR",
    ),
    *("SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "INCLUDE", "LIB", "LIBPATH"),
    *("NODE_PATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME"),
)
"""What compilers and interpreters need of the environment: where programs and libraries are."""


_WIDEST = 300
"""Characters of a line of an error, at most: some interpreters show the source, all of it in one line."""


class MissingToolError(SpaqlError, OSError):
    """A program that the equivalence check needs is not installed."""


def completed(
    command: Sequence[str],
    folder: Path,
    stdin: bytes = b"",
    *,
    seconds: float = SECONDS,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a temporary folder, which is its home as well; returns what it wrote.

    Of the environment it gets what compilers and interpreters need, and `variables`. One that takes longer
    than the time limit is killed with the processes that it started, and `SpaqlError` is raised.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**_environment(folder), **(variables or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise SpaqlError(f"{command[0]} did not end within {duration(seconds)}, and was stopped.") from None
    finally:
        if process.poll() is None:
            _kill(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run(
    command: Sequence[str],
    folder: Path,
    error: type[SpaqlError],
    failed: str,
    stdin: bytes = b"",
    variables: Mapping[str, str] | None = None,
) -> bytes:
    """Run a command in a folder; returns its output, and raises an error with a few lines if it fails."""
    done = completed(command, folder, stdin, variables=variables)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace").splitlines()
        said = lines[-2:] if lines[:1] == ["Traceback (most recent call last):"] else lines[:5]
        raise error("\n".join([f"{failed} ({done.returncode}):", *(line[:_WIDEST] for line in said)]))
    return done.stdout


def find_program(program: str, what: str) -> str:
    """Return a program by whose name a file is run; raises if it is not installed."""
    if shutil.which(program) is None:
        raise MissingToolError(
            f"{program} is not installed, which the equivalence check of {what} needs: install it."
        )
    return program


def version_of(*command: str, option: str = "--version") -> str:
    """Return the first line that a program prints about its version, asked by an option."""
    done = completed([*command, option], Path(tempfile.gettempdir()))
    return done.stdout.decode(errors="replace").splitlines()[0]


def _environment(folder: Path) -> dict[str, str]:
    home = Path.home()
    places = {"RUSTUP_HOME": str(home / ".rustup"), "CARGO_HOME": str(home / ".cargo")}
    places |= {name: os.environ[name] for name in _KEPT if name in os.environ}
    return places | dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), str(folder))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that runs, and those that it started."""
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()


FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-O2")
"""Flags with which exported controllers compile without a warning."""


def compiler() -> list[str]:
    """Return the command of the C compiler: the one in CC, or cc, gcc or clang."""
    named = split_command(os.environ.get("CC", ""), windows=os.name == "nt")
    for words in [named] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(words[0]):
            return words
    raise MissingToolError(
        "No C compiler was found, which the equivalence check needs: install gcc or clang, or set CC."
    )


def split_command(command: str, *, windows: bool) -> list[str]:
    """Return the words of a command as in the system's shell: a backslash is part of a path on Windows.

    Examples
    --------
    >>> split_command(r'"C:\\my tools\\gcc.exe" -m64', windows=True)
    ['C:\\\\my tools\\\\gcc.exe', '-m64']
    >>> split_command("ccache gcc", windows=False)
    ['ccache', 'gcc']
    """
    words = shlex.split(command, posix=not windows)
    return [word.strip('"') for word in words] if windows else words


def compiled(sources: Sequence[Path], program: Path, flags: Sequence[str] = FLAGS) -> Path:
    """Compile a program, with warnings as errors; returns its path."""
    command = [*compiler(), *flags, *map(str, sources), "-o", str(program)]
    run(command, program.parent, SpaqlError, f"{command[0]} does not compile the exported controller")
    return program


def compiler_version() -> str:
    """Return the first line of the compiler's `--version`."""
    return version_of(*compiler())


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
