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
"""What an exported controller compiles with, without a warning."""


class MissingToolError(SpaqlError, OSError):
    """A program that a proof needs, and that is not there."""


def compiler() -> list[str]:
    """Find the C compiler: the one that CC names, or cc, gcc, clang."""
    named = words_of(os.environ.get("CC", ""), windows=os.name == "nt")
    for words in [named] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(words[0]):
            return words
    raise MissingToolError(
        "There is no C compiler to prove the export with: install gcc or clang, or name one in CC."
    )


def words_of(command: str, *, windows: bool) -> list[str]:
    """Split a command into words, as the system's shell does: a backslash is part of a path on Windows.

    Examples
    --------
    >>> words_of(r'"C:\\my tools\\gcc.exe" -m64', windows=True), words_of("ccache gcc", windows=False)
    (['C:\\\\my tools\\\\gcc.exe', '-m64'], ['ccache', 'gcc'])
    """
    words = shlex.split(command, posix=not windows)
    return [word.strip('"') for word in words] if windows else words


def compiled(sources: Sequence[Path], program: Path, flags: Sequence[str] = FLAGS) -> Path:
    """Compile a program; its warnings are errors."""
    command = [*compiler(), *flags, *map(str, sources), "-o", str(program)]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if run.returncode:
        first = "\n".join(run.stderr.splitlines()[:5])
        raise SpaqlError(f"{command[0]} does not compile the exported controller:\n{first}")
    return program


def compiler_version() -> str:
    """Give the first line of what the compiler says of itself."""
    words = [*compiler(), "--version"]
    run = subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace")
    return run.stdout.splitlines()[0]
