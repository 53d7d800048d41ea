"""The system's C compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from spaql.errors import SpaqlError

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-O2")
"""Flags with which exported controllers compile without a warning."""


class MissingToolError(SpaqlError, OSError):
    """A program that the equivalence check needs is not installed."""


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
    run = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if run.returncode:
        first = "\n".join(run.stderr.splitlines()[:5])
        raise SpaqlError(f"{command[0]} does not compile the exported controller:\n{first}")
    return program


def compiler_version() -> str:
    """Return the first line of the compiler's `--version`."""
    words = [*compiler(), "--version"]
    run = subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace")
    return run.stdout.splitlines()[0]
