"""A word when the command ends at once: code of an environment that crashes, or calls `os._exit`.

Environments run in the process of the command, which cannot say anything after that.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import sys
from contextlib import suppress

_WATCH = "trap exit INT TERM HUP; read end || printf '%s\\n' \"$1\" >&2"
"""What waits for the line that an orderly end sends, and finds the end of the file instead."""


def explain_sudden_end() -> None:
    """Print the line of Python that crashes, and start a shell that explains an end without a word."""
    if sys.stderr is None:
        return
    faulthandler.enable()
    if sys.platform == "win32":
        return
    sentence = (
        f"Error: `{' '.join(['spaql', *sys.argv[1:3]])}` ended at once: it was killed, or the code of the "
        "environment, or of a library that it uses, crashed or ended the process (os._exit)."
    )
    reads, writes = os.pipe()
    shell = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", _WATCH, "sh", sentence],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, reads, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ],
    )
    os.close(reads)
    atexit.register(_end, writes, shell)


def _end(writes: int, shell: int) -> None:
    """Tell the shell that this is an orderly end; Ctrl-C may have ended it before."""
    with suppress(OSError):
        os.write(writes, b"end\n")
        os.close(writes)
        os.waitpid(shell, 0)
