"""The system's C compiler."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from spaql.errors import SpaqlError
from spaql.export.processes import MissingToolError, run, version_of

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
