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
    named = shlex.split(os.environ.get("CC", ""))
    for words in [named] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(words[0]):
            return words
    raise MissingToolError(
        "There is no C compiler to prove the export with: install gcc or clang, or name one in CC."
    )


def compiled(sources: Sequence[Path], program: Path, flags: Sequence[str] = FLAGS) -> Path:
    """Compile a program; its warnings are errors."""
    command = [*compiler(), *flags, *map(str, sources), "-o", str(program)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        first = "\n".join(run.stderr.splitlines()[:5])
        raise SpaqlError(f"{command[0]} does not compile the exported controller:\n{first}")
    return program


def compiler_version() -> str:
    """Give the first line of what the compiler says of itself."""
    words = [*compiler(), "--version"]
    return subprocess.run(words, capture_output=True, text=True).stdout.splitlines()[0]
