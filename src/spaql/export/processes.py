"""Child processes of equivalence checks: compilers, and what runs exported code."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from spaql.errors import SpaqlError
from spaql.formatting import duration

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
